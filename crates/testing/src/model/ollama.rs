//! Ollama's native API: one line of JSON per chunk.

use super::{ModelReply, chunks};
use serde_json::{Value, json};

pub(super) fn write(reply: &ModelReply, model: &str) -> String {
    let mut out = String::new();
    let mut send = |message: Value, last: Option<Value>| {
        let mut line = json!({ "model": model, "created_at": "2026-01-01T00:00:00Z",
            "message": message, "done": last.is_some() });
        if let (Some(Value::Object(last)), Some(line)) = (last, line.as_object_mut()) {
            line.extend(last);
        }
        out.push_str(&line.to_string());
        out.push('\n');
    };
    for text in chunks(&reply.reasoning) {
        send(
            json!({ "role": "assistant", "content": "", "thinking": text }),
            None,
        );
    }
    for text in chunks(&reply.text) {
        send(json!({ "role": "assistant", "content": text }), None);
    }
    for call in &reply.calls {
        let arguments: Value =
            serde_json::from_str(&call.arguments).unwrap_or(json!(call.arguments));
        let mut item = json!({ "function": { "name": call.name, "arguments": arguments } });
        if !call.id.is_empty() {
            item["id"] = json!(call.id);
        }
        send(
            json!({ "role": "assistant", "content": "", "tool_calls": [item] }),
            None,
        );
    }
    let tokens = reply.tokens;
    send(
        json!({ "role": "assistant", "content": "" }),
        Some(json!({
            "done_reason": reply.stop.as_deref().unwrap_or("stop"),
            "prompt_eval_count": tokens.input, "eval_count": tokens.output,
        })),
    );
    out
}
