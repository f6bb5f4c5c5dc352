//! Anthropic's Messages.

use super::{Block, CallResult, Wire, WireRequest, leading_number, number, text};
use crate::provider::draft::{AnswerItem, Draft, Fault, ItemKind, StopReason, to_object, with};
use crate::provider::effort::Effort;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Model families that can answer with 64,000 tokens.
const RECENT: [&str; 3] = ["claude-opus-4", "claude-sonnet-4", "claude-haiku-4"];

pub(super) struct Messages;

/// Marks the end of a prefix that the provider caches.
fn mark(last: Option<&mut Value>) {
    if let Some(Value::Object(last)) = last {
        last.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
}

fn binds_thinking(request: &WireRequest<'_>) -> bool {
    request.known.is_some_and(|known| known.binds_thinking)
}

/// Whether the model takes a number of tokens to think, instead of a level: all before 4.6.
fn takes_budget(model: &str) -> bool {
    let Some(name) = model.strip_prefix("claude-") else {
        return false;
    };
    let version = name.split_once('-').map(|(_, version)| version);
    let minor = version.and_then(|version| version.strip_prefix('4'));
    // A longer number is the date of version 4.0.
    let is_old = |minor: &str| {
        let minor = leading_number(minor.trim_start_matches('-'));
        minor.is_none_or(|minor| !(6..100).contains(&minor))
    };
    name.starts_with('3') || minor.is_some_and(is_old)
}

fn level(effort: Effort) -> &'static str {
    match effort {
        Effort::Minimal => Effort::Low.name(),
        other => other.name(),
    }
}

/// Returns how the model thinks; `None` leaves that to the provider.
fn thinking(request: &WireRequest<'_>, max_output: u64) -> Option<Value> {
    // Otherwise such a model rejects thinking from requests with other tools.
    let binding = json!({ "prefix_mismatch_behavior": "drop_block" });
    let binding = binds_thinking(request).then_some(binding);
    match request.effort {
        // Thinking is a part of the answer's tokens.
        Some(effort) if takes_budget(request.model) => {
            let budget = effort.tokens().min(max_output / 2);
            let enabled = json!({ "type": "enabled", "budget_tokens": budget });
            (budget >= Effort::Minimal.tokens()).then_some(enabled)
        }
        // Newer models do not show their thinking otherwise.
        Some(_) => {
            Some(object! { "type": "adaptive", "block_binding": binding, "display": "summarized" })
        }
        None => binding.map(|binding| json!({ "type": "adaptive", "block_binding": binding })),
    }
}

impl Wire for Messages {
    fn headers(&self, request: &WireRequest<'_>) -> Vec<(&'static str, &'static str)> {
        let mut headers = vec![("anthropic-version", "2023-06-01")];
        if binds_thinking(request) {
            headers.push(("anthropic-beta", "thinking-binding-controls-2026-08-01"));
        }
        headers
    }

    fn head(&self, request: &WireRequest<'_>) -> Value {
        let is_recent = RECENT
            .iter()
            .any(|family| request.model.starts_with(family));
        let usual = if is_recent { 64_000 } else { 8192 };
        let max_output = request.request.max_output;
        let max_output = max_output.or_else(|| request.known?.max_output);
        let mut tools = request.tools(|tool| {
            json!({ "name": tool.name, "description": tool.description,
                "input_schema": tool.parameters })
        });
        let system = |text| json!([{ "type": "text", "text": text }]);
        let mut system = request.system().map(system);
        for list in [&mut tools, &mut system].into_iter().flatten() {
            mark(list.as_array_mut().and_then(|list| list.last_mut()));
        }
        let choice = tools.is_some().then(|| json!({ "type": "auto" }));
        let max_output = max_output.unwrap_or(usual);
        let has_levels = !takes_budget(request.model);
        let level = request.effort.filter(|_| has_levels).map(level);
        let level = level.map(|level| json!({ "effort": level }));
        object! {
            "model": request.model, "max_tokens": max_output,
            "system": system, "tools": tools, "stream": true, "tool_choice": choice,
            "thinking": thinking(request, max_output), "output_config": level,
        }
    }

