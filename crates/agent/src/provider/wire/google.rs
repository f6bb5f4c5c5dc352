//! Google's Gemini.

use super::{Block, CallResult, Wire, WireRequest};
use super::{elements, leading_number, list, number, text, texts};
use crate::ModelErrorKind;
use crate::provider::draft::{AnswerItem, Draft, Fault, ItemKind, StopReason, to_object, with};
use crate::provider::effort::Effort;
use serde_json::{Value, json};
use std::borrow::Cow;

pub(super) struct GenerateContent;

/// Whether this is Gemini 3 or newer, which includes names without a number. Such models use
/// ids of calls, and accept more in results.
fn is_new(model: &str) -> bool {
    let model = model.strip_prefix("models/").unwrap_or(model);
    let version = model.strip_prefix("gemini-");
    version.is_some_and(|version| leading_number(version).is_none_or(|number| number >= 3))
}

fn level(effort: Effort) -> &'static str {
    match effort {
        Effort::Max => Effort::High.name(),
        other => other.name(),
    }
}

/// Returns a content, if it has parts.
fn content(role: &str, parts: Vec<Value>) -> Vec<Value> {
    let content = |parts| object! { "parts": parts, "role": role };
    list(parts).map(content).into_iter().collect()
}

fn text_part(text: &str) -> Value {
    json!({ "text": text, "thought": false })
}

impl Wire for GenerateContent {
    fn takes(&self, model: &str, media_type: &str, in_result: bool) -> bool {
        match media_type {
            "image/png" | "image/jpeg" | "image/webp" => is_new(model) || !in_result,
            "image/heic" | "image/heif" => !in_result,
            _ => false,
        }
    }

    fn head(&self, request: &WireRequest<'_>) -> Value {
        let tools = request.tools(|tool| {
            json!({ "name": tool.name, "description": tool.description,
                "parametersJsonSchema": tool.parameters })
        });
        let thinking = request.effort.map(|effort| match is_new(request.model) {
            true => json!({ "includeThoughts": true, "thinkingLevel": level(effort) }),
            false => json!({ "includeThoughts": true, "thinkingBudget": effort.tokens() }),
        });
        let generation = object! {
            "maxOutputTokens": request.request.max_output, "thinkingConfig": thinking,
        };
        let system = |text| json!({ "parts": [text_part(text)], "role": "model" });
        let tools = tools.map(|tools| json!([{ "functionDeclarations": tools }]));
        object! {
            "generationConfig": Some(generation).filter(|one| *one != json!({})),
            "systemInstruction": request.system().map(system), "tools": tools,
        }
    }

