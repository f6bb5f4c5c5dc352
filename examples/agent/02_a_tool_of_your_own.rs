//! A custom tool, added while the agent exists, that gives the final answer.
//!
//! `cargo run -p haft-agent --example 02_a_tool_of_your_own`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

mod model;

use haft::prelude::*;
use haft_agent::Agent;
use model::{Told, answer};

/// Add two numbers. The sum is the answer.
#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

struct Add;

impl Tool for Add {
    const NAME: &'static str = "add";
    const EFFECT: Effect = Effect::Pure;
    type Args = Args;

    async fn call(&self, args: Args, _: &Context) -> Result<Reply, Error> {
        Ok(Reply::final_answer((args.a + args.b).to_string()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = haft::Runtime::builder().dir(".").preset("none").build()?;
    // Models sometimes write numbers as strings; haft repairs this.
    let model = Told::model([answer(
        "",
        Some(("1", "add", json!({ "a": 20, "b": "22" }))),
    )]);
    let agent = Agent::new(model, runtime);
    agent.tools().add(Add)?;

    let mut events = agent.prompt("What is 20 and 22?").await?;
    let mut answer = String::new();
    while let Some(event) = events.next().await {
        if let haft_agent::EventKind::Agent(haft_agent::AgentEvent::AgentEnd { text, .. }) =
            event.kind
        {
            answer = text;
        }
    }
    println!("{answer}");
    assert_eq!(answer, "42");
    Ok(())
}
