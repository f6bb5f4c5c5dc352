//! `OpenAI`'s Chat Completions, which many other servers support.

use super::{Block, CallResult, ChatAnswer, PICTURES, Wire, WireRequest};
use super::{elements, joined, leading_number, list, text};
use crate::provider::draft::{AnswerItem, Draft, Fault, ItemKind, StopReason, to_object, with};
use crate::provider::effort::Effort;
use serde_json::{Map, Value, json};

/// Field names for reasoning. Some servers send it under several.
const REASONING: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];
/// Reasoning in a form that some providers want back.
const DETAILS: &str = "reasoning_details";
/// Type and field of a part of Mistral's content that holds reasoning.
const THINKING: &str = "thinking";
/// Key for the field name that reasoning came with.
const FIELD: &str = "field";

pub(super) struct Completions;

impl Wire for Completions {
    fn takes(&self, _: &str, media_type: &str, in_result: bool) -> bool {
        !in_result && PICTURES.contains(&media_type)
    }

    fn call_id(&self, id: &str) -> String {
        id.chars().take(40).collect()
    }

    fn head(&self, request: &WireRequest<'_>) -> Value {
        // Reasoning models reject the old name, and other servers only know that one.
        let limit = match reasons(request.model) {
            true => "max_completion_tokens",
            false => "max_tokens",
        };
        // Other servers may reject unknown fields.
        let cache = request.is_own.then_some(request.request.session);
        object! {
            "model": request.model, "tools": request.functions(),
            limit: request.request.max_output,
            "stream_options": json!({ "include_usage": true }), "stream": true,
            "prompt_cache_key": cache, "reasoning_effort": request.effort.map(level),
        }
    }

    fn user(&self, blocks: &[Block<'_>]) -> Vec<Value> {
        let part = |block: &Block<'_>| match block {
            Block::Text(text) => json!({ "type": "text", "text": text }),
            Block::Picture { media_type, data } => json!({ "type": "image_url", "image_url": {
                "url": format!("data:{media_type};base64,{data}"), "detail": "auto",
            } }),
        };
        let content = match blocks {
            [Block::Text(text)] => json!(text),
            blocks => blocks.iter().map(part).collect(),
        };
        vec![object! { "role": "user", "content": content }]
    }

    fn answer(&self, _: &str, items: Vec<AnswerItem>) -> Vec<Value> {
        let answer = ChatAnswer::new(items, |call| {
            let arguments = to_object(call.arguments).to_string();
            let function = object! { "name": call.name, "arguments": arguments };
            let kind = ("type", "function".into());
            with(
                call.native,
                [kind, ("function", function), ("id", call.id.into())],
            )
        });
        if answer.text.is_empty() && answer.calls.is_empty() {
            return Vec::new();
        }
        // Reasoning is sent back under its original name.
        let (mut reasoning, mut thoughts) = (Map::new(), Vec::new());
        for item in answer.reasoning {
            match text(&item.native, FIELD) {
                "" => {}
                THINKING => thoughts.push(json!({ "type": "text", "text": item.text })),
                name => _ = reasoning.insert(name.to_owned(), item.text.into()),
            }
            let details = item.native.get(DETAILS).cloned();
            reasoning.extend(details.map(|details| (DETAILS.to_owned(), details)));
        }
        let mut content = (!answer.text.is_empty()).then(|| answer.text.into());
        if let Some(thoughts) = list(thoughts) {
            let text = content.map(|text| json!({ "type": "text", "text": text }));
            let parts = [json!({ "type": THINKING, THINKING: thoughts })];
            content = list(parts.into_iter().chain(text).collect());
        }
        let mut message = object! { "role": "assistant", "content": content };
        if let Value::Object(message) = &mut message {
            message.extend(reasoning);
            message.extend(list(answer.calls).map(|calls| ("tool_calls".to_owned(), calls)));
        }
        vec![message]
    }

    fn result(&self, _: &str, result: CallResult<'_>) -> Value {
        let content = joined(&result.blocks);
        object! { "role": "tool", "tool_call_id": result.id, "content": content }
    }

