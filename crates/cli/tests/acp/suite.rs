//! The table of cases that any agent has to pass, and the help.

use crate::bed::{Bed, says};
use haft_testing::acp::{Client, conformance};
use serde_json::Value;

#[test]
fn the_agent_passes_every_case() {
    let bed = Bed::new(|_: &Value, _: usize| says("Hello"));
    let failures = conformance(&|| bed.agent(), &bed.folder());
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn the_help_says_what_it_is() {
    let bed = Bed::new(vec![]);
    let help = bed.says(&["acp", "--help"]);
    assert!(help.contains("Agent Client Protocol"), "{help}");
}

#[test]
fn the_settings_for_editors_start_it() {
    let bed = Bed::new(|_: &Value, _: usize| says("Hello"));
    let page = include_str!("../../../../docs/editors.md");
    let blocks = page.split("```json\n").skip(1);
    let settings: Vec<Value> = blocks
        .map(|block| serde_json::from_str(block.split("```").next().unwrap()).unwrap())
        .filter(|settings: &Value| settings.get("agent_servers").is_some())
        .collect();
    assert_eq!(settings.len(), 2);
    for settings in settings {
        let agent = &settings["agent_servers"]["haft"];
        let command = agent["command"].as_str().unwrap();
        assert!(command.ends_with("haft"), "{command}");
        let args: Vec<String> = serde_json::from_value(agent["args"].clone()).unwrap();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut client = Client::connect(&mut bed.command(&args));
        let session = client.session(&bed.folder());
        client.prompt(&session, "Hello");
        assert_eq!(client.text("agent_message_chunk"), "Hello");
    }
}
