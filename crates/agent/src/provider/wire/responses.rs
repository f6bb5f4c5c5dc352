//! `OpenAI`'s Responses.

use super::chat::level;
use super::{Block, CallResult, Wire, WireRequest, elements, legal, text};
use crate::ModelErrorKind;
use crate::provider::draft::{AnswerItem, Draft, Fault, ItemKind, StopReason, to_object, with};
use serde_json::{Value, json};
use std::borrow::Cow;

pub(super) struct Responses;

fn part(block: &Block<'_>) -> Value {
    match block {
        Block::Text(text) => json!({ "type": "input_text", "text": text }),
        Block::Picture { media_type, data } => json!({ "type": "input_image", "detail": "auto",
            "image_url": format!("data:{media_type};base64,{data}") }),
    }
}

/// Whether reasoning is encrypted; it cannot be sent back otherwise.
fn is_sealed(item: &Value) -> bool {
    !text(item, "encrypted_content").is_empty()
}

impl Wire for Responses {
    fn call_id(&self, id: &str) -> String {
        legal(id).trim_end_matches('_').to_owned()
    }

    fn head(&self, request: &WireRequest<'_>) -> Value {
        let tools = request.tools(|tool| {
            json!({ "type": "function", "name": tool.name, "parameters": tool.parameters,
                "strict": false, "description": tool.description })
        });
        // Without a summary, nothing of the reasoning is streamed.
        let reasoning = |effort| json!({ "effort": level(effort), "summary": "auto" });
        let reasoning = request.effort.map(reasoning);
        // The provider stores nothing. It returns reasoning encrypted, to be sent back.
        object! {
            "model": request.model, "instructions": request.system().map(str::trim),
            "max_output_tokens": request.request.max_output, "tools": tools, "store": false,
            "stream": true, "include": json!(["reasoning.encrypted_content"]),
            "prompt_cache_key": request.request.session, "reasoning": reasoning,
        }
    }

    fn conversation<'a>(&self, request: &WireRequest<'a>) -> (&'static str, Vec<Cow<'a, Value>>) {
        ("input", request.list(None))
    }

    fn user(&self, blocks: &[Block<'_>]) -> Vec<Value> {
        let message = |block| {
            object! { "type": "message", "role": "user", "content": vec![part(block)] }
        };
        blocks.iter().map(message).collect()
    }

    fn answer(&self, _: &str, items: Vec<AnswerItem>) -> Vec<Value> {
        let mut written = Vec::new();
        let mut is_paired = true;
        let mut items = items.into_iter().peekable();
        while let Some(item) = items.next() {
            let has_native = is_paired && item.native.is_object();
            // Without its reasoning, the next item must be sent without its id. Reasoning at
            // the end would be rejected.
            is_paired = item.kind != ItemKind::Reasoning
                || is_sealed(&item.native) && items.peek().is_some();
            written.push(match item.kind {
                ItemKind::Reasoning if !is_paired => continue,
                ItemKind::Reasoning => item.native,
                ItemKind::Call if has_native => with(item.native, [("call_id", item.id.into())]),
                _ if has_native => item.native,
                ItemKind::Call => json!({ "type": "function_call", "call_id": item.id,
                    "name": item.name, "arguments": to_object(item.arguments).to_string() }),
                ItemKind::Text => json!({ "type": "message", "role": "assistant", "content": [
                    { "type": "output_text", "text": item.text, "annotations": [] },
                ] }),
                ItemKind::Other => continue,
            });
        }
        written
    }

    fn result(&self, _: &str, result: CallResult<'_>) -> Value {
        let output = match &result.blocks[..] {
            [Block::Text(text)] => json!(text),
            blocks => blocks.iter().map(part).collect(),
        };
        object! {
            "type": "function_call_output", "call_id": result.id, "output": output,
            "status": "completed",
        }
    }

    fn read(&self, frame: Value, draft: &mut Draft<'_>) -> Result<(), Fault> {
        let index = frame["output_index"].as_u64();
        let mut add = |kind, text| {
            let at = draft.at(kind, index, Value::Null);
            draft.add(at, text);
        };
        let delta = text(&frame, "delta");
        match text(&frame, "type") {
            "response.output_item.added" => _ = begin(index, &frame["item"], draft),
            "response.output_item.done" => complete(index, &frame["item"], draft),
            "response.output_text.delta" | "response.refusal.delta" => {
                add(ItemKind::Text, delta);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                add(ItemKind::Reasoning, delta);
            }
            "response.reasoning_summary_part.added" if frame["summary_index"] != 0 => {
                add(ItemKind::Reasoning, "\n\n");
            }
            "response.function_call_arguments.delta" => add(ItemKind::Call, delta),
            "response.completed" | "response.incomplete" => end(&frame, draft)?,
            _ => {}
        }
        Ok(())
    }
}

