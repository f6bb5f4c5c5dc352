//! Hooks: one changes a call before it runs, another removes a secret from the reply.
//!
//! `cargo run -p haft-agent --example 05_hooks`
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example shows its result"
)]

mod model;

use async_trait::async_trait;
use haft::{Reply, Runtime};
use haft_agent::{Agent, Hooks, Message, ToolCall};
use model::{Told, answer};
use serde_json::json;
use std::sync::Arc;

struct Careful;

#[async_trait]
impl Hooks for Careful {
    async fn before_tool(&self, call: &mut ToolCall) -> Option<Reply> {
        (call.name == "ls").then(|| Reply::from("not today"))
    }

    async fn after_tool(&self, _: &ToolCall, reply: &mut Reply) {
        *reply = Reply::from(reply.text().replace("hunter2", "[hidden]"));
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("notes.txt"), "the password is hunter2")?;
    let runtime = Runtime::builder().dir(dir.path()).build()?;
    let model = Told::model([
        answer("", Some(("1", "ls", json!({})))),
        answer("", Some(("2", "read", json!({ "path": "notes.txt" })))),
        answer("Nothing of interest.", None),
    ]);
    let agent = Agent::new(model, runtime).hooks(Arc::new(Careful));
    let mut events = agent.prompt("Look around").await?;
    while events.next().await.is_some() {}

    for message in agent.history() {
        if let Message::Tool { results } = &*message {
            println!("{:?}", results.first().map(|result| &result.content));
        }
    }
    assert!(!format!("{:?}", agent.history()).contains("hunter2"));
    Ok(())
}
