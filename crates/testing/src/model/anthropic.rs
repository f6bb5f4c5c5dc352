//! Anthropic's Messages API.

use super::{ModelReply, chunks, event};
use serde_json::{Value, json};

pub(super) fn write(reply: &ModelReply, model: &str) -> String {
    let mut out = String::new();
    let mut send = |data: Value| {
        let name = data["type"].as_str().map(str::to_owned);
        event(&mut out, name.as_deref(), &data);
    };
    let tokens = reply.tokens;
    send(json!({ "type": "message_start", "message": {
        "id": "msg_scripted", "type": "message", "role": "assistant", "model": model,
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": tokens.input.saturating_sub(tokens.cache_read + tokens.cache_write),
            "cache_read_input_tokens": tokens.cache_read,
            "cache_creation_input_tokens": tokens.cache_write,
            "output_tokens": 1,
        },
    }}));
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        send(json!({ "type": "content_block_start", "index": index, "content_block": start }));
        for delta in deltas {
            send(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        send(json!({ "type": "content_block_stop", "index": index }));
        index += 1;
    };
    if !reply.reasoning.is_empty() {
        let parts = chunks(&reply.reasoning).into_iter();
        let parts = parts.map(|text| json!({ "type": "thinking_delta", "thinking": text }));
        let signed = json!({ "type": "signature_delta", "signature": reply.signature });
        block(
            json!({ "type": "thinking", "thinking": "", "signature": "" }),
            parts.chain([signed]).collect(),
        );
    }
    if !reply.redacted.is_empty() {
        block(
            json!({ "type": "redacted_thinking", "data": reply.redacted }),
            Vec::new(),
        );
    }
    if !reply.text.is_empty() {
        let parts = chunks(&reply.text).into_iter();
        let parts = parts.map(|text| json!({ "type": "text_delta", "text": text }));
        block(json!({ "type": "text", "text": "" }), parts.collect());
    }
    for call in &reply.calls {
        let parts = chunks(&call.arguments).into_iter();
        let parts = parts.map(|text| json!({ "type": "input_json_delta", "partial_json": text }));
        block(
            json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} }),
            parts.collect(),
        );
    }
    send(json!({ "type": "message_delta",
        "delta": { "stop_reason": reply.stop_or("end_turn", "tool_use"), "stop_sequence": null },
        "usage": {
            "output_tokens": tokens.output,
            "output_tokens_details": { "thinking_tokens": tokens.reasoning },
        },
    }));
    send(json!({ "type": "message_stop" }));
    out
}