    /// Groups the conversation into turns. Marks its end, and the end of the previous request,
    /// which the provider has in its cache.
    fn conversation<'a>(&self, request: &WireRequest<'a>) -> (&'static str, Vec<Cow<'a, Value>>) {
        let mut messages = request.messages();
        messages.retain(|(_, blocks)| !blocks.is_empty());
        let answered = messages.iter().rposition(|(is_answer, _)| *is_answer);
        for end in [messages.len(), answered.unwrap_or(0)] {
            if let Some((false, blocks)) = messages.iter_mut().take(end).next_back() {
                mark(blocks.last_mut().map(Cow::to_mut));
            }
        }
        let mut turns: Vec<(bool, Vec<Value>)> = Vec::new();
        for (is_answer, blocks) in messages {
            let blocks = blocks.into_iter().map(Cow::into_owned);
            match turns.last_mut() {
                Some((last, turn)) if *last == is_answer => turn.extend(blocks),
                _ => turns.push((is_answer, blocks.collect())),
            }
        }
        let turns = turns.into_iter().map(|(is_answer, content)| {
            let role = if is_answer { "assistant" } else { "user" };
            Cow::Owned(object! { "role": role, "content": content })
        });
        ("messages", turns.collect())
    }

    fn user(&self, blocks: &[Block<'_>]) -> Vec<Value> {
        let blocks = blocks.iter().map(|block| match block {
            Block::Text(text) => json!({ "type": "text", "text": text }),
            Block::Picture { media_type, data } => json!({ "type": "image", "source": {
                "type": "base64", "media_type": media_type, "data": data,
            } }),
        });
        blocks.collect()
    }

    fn answer(&self, _: &str, items: Vec<AnswerItem>) -> Vec<Value> {
        let blocks = items.into_iter().filter_map(|item| match item.kind {
            ItemKind::Text if item.text.trim().is_empty() => None,
            ItemKind::Text => Some(with(
                item.native,
                [("type", "text".into()), ("text", item.text.into())],
            )),
            // Thinking without a signature is rejected.
            ItemKind::Reasoning if text(&item.native, "signature").is_empty() => None,
            ItemKind::Reasoning => Some(with(item.native, [("thinking", item.text.into())])),
            ItemKind::Call => Some(with(
                item.native,
                [
                    ("type", "tool_use".into()),
                    ("id", item.id.into()),
                    ("name", item.name.into()),
                    ("input", to_object(item.arguments)),
                ],
            )),
            ItemKind::Other => Some(item.native),
        });
        blocks.collect()
    }

    fn result(&self, _: &str, result: CallResult<'_>) -> Value {
        object! {
            "type": "tool_result", "tool_use_id": result.id,
            "content": self.user(&result.blocks), "is_error": result.is_error.then_some(true),
        }
    }

    fn read(&self, frame: Value, draft: &mut Draft<'_>) -> Result<(), Fault> {
        let (index, delta) = (frame["index"].as_u64(), &frame["delta"]);
        match text(&frame, "type") {
            "message_start" => count(&frame["message"]["usage"], draft),
            "content_block_start" => begin(index, &frame["content_block"], draft),
            "content_block_delta" => add(index, delta, draft),
            "message_delta" if !text(delta, "stop_reason").is_empty() => {
                count(&frame["usage"], draft);
                let explanation = text(&delta["stop_details"], "explanation");
                draft.stop = Some(match text(delta, "stop_reason") {
                    "end_turn" | "tool_use" | "stop_sequence" | "pause_turn" => {
                        StopReason::Complete
                    }
                    "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
                    "refusal" => StopReason::Refused(explanation.to_owned()),
                    other => StopReason::Other(other.to_owned()),
                });
                draft.is_complete = true;
            }
            _ => {}
        }
        Ok(())
    }
}

fn begin(index: Option<u64>, block: &Value, draft: &mut Draft<'_>) {
    let (kind, name) = match text(block, "type") {
        "text" => (ItemKind::Text, "text"),
        "thinking" => (ItemKind::Reasoning, "thinking"),
        "tool_use" => return draft.add_call(index, text(block, "id"), block, block),
        _ => (ItemKind::Other, ""),
    };
    let at = draft.open(kind, index, block.clone());
    draft.add(at, text(block, name));
}

fn add(index: Option<u64>, delta: &Value, draft: &mut Draft<'_>) {
    let (kind, block, name) = match text(delta, "type") {
        "text_delta" => (ItemKind::Text, "text", "text"),
        "thinking_delta" => (ItemKind::Reasoning, "thinking", "thinking"),
        "signature_delta" => (ItemKind::Reasoning, "thinking", "signature"),
        "input_json_delta" => (ItemKind::Call, "tool_use", "partial_json"),
        _ => return,
    };
    // Some gateways do not announce blocks.
    let at = draft.at(kind, index, json!({ "type": block }));
    if name == "signature" {
        let native = &mut draft.items[at].native;
        native[name] = (text(native, name).to_owned() + text(delta, name)).into();
    } else {
        draft.add(at, text(delta, name));
    }
}

/// Reads usage. Counts that are not repeated keep their value.
fn count(usage: &Value, draft: &mut Draft<'_>) {
    let own = &mut draft.usage;
    let update = |own: &mut u64, name: &str| *own = usage[name].as_u64().unwrap_or(*own);
    let uncached = own
        .input
        .saturating_sub(own.cache_read.saturating_add(own.cache_write));
    update(&mut own.cache_read, "cache_read_input_tokens");
    update(&mut own.cache_write, "cache_creation_input_tokens");
    update(&mut own.output, "output_tokens");
    // Some gateways repeat this count as zero.
    let uncached = match number(&usage["input_tokens"]) {
        0 => uncached,
        tokens => tokens,
    };
    own.input = uncached
        .saturating_add(own.cache_read)
        .saturating_add(own.cache_write);
    let thinking = usage["output_tokens_details"]["thinking_tokens"].as_u64();
    own.reasoning = thinking.unwrap_or(own.reasoning);
}
