//! A call that needs approval: no user is present, so it waits. The answer comes later, with
//! changed arguments.
//!
//! `cargo run -p haft-agent --example 04_approvals`
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example shows its result"
)]

mod model;

use async_trait::async_trait;
use haft::{ApprovalAnswer, Approver, Question, Runtime};
use haft_agent::{Agent, Resumed};
use model::{Told, answer};
use serde_json::json;
use std::sync::Arc;

/// Postpones every question. A program with a window would show it and wait.
struct Away;

#[async_trait]
impl Approver for Away {
    async fn ask(&self, question: &Question) -> ApprovalAnswer {
        println!("{} asks: {}", question.tool, question.arguments);
        ApprovalAnswer::Later
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let runtime = Runtime::builder()
        .dir(dir.path())
        .approver(Arc::new(Away))
        .interrupt_on(["write"])
        .build()?;
    let model = Told::model([
        answer(
            "",
            Some((
                "1",
                "write",
                json!({ "path": "price.txt", "content": "100" }),
            )),
        ),
        answer("Written.", None),
    ]);
    let agent = Agent::new(model, runtime);
    let mut events = agent.prompt("Set the price").await?;
    while events.next().await.is_some() {}

    for call in agent.pending_calls() {
        println!("waits: {} {}", call.id, call.name);
    }
    let changed = ApprovalAnswer::ApproveWith {
        arguments: json!({ "content": "90" }),
    };
    let resumed = Resumed {
        answers: vec![("1".to_owned(), changed)],
        prompt: None,
    };
    let mut events = agent.resume(resumed).await?;
    while events.next().await.is_some() {}
    let price = std::fs::read_to_string(dir.path().join("price.txt"))?;
    println!("{} The price is {price}.", agent.last_text());
    assert_eq!(price, "90");
    Ok(())
}