    fn conversation<'a>(&self, request: &WireRequest<'a>) -> (&'static str, Vec<Cow<'a, Value>>) {
        ("contents", request.list(None))
    }

    fn user(&self, blocks: &[Block<'_>]) -> Vec<Value> {
        let part = |block: &Block<'_>| match block {
            Block::Text(text) => text_part(text),
            Block::Picture { media_type, data } => json!({
                "inlineData": { "mimeType": media_type, "data": data }, "thought": false,
            }),
        };
        content("user", blocks.iter().map(part).collect())
    }

    fn answer(&self, model: &str, items: Vec<AnswerItem>) -> Vec<Value> {
        let parts = items.into_iter().filter_map(|item| match item.kind {
            ItemKind::Text | ItemKind::Reasoning => {
                let is_sent = is_signed(&item.native) || !item.text.trim().is_empty();
                is_sent.then(|| with(item.native, [("text", item.text.into())]))
            }
            ItemKind::Call => {
                let id = is_new(model).then_some(item.id);
                let arguments = to_object(item.arguments);
                let call = object! { "name": item.name, "args": arguments, "id": id };
                // Calls that the model did not sign are rejected without this.
                let unsigned = "skip_thought_signature_validator";
                Some(match is_new(model) && item.native.is_null() {
                    true => object! { "functionCall": call, "thoughtSignature": unsigned },
                    false => with(item.native, [("functionCall", call)]),
                })
            }
            ItemKind::Other => Some(item.native),
        });
        content("model", parts.collect())
    }

    fn result(&self, model: &str, result: CallResult<'_>) -> Value {
        let texts: Vec<&str> = texts(&result.blocks).collect();
        let output = match &texts[..] {
            [] => None,
            [text] => Some(json!(text)),
            texts if is_new(model) => Some(json!(texts)),
            texts => Some(texts.join("\n").into()),
        };
        let pictures = result.blocks.iter().filter_map(|block| match block {
            Block::Text(_) => None,
            Block::Picture { media_type, data } => {
                Some(json!({ "inlineData": { "mimeType": media_type, "data": data } }))
            }
        });
        let key = if result.is_error { "error" } else { "result" };
        let response = object! {
            "name": result.tool, "id": is_new(model).then_some(result.id),
            "response": output.map(|output| object! { key: output }),
            "parts": list(pictures.collect()),
        };
        object! { "functionResponse": response, "thought": false }
    }

    fn group(&self, results: Vec<Value>) -> Vec<Value> {
        content("user", results)
    }

    fn read(&self, frame: Value, draft: &mut Draft<'_>) -> Result<(), Fault> {
        let usage = &frame["usageMetadata"];
        if usage.is_object() {
            let count = |name: &str| number(&usage[name]);
            let (prompt, answer) = (count("promptTokenCount"), count("candidatesTokenCount"));
            draft.usage.reasoning = count("thoughtsTokenCount");
            draft.usage.input = prompt.saturating_add(count("toolUsePromptTokenCount"));
            draft.usage.output = answer.saturating_add(draft.usage.reasoning);
            draft.usage.cache_read = count("cachedContentTokenCount");
        }
        if let Some(reason) = reason(&frame["promptFeedback"]["blockReason"]) {
            let StopReason::Refused(_) = stop_reason(&reason) else {
                return Err(Fault(
                    ModelErrorKind::Truncated,
                    format!("blocked the prompt: {reason}"),
                ));
            };
            draft.stop = Some(stop_reason(&reason));
            draft.is_complete = true;
        }
        // Only one answer was requested.
        let is_first = |one: &&Value| one["index"].is_null() || one["index"].as_f64() == Some(0.0);
        let Some(candidate) = elements(&frame, "candidates").find(is_first) else {
            return Ok(());
        };
        for one in elements(&candidate["content"], "parts") {
            part(one, draft);
        }
        if let Some(reason) = reason(&candidate["finishReason"]) {
            // More may follow a normal end, but not a failure.
            let stop = stop_reason(&reason);
            draft.is_complete = !matches!(stop, StopReason::Complete | StopReason::Length);
            draft.stop = Some(stop);
        }
        Ok(())
    }
}

fn is_signed(part: &Value) -> bool {
    !text(part, "thoughtSignature").is_empty()
}

/// Reads a part. Text continues the previous part if the kind is the same, but each signature
/// stays with its part.
fn part(part: &Value, draft: &mut Draft<'_>) {
    let call = &part["functionCall"];
    if call.is_object() {
        return draft.add_call(None, text(call, "id"), call, part);
    }
    let (kind, words) = match part["text"].as_str() {
        None => (ItemKind::Other, ""),
        Some("") if !is_signed(part) => return,
        Some(words) if part["thought"] == true => (ItemKind::Reasoning, words),
        Some(words) => (ItemKind::Text, words),
    };
    let continues = |last: &&AnswerItem| {
        let has_room = !is_signed(&last.native) || !is_signed(part);
        last.kind == kind && kind != ItemKind::Other && has_room
    };
    let at = match draft.items.last().filter(continues) {
        Some(_) => draft.items.len() - 1,
        None => draft.open(kind, None, part.clone()),
    };
    if is_signed(part) {
        draft.items[at].native["thoughtSignature"] = part["thoughtSignature"].clone();
    }
    draft.add(at, words);
}

/// Returns the name of a reason, if it is set.
fn reason(value: &Value) -> Option<String> {
    match value {
        Value::String(name) if name.is_empty() || name.ends_with("_UNSPECIFIED") => None,
        Value::String(name) => Some(name.clone()),
        Value::Number(number) if number.as_f64() != Some(0.0) => Some(format!("reason {number}")),
        _ => None,
    }
}

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "STOP" => StopReason::Complete,
        "MAX_TOKENS" => StopReason::Length,
        "BLOCKLIST" | "SPII" | "MODEL_ARMOR" | "JAILBREAK" => StopReason::Refused(String::new()),
        _ if reason.ends_with("SAFETY") || reason.ends_with("PROHIBITED_CONTENT") => {
            StopReason::Refused(String::new())
        }
        other => StopReason::Other(other.to_owned()),
    }
}
