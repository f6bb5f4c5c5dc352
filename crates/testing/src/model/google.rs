//! Google's Gemini.

use super::{Says, event, pieces};
use serde_json::{Value, json};

pub(super) fn write(says: &Says) -> String {
    let mut out = String::new();
    let tokens = says.tokens;
    let usage = json!({
        "promptTokenCount": tokens.input,
        "candidatesTokenCount": tokens.output.saturating_sub(tokens.reasoning),
        "thoughtsTokenCount": tokens.reasoning,
        "cachedContentTokenCount": tokens.cache_read,
        "totalTokenCount": tokens.input + tokens.output,
    });
    let mut send = |parts: Vec<Value>, stop: Option<&str>| {
        let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
        if let Some(stop) = stop {
            candidate["finishReason"] = json!(stop);
        }
        let data = json!({ "candidates": [candidate], "usageMetadata": usage,
            "responseId": "scripted" });
        event(&mut out, None, &data);
    };
    for text in pieces(&says.reasoning) {
        send(vec![json!({ "text": text, "thought": true })], None);
    }
    for text in pieces(&says.text) {
        send(vec![json!({ "text": text })], None);
    }
    for (index, call) in says.calls.iter().enumerate() {
        // Arguments come as an object here, so text that is none cannot come at all.
        let args: Value = serde_json::from_str(&call.arguments).unwrap_or(json!({}));
        let mut function = json!({ "name": call.name, "args": args });
        if !call.id.is_empty() {
            function["id"] = json!(call.id);
        }
        let mut part = json!({ "functionCall": function });
        // The first call of a turn carries the signature.
        if index == 0 && !says.signature.is_empty() {
            part["thoughtSignature"] = json!(says.signature);
        }
        send(vec![part], None);
    }
    send(
        vec![json!({ "text": "" })],
        Some(says.stop.as_deref().unwrap_or("STOP")),
    );
    out
}
