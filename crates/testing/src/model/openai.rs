//! `OpenAI`'s two APIs: Completions and Responses.

use super::{ModelReply, chunks, event};
use serde_json::{Value, json};

pub(super) fn completions(reply: &ModelReply, model: &str) -> String {
    let mut out = String::new();
    let mut send = |delta: Value, stop: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": stop });
        let data = json!({
            "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1,
            "model": model, "choices": [choice],
        });
        event(&mut out, None, &data);
    };
    send(json!({ "role": "assistant", "content": "" }), None);
    for text in chunks(&reply.reasoning) {
        send(json!({ "reasoning_content": text }), None);
    }
    for text in chunks(&reply.text) {
        send(json!({ "content": text }), None);
    }
    for (index, call) in reply.calls.iter().enumerate() {
        let mut first = json!({ "index": index, "type": "function",
            "function": { "name": call.name, "arguments": "" } });
        if !call.id.is_empty() {
            first["id"] = json!(call.id);
        }
        send(json!({ "tool_calls": [first] }), None);
        for text in chunks(&call.arguments) {
            let next = json!({ "index": index, "function": { "arguments": text } });
            send(json!({ "tool_calls": [next] }), None);
        }
    }
    send(json!({}), Some(reply.stop_or("stop", "tool_calls")));
    let tokens = reply.tokens;
    let data = json!({
        "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1,
        "model": model, "choices": [],
        "usage": {
            "prompt_tokens": tokens.input, "completion_tokens": tokens.output,
            "total_tokens": tokens.input + tokens.output,
            "prompt_tokens_details": { "cached_tokens": tokens.cache_read },
            "completion_tokens_details": { "reasoning_tokens": tokens.reasoning },
        },
    });
    event(&mut out, None, &data);
    out.push_str("data: [DONE]\n\n");
    out
}

pub(super) fn responses(reply: &ModelReply, model: &str) -> String {
    let mut out = String::new();
    let mut number = 0;
    let mut send = |mut data: Value| {
        data["sequence_number"] = json!(number);
        number += 1;
        let name = data["type"].as_str().map(str::to_owned);
        event(&mut out, name.as_deref(), &data);
    };
    let response = |status: &str, output: &[Value]| {
        json!({ "id": "resp_scripted", "object": "response", "created_at": 1, "model": model,
            "status": status, "output": output })
    };
    send(json!({ "type": "response.created", "response": response("in_progress", &[]) }));
    let mut output: Vec<Value> = Vec::new();
    if !reply.reasoning.is_empty() {
        let at = output.len();
        let empty = json!({ "type": "reasoning", "id": "rs_scripted", "summary": [] });
        send(json!({ "type": "response.output_item.added", "output_index": at, "item": empty }));
        for text in chunks(&reply.reasoning) {
            send(json!({ "type": "response.reasoning_summary_text.delta",
                "item_id": "rs_scripted", "output_index": at, "summary_index": 0,
                "delta": text }));
        }
        let item = json!({ "type": "reasoning", "id": "rs_scripted",
            "summary": [{ "type": "summary_text", "text": reply.reasoning }],
            "encrypted_content": reply.signature });
        send(json!({ "type": "response.output_item.done", "output_index": at, "item": item }));
        output.push(item);
    }
    if !reply.text.is_empty() {
        let at = output.len();
        let item = |status: &str, text: &str| {
            json!({ "type": "message", "id": "msg_scripted", "role": "assistant",
                "status": status,
                "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
        };
        let mut started = item("in_progress", "");
        started["content"] = json!([]);
        send(json!({ "type": "response.output_item.added", "output_index": at, "item": started }));
        send(
            json!({ "type": "response.content_part.added", "item_id": "msg_scripted",
            "output_index": at, "content_index": 0,
            "part": { "type": "output_text", "text": "", "annotations": [] } }),
        );
        for text in chunks(&reply.text) {
            send(
                json!({ "type": "response.output_text.delta", "item_id": "msg_scripted",
                "output_index": at, "content_index": 0, "delta": text }),
            );
        }
        let done = item("completed", &reply.text);
        send(json!({ "type": "response.output_item.done", "output_index": at, "item": done }));
        output.push(done);
    }
    for (index, call) in reply.calls.iter().enumerate() {
        let at = output.len();
        let item = |status: &str, arguments: &str| {
            json!({ "type": "function_call", "id": format!("fc_{index}"), "call_id": call.id,
                "name": call.name, "arguments": arguments, "status": status })
        };
        let started = item("in_progress", "");
        send(json!({ "type": "response.output_item.added", "output_index": at, "item": started }));
        for text in chunks(&call.arguments) {
            send(json!({ "type": "response.function_call_arguments.delta",
                "item_id": format!("fc_{index}"), "output_index": at, "delta": text }));
        }
        let done = item("completed", &call.arguments);
        send(json!({ "type": "response.output_item.done", "output_index": at, "item": done }));
        output.push(done);
    }
    let tokens = reply.tokens;
    let mut done = response("completed", &output);
    done["usage"] = json!({
        "input_tokens": tokens.input, "output_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "input_tokens_details": { "cached_tokens": tokens.cache_read },
        "output_tokens_details": { "reasoning_tokens": tokens.reasoning },
    });
    let mut name = "response.completed";
    if let Some(reason) = &reply.stop {
        name = "response.incomplete";
        done["status"] = json!("incomplete");
        done["incomplete_details"] = json!({ "reason": reason });
    }
    send(json!({ "type": name, "response": done }));
    out
}
