//! Properties of the events of all runs.

use serde_json::Value;
use std::collections::HashMap;

/// Checks the schema, sequence numbers and times, and that starts and ends are paired.
pub(crate) fn are_right(events: &[Value], err: &str) {
    let schema = include_str!("../../../../docs/events.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for event in events {
        let wrong: Vec<_> = validator
            .iter_errors(event)
            .map(|error| error.to_string())
            .collect();
        assert!(wrong.is_empty(), "{event}: {wrong:?}");
    }
    let kinds: Vec<_> = events.iter().map(kind).collect();
    assert_eq!(kinds.first(), Some(&"agent_start"), "{kinds:?} {err}");
    assert_eq!(kinds.last(), Some(&"agent_end"), "{kinds:?}");
    for once in ["agent_start", "agent_end"] {
        assert_eq!(
            kinds.iter().filter(|kind| **kind == once).count(),
            1,
            "{kinds:?}"
        );
    }
    assert!(
        kinds.iter().filter(|kind| **kind == "error").count() <= 1,
        "{kinds:?}"
    );
    let session = &events[0]["session"];
    let (mut seq, mut time) = (0, String::new());
    let mut turn: Option<u64> = None;
    let mut calls: HashMap<&str, &str> = HashMap::new();
    for event in events {
        assert_eq!(&event["session"], session, "{event}");
        let next = event["seq"].as_u64().unwrap();
        assert!(next > seq, "{event} after {seq}");
        seq = next;
        let now = event["time"].as_str().unwrap();
        assert!(
            now.ends_with('Z') && now >= time.as_str(),
            "{event} after {time}"
        );
        now.clone_into(&mut time);
        match kind(event) {
            "turn_start" => {
                assert_eq!(turn, None, "{event}");
                turn = event["turn"].as_u64();
            }
            "turn_end" => {
                assert_eq!(turn, event["turn"].as_u64(), "{event}");
                assert!(event["usage"].is_object(), "{event}");
                let open: Vec<_> = calls
                    .iter()
                    .filter(|(_, state)| **state == "tool_start")
                    .collect();
                assert!(open.is_empty(), "{open:?} have no end in {kinds:?}");
                turn = None;
            }
            "message_update" => assert!(turn.is_some(), "{event}"),
            kind if kind.starts_with("tool_") || kind == "approval_needed" => {
                assert!(turn.is_some(), "{event} is in no turn: {kinds:?}");
                call(&mut calls, event);
            }
            _ => {}
        }
    }
    assert_eq!(turn, None, "the last turn has no end: {kinds:?}");
}

fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap()
}

fn call<'a>(calls: &mut HashMap<&'a str, &'a str>, event: &'a Value) {
    let id = event["call_id"].as_str().unwrap();
    assert!(event["tool"].is_string(), "{event}");
    let before = calls.get(id).copied();
    match kind(event) {
        "tool_start" => assert!(
            matches!(before, None | Some("approval_needed")),
            "{event} after {before:?}"
        ),
        "tool_update" => {
            assert_eq!(before, Some("tool_start"), "{event}");
            return;
        }
        // A running command may ask about a connection.
        "approval_needed" if before == Some("tool_start") => return,
        "tool_end" => assert_eq!(before, Some("tool_start"), "{event}"),
        _ => assert!(
            matches!(before, None | Some("approval_needed")),
            "{event} after {before:?}"
        ),
    }
    calls.insert(id, kind(event));
}
