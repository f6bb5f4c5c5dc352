//! Ollama's own chat.

use super::{
    Block, CallResult, ChatAnswer, Wire, WireRequest, elements, joined, list, number, text,
};
use crate::provider::draft::{AnswerItem, Draft, Fault, ItemKind, StopReason, to_object, with};
use crate::provider::effort::Effort;
use serde_json::{Value, json};

pub(super) struct Chat;

/// Returns how much a model thinks. Only gpt-oss has levels; others think or do not.
fn thinking(model: &str, effort: Effort) -> Value {
    match effort {
        _ if !model.contains("gpt-oss") => json!(effort > Effort::Minimal),
        Effort::Minimal | Effort::Low => json!("low"),
        Effort::Medium => json!("medium"),
        Effort::High | Effort::Max => json!("high"),
    }
}

impl Wire for Chat {
    fn takes(&self, _: &str, _: &str, in_result: bool) -> bool {
        !in_result
    }

    fn call_id(&self, id: &str) -> String {
        id.to_owned()
    }

    fn head(&self, request: &WireRequest<'_>) -> Value {
        let max_output = request.request.max_output;
        // Ollama truncates a conversation to its own small default without `num_ctx`.
        let options = object! { "num_predict": max_output, "num_ctx": request.context_window };
        let think = request.effort.map(|effort| thinking(request.model, effort));
        object! {
            "model": request.model, "tools": request.functions(), "think": think,
            "options": Some(options).filter(|options| *options != json!({})), "stream": true,
        }
    }

    fn user(&self, blocks: &[Block<'_>]) -> Vec<Value> {
        let pictures = blocks.iter().filter_map(|block| match block {
            Block::Picture { data, .. } => Some(json!(data)),
            Block::Text(_) => None,
        });
        let pictures = list(pictures.collect());
        vec![object! { "role": "user", "content": joined(blocks), "images": pictures }]
    }

    fn answer(&self, _: &str, items: Vec<AnswerItem>) -> Vec<Value> {
        let answer = ChatAnswer::new(items, |call| {
            let arguments = to_object(call.arguments);
            let function = object! { "name": call.name, "arguments": arguments };
            with(
                call.native,
                [("function", function), ("id", call.id.into())],
            )
        });
        let reasoning: Vec<String> = answer.reasoning.into_iter().map(|item| item.text).collect();
        let thinking = (!reasoning.is_empty()).then(|| reasoning.join("\n"));
        let tool_calls = list(answer.calls);
        if answer.text.is_empty() && thinking.is_none() && tool_calls.is_none() {
            return Vec::new();
        }
        vec![object! {
            "role": "assistant", "content": answer.text, "thinking": thinking,
            "tool_calls": tool_calls,
        }]
    }

    fn result(&self, _: &str, result: CallResult<'_>) -> Value {
        object! {
            "role": "tool", "content": joined(&result.blocks), "tool_name": result.tool,
            "tool_call_id": result.id,
        }
    }

    fn read(&self, frame: Value, draft: &mut Draft<'_>) -> Result<(), Fault> {
        let message = &frame["message"];
        if !text(message, "thinking").is_empty() {
            draft.end_text();
            draft.add_to_last(ItemKind::Reasoning, text(message, "thinking"));
        }
        draft.add_text(text(message, "content"));
        for call in elements(message, "tool_calls") {
            draft.add_call(None, text(call, "id"), &call["function"], call);
        }
        let reason = text(&frame, "done_reason");
        if frame["done"] == true || !reason.is_empty() {
            draft.usage.input = number(&frame["prompt_eval_count"]);
            draft.usage.output = number(&frame["eval_count"]);
            draft.usage.cache_read = number(&frame["prompt_eval_cached_count"]);
            draft.stop = Some(match reason {
                "" | "stop" => StopReason::Complete,
                "length" => StopReason::Length,
                other => StopReason::Other(other.to_owned()),
            });
            draft.is_complete = true;
        }
        Ok(())
    }
}
