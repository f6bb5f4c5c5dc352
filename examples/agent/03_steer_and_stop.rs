//! Sends a message to a working agent, which reads it before its next turn, and stops the
//! agent with every call answered.
//!
//! `cargo run -p haft-agent --example 03_steer_and_stop`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

mod model;

use haft::Runtime;
use haft_agent::{Agent, AgentEvent, EventKind};
use model::{Told, answer};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let runtime = Runtime::builder().dir(dir.path()).build()?;
    let model = Told::model([
        answer("", Some(("1", "ls", json!({ "path": "." })))),
        answer("It is empty, and I will be brief.", None),
        answer("", Some(("2", "ls", json!({ "path": "." })))),
    ]);
    let agent = Agent::new(model, runtime);

    let handle = agent.handle();
    handle.steer("Be brief.");
    let mut events = agent.prompt("What is here?").await?;
    while let Some(event) = events.next().await {
        if let EventKind::Agent(AgentEvent::Steering { text }) = &event.kind {
            println!("heard: {text}");
        }
    }
    println!("{}", agent.last_text());

    let mut events = agent.prompt("And now?").await?;
    agent.abort();
    let mut end = "";
    while let Some(event) = events.next().await {
        if let EventKind::Agent(AgentEvent::AgentEnd { reason, .. }) = event.kind {
            end = reason;
        }
    }
    println!("the second: {end}");
    assert_eq!(end, "interrupted");
    Ok(())
}
