//! Calls a tool of the standard toolset, as the loop of an agent would.
//!
//! `cargo run -p haft --example call_a_tool`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use haft::{Call, Runtime};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let runtime = Runtime::builder()
        .dir(dir.path())
        .toolset("standard")
        .preset("all")
        .build()?;

    // Send these to the model: names, descriptions, JSON Schemas.
    let names: Vec<String> = runtime
        .definitions()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    println!("tools: {}", names.join(" "));

    // A call from the model. A failure is a reply too: pass it on.
    let reply = runtime
        .call(
            "write",
            json!({ "path": "notes.txt", "content": "one\ntwo\n" }),
        )
        .await;
    println!("write: {}", reply.text());

    // The calls of one turn run concurrently; replies come in their order.
    let calls = vec![
        Call::new("read", json!({ "path": "notes.txt" })).id("call_1"),
        Call::new(
            "edit",
            json!({ "path": "notes.txt", "old_text": "tow", "new_text": "2" }),
        )
        .id("call_2"),
    ];
    for reply in runtime.run_all(calls).await {
        let kind = if reply.is_error() { "error" } else { "ok" };
        println!("{kind}: {}", reply.text());
    }
    Ok(())
}
