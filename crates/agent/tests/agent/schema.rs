//! The published schema of events is up to date, and events satisfy it.

use crate::bed::{Bed, run};
use crate::scripted::{Scripted, calls, fails, text};
use haft_agent::ModelErrorKind;
use serde_json::json;

#[tokio::test]
async fn events_satisfy_the_published_schema() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/events.schema.json");
    let schema = haft_agent::events_schema();
    let made = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        made == published,
        "run again with UPDATE=1 and look at the difference"
    );

    let bed = Bed::new();
    bed.file("a.txt", "x");
    let model = Scripted::new([
        fails(ModelErrorKind::Status(503)),
        calls([
            ("1", "read", json!({ "path": "a.txt" })),
            ("2", "no_such_tool", json!({})),
        ]),
        text("Done."),
    ]);
    let events = run(&bed.agent(&model), "Go").await;
    let validator = jsonschema::validator_for(&schema).unwrap();
    for event in &events {
        let wrong: Vec<_> = validator
            .iter_errors(event)
            .map(|error| error.to_string())
            .collect();
        assert!(wrong.is_empty(), "{event}: {wrong:?}");
    }
    // The schema does not accept everything.
    assert!(!validator.is_valid(&json!({ "type": "agent_end" })));
}
