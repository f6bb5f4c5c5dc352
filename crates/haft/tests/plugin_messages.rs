//! The published schema of plugin messages matches the real messages.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../docs/plugins.schema.json")).unwrap()
}

fn fits(part: &str, message: &Value) -> bool {
    let mut schema = schema();
    schema["anyOf"] = json!([{ "$ref": format!("#/$defs/{part}") }]);
    jsonschema::validator_for(&schema)
        .unwrap()
        .is_valid(message)
}

#[test]
fn messages_from_haft_match() {
    for message in [
        json!({ "type": "describe", "protocol": 2 }),
        json!({ "type": "init", "tools": [] }),
        json!({ "type": "call", "name": "a", "call_id": "call-1", "params": {} }),
        json!({ "type": "cancel", "call_id": "call-1" }),
    ] {
        assert!(fits("from_haft", &message), "{message}");
    }
    for message in [
        json!({ "type": "call", "name": "a", "params": {} }),
        json!({ "type": "call", "name": "a", "call_id": "1", "params": null }),
        json!({ "type": "stop" }),
    ] {
        assert!(!fits("from_haft", &message), "{message}");
    }
}

#[test]
fn messages_from_plugins_match() {
    let tool = json!({ "name": "a", "description": "A", "parameters": { "type": "object" } });
    for message in [
        tool.clone(),
        json!({ "tools": [tool] }),
        json!({ "type": "init", "tools": [tool], "protocol": 2 }),
        json!({ "content": [{ "type": "text", "text": "x" }], "error": false }),
        json!({ "type": "result", "call_id": "1", "content": [{ "type": "image", "data": "QQ==", "mimeType": "image/png" }], "is_error": true, "details": {} }),
        json!({ "type": "update", "call_id": "1", "content": [] }),
    ] {
        assert!(fits("from_plugin", &message), "{message}");
    }
    for message in [
        json!({ "name": "no spaces", "description": "A" }),
        json!({ "tools": [{}] }),
        json!({ "content": "x" }),
        json!({ "type": "update", "content": [] }),
    ] {
        assert!(!fits("from_plugin", &message), "{message}");
    }
}
