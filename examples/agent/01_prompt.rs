//! An agent works on a prompt: the model calls a tool, gets its result, and answers.
//!
//! `cargo run -p haft-agent --example 01_prompt`
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example shows its result"
)]

mod model;

use haft::Runtime;
use haft_agent::Agent;
use model::{Told, answer};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let runtime = Runtime::builder().dir(dir.path()).build()?;
    // A real one: `haft_agent::provider::connect(Settings::new(Provider::Anthropic, …))`.
    let model = Told::model([
        answer(
            "",
            Some((
                "1",
                "write",
                json!({ "path": "hello.txt", "content": "Hello.\n" }),
            )),
        ),
        answer("I wrote hello.txt.", None),
    ]);
    let agent = Agent::new(model, runtime).system("You write files.");

    let mut events = agent.prompt("Write a greeting").await?;
    while let Some(event) = events.next().await {
        println!("{}", serde_json::to_string(&event)?);
    }
    println!("{}", agent.last_text());
    assert_eq!(
        std::fs::read_to_string(dir.path().join("hello.txt"))?,
        "Hello.\n"
    );
    Ok(())
}