fn begin(index: Option<u64>, item: &Value, draft: &mut Draft<'_>) -> usize {
    let kind = match text(item, "type") {
        "message" => ItemKind::Text,
        "reasoning" => ItemKind::Reasoning,
        "function_call" => ItemKind::Call,
        _ => ItemKind::Other,
    };
    let at = draft.open(kind, index, Value::Null);
    if kind == ItemKind::Call {
        draft.identify(at, text(item, "call_id"), text(item, "name"));
    }
    at
}

/// Reads a complete item, which repeats everything that was streamed of it.
fn complete(index: Option<u64>, item: &Value, draft: &mut Draft<'_>) {
    let at = match draft.find(index) {
        Some(at) => at,
        None => begin(index, item, draft),
    };
    let words = match text(item, "type") {
        "function_call" => text(item, "arguments").to_owned(),
        "message" => texts_in(item, "content").concat(),
        _ if texts_in(item, "summary").is_empty() => texts_in(item, "content").join("\n\n"),
        _ => texts_in(item, "summary").join("\n\n"),
    };
    let rest = words.strip_prefix(&*draft.items[at].text);
    draft.add(at, rest.unwrap_or_default());
    let open = &mut draft.items[at];
    // A message that does not repeat its text cannot be sent back as it is.
    if !words.is_empty() || open.kind != ItemKind::Text {
        open.native = item.clone();
    }
    if !words.is_empty() {
        open.text = words;
    }
}

/// Returns the texts in a list of parts.
fn texts_in<'a>(item: &'a Value, name: &str) -> Vec<&'a str> {
    let texts = elements(item, name).flat_map(|part| [text(part, "text"), text(part, "refusal")]);
    texts.filter(|text| !text.is_empty()).collect()
}

/// Reads the last message, which holds the whole answer.
fn end(frame: &Value, draft: &mut Draft<'_>) -> Result<(), Fault> {
    let response = &frame["response"];
    draft.count(&response["usage"], "input_tokens", "output_tokens");
    for (index, item) in (0..).zip(elements(response, "output")) {
        let known = draft.find(Some(index)).map(|at| &draft.items[at]);
        // Complete items are skipped, unless only this copy of reasoning is encrypted.
        let is_known = known.is_some_and(|known| {
            known.native.is_object() && (is_sealed(&known.native) || !is_sealed(item))
        });
        if !is_known {
            complete(Some(index), item, draft);
        }
    }
    let is_whole = text(frame, "type") == "response.completed";
    let reason = text(&response["incomplete_details"], "reason");
    draft.stop = Some(match (is_whole, text(response, "status"), reason) {
        (true, "" | "completed", _) => StopReason::Complete,
        (_, _, "max_output_tokens") => StopReason::Length,
        (_, _, "content_filter") => StopReason::Refused(String::new()),
        (_, status, reason) => {
            return Err(Fault(
                ModelErrorKind::Truncated,
                format!("broke off: {status} {reason}"),
            ));
        }
    });
    draft.is_complete = true;
    Ok(())
}
