//! Google's Gemini API.

use super::{ModelReply, chunks, event};
use serde_json::{Value, json};

pub(super) fn write(reply: &ModelReply) -> String {
    let mut out = String::new();
    let tokens = reply.tokens;
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
    for text in chunks(&reply.reasoning) {
        send(vec![json!({ "text": text, "thought": true })], None);
    }
    for text in chunks(&reply.text) {
        send(vec![json!({ "text": text })], None);
    }
    for (index, call) in reply.calls.iter().enumerate() {
        // Arguments are an object in this protocol, so invalid JSON cannot be sent.
        let args: Value = serde_json::from_str(&call.arguments).unwrap_or(json!({}));
        let mut function = json!({ "name": call.name, "args": args });
        if !call.id.is_empty() {
            function["id"] = json!(call.id);
        }
        let mut part = json!({ "functionCall": function });
        // The first call of a turn carries the signature.
        if index == 0 && !reply.signature.is_empty() {
            part["thoughtSignature"] = json!(reply.signature);
        }
        send(vec![part], None);
    }
    send(
        vec![json!({ "text": "" })],
        Some(reply.stop.as_deref().unwrap_or("STOP")),
    );
    out
}