    fn read(&self, frame: Value, draft: &mut Draft<'_>) -> Result<(), Fault> {
        if frame == "[DONE]" {
            draft.end_text();
            // Some servers send no reason, only this mark.
            if !draft.items.is_empty() {
                draft.stop.get_or_insert(StopReason::Complete);
            }
            draft.is_complete = true;
            return Ok(());
        }
        let mut choices = elements(&frame, "choices");
        let is_first = |choice: &&Value| choice["index"].as_u64().unwrap_or(0) == 0;
        let choice = choices.find(is_first).unwrap_or(&Value::Null);
        for usage in [&choice["usage"], &frame["usage"]] {
            draft.count(usage, "prompt_tokens", "completion_tokens");
        }
        let is_whole = choice["message"].is_object();
        add(&choice[if is_whole { "message" } else { "delta" }], draft);
        draft.stop = match text(choice, "finish_reason") {
            "" => draft.stop.take(),
            "length" | "max_tokens" | "model_length" => Some(StopReason::Length),
            "content_filter" => Some(StopReason::Refused(String::new())),
            // Other servers use names of their own for a normal end.
            _ => Some(StopReason::Complete),
        };
        Ok(())
    }
}

/// Returns the name of a level, also for `OpenAI`'s Responses.
pub(super) fn level(effort: Effort) -> &'static str {
    match effort {
        Effort::Max => "xhigh",
        other => other.name(),
    }
}

/// Whether this is a reasoning model of `OpenAI`, going by its name.
fn reasons(model: &str) -> bool {
    let version = model.strip_prefix("gpt-").and_then(leading_number);
    let series = model.strip_prefix('o').and_then(leading_number);
    version.is_some_and(|version| version >= 5) || series.is_some()
}

/// Reads a delta of the message.
fn add(delta: &Value, draft: &mut Draft<'_>) {
    let name = REASONING.iter().find(|name| !text(delta, name).is_empty());
    if let Some(name) = name {
        draft.end_text();
        let at = draft.at(ItemKind::Reasoning, None, json!({}));
        draft.add(at, text(delta, name));
        let native = &mut draft.items[at].native;
        if text(native, FIELD).is_empty() {
            native[FIELD] = json!(name);
        }
    }
    for detail in elements(delta, DETAILS) {
        let at = draft.at(ItemKind::Reasoning, None, json!({}));
        let details = &mut draft.items[at].native[DETAILS];
        if details.is_null() {
            *details = json!([]);
        }
        if let Some(details) = details.as_array_mut() {
            merge(details, detail);
        }
    }
    for part in elements(delta, "content") {
        for thought in elements(part, THINKING) {
            let at = draft.at(ItemKind::Reasoning, None, json!({ FIELD: THINKING }));
            draft.add(at, text(thought, "text"));
        }
        draft.add_text(text(part, "text"));
    }
    draft.add_text(text(delta, "content"));
    draft.add_to_last(ItemKind::Text, text(delta, "refusal"));
    elements(delta, "tool_calls").for_each(|chunk| call(chunk, draft));
}

/// Adds a reasoning detail. Text continues the last detail if the type is the same.
fn merge(details: &mut Vec<Value>, new: &Value) {
    let is_text = matches!(text(new, "type"), "reasoning.text" | "reasoning.summary");
    let alike = |last: &&mut Value| last["type"] == new["type"] && last["index"] == new["index"];
    let last = details.last_mut().filter(|_| is_text).filter(alike);
    let (Some(Value::Object(last)), Value::Object(new)) = (last, new) else {
        details.push(new.clone());
        return;
    };
    for (name, value) in new {
        match (last.get_mut(name), value) {
            (Some(Value::String(text)), Value::String(more))
                if ["text", "summary"].contains(&&**name) =>
            {
                text.push_str(more);
            }
            (None | Some(Value::Null), _) => _ = last.insert(name.clone(), value.clone()),
            _ => {}
        }
    }
}

/// Reads a delta of a call, which is found by its number, its id, or as the last one.
fn call(chunk: &Value, draft: &mut Draft<'_>) {
    let function = &chunk["function"];
    let (id, name) = (text(chunk, "id"), text(function, "name"));
    let index = chunk["index"].as_u64();
    // A known number with another id starts a new call, and so does a name without number
    // and id.
    let belongs = |item: &AnswerItem| {
        let is_named = id.is_empty() || item.id.is_empty() || item.id == id;
        let goes_on = index.is_some() || !id.is_empty() || name.is_empty();
        item.kind == ItemKind::Call && item.index == index && is_named && goes_on
    };
    let at = match draft.items.iter().rposition(belongs) {
        Some(at) => at,
        None => draft.open(ItemKind::Call, index, json!({})),
    };
    draft.identify(at, id, name);
    // Unknown fields of a call are sent back with it.
    for (key, value) in chunk.as_object().into_iter().flatten() {
        if !["index", "id", "type", "function"].contains(&&**key) {
            draft.items[at].native[key] = value.clone();
        }
    }
    match &function["arguments"] {
        Value::Null => {}
        Value::String(arguments) => draft.add(at, arguments),
        arguments => draft.add(at, &arguments.to_string()),
    }
}
