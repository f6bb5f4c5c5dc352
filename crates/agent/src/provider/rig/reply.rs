//! A whole answer, in our words.

use super::Speaker;
use super::watch::{Watch, Written};
use crate::provider::Provider;
use crate::provider::failure::cut;
use crate::{Answer, ModelError, Part, Stop, ToolCall, Trouble, Usage};
use haft::ops::text::decode::visible;
use rig_core::completion::{CompletionResponse, FinishReason, Usage as RigUsage};
use rig_core::message::{AssistantContent, CallId, ToolCall as RigCall};
use serde_json::Value;
use std::collections::HashSet;

impl Speaker {
    /// An answer, or why it is none.
    pub(super) fn read(
        &self,
        response: CompletionResponse,
        written: &Written,
        watch: &Watch,
    ) -> Result<Answer, ModelError> {
        let finish = response.finish_reason();
        let refused = matches!(finish, Some(FinishReason::ContentFilter));
        let error = response.error.clone();
        if let Some(error) = error.as_deref().filter(|_| !refused) {
            let what = format!("broke off: {}", cut(error));
            return Err(self.blamed.error(Trouble::Cut, &what));
        }
        let usage = usage(&response.usage);
        let content = distinct(response.choice, |call| {
            let wrong = written.wrong(&call.id.wire());
            wrong
                .or_else(|| watch.repeated(&call.function.arguments))
                .map(str::to_owned)
        });
        let (content, texts): (Vec<_>, Vec<_>) = content.into_iter().unzip();
        let parts = content.iter().zip(texts);
        let mut parts: Vec<Part> = parts
            .filter_map(|(block, text)| part(block, text))
            .collect();
        let has_calls = parts.iter().any(|part| matches!(part, Part::Call(_)));
        if let (Some(FinishReason::Other(reason)), true) = (&finish, has_calls)
            && self.settings.provider != Provider::OpenaiCompletions
        {
            // Others that speak Chat Completions have words of their own for a good end.
            let what = format!("broke off with calls in its answer: {}", cut(reason));
            return Err(self.blamed.error(Trouble::Cut, &what));
        }
        let stop = match finish {
            Some(FinishReason::ContentFilter) => Stop::Refusal,
            Some(FinishReason::Length) => Stop::Length,
            _ if has_calls => Stop::Calls,
            _ => Stop::End,
        };
        if parts.is_empty() && stop == Stop::Refusal {
            let text = error.map_or_else(
                || "The provider refused to answer.".to_owned(),
                |error| visible(&cut(&error)),
            );
            parts.push(Part::Text { text });
        }
        if parts.is_empty() && stop != Stop::Length {
            let what = "sent an answer with nothing in it";
            return Err(self.blamed.error(Trouble::Empty, what));
        }
        let calls = parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call.id.clone()),
            _ => None,
        });
        let calls: Vec<String> = calls.collect();
        let native = match stop {
            // What was refused is told by its parts, if it is told at all.
            Stop::Refusal => None,
            _ => self
                .keep(content, calls)
                .map_err(|error| self.unkept(&error))?,
        };
        Ok(Answer {
            parts,
            stop,
            usage,
            model: self.id.model.clone(),
            native,
            left_out: Vec::new(),
        })
    }
}

/// The blocks of an answer with calls that have ids, each its own, and what `text` says
/// of a call. What the provider sent for a call stays with it whatever its id becomes.
fn distinct(
    choice: Vec<AssistantContent>,
    text: impl Fn(&RigCall) -> Option<String>,
) -> Vec<(AssistantContent, Option<String>)> {
    let mut taken = HashSet::new();
    let blocks = choice.into_iter().map(|block| {
        let native = block.native_item().cloned();
        let AssistantContent::ToolCall(mut call) = block else {
            return (block, None);
        };
        let text = text(&call);
        let mut id = call.id.wire().into_owned();
        let mut count = 1;
        while id.trim().is_empty() || !taken.insert(id.clone()) {
            count += 1;
            id = format!("{}_{count}", call.id.wire());
        }
        call.id = CallId::from_wire(id);
        let block = AssistantContent::ToolCall(call).canonical();
        let block = match native {
            Some(native) => block.with_native(native),
            None => block,
        };
        (block, text)
    });
    blocks.collect()
}

/// A block in our words. `text` is what the arguments of a call were written as, where
/// that says something else than what was read.
fn part(block: &AssistantContent, text: Option<String>) -> Option<Part> {
    match block {
        AssistantContent::Text(text) if !text.text.is_empty() => Some(Part::Text {
            text: text.text.clone(),
        }),
        AssistantContent::Reasoning(reasoning) if !reasoning.text.is_empty() => {
            Some(Part::Reasoning {
                text: reasoning.text.clone(),
            })
        }
        AssistantContent::ToolCall(call) => Some(Part::Call(ToolCall {
            id: call.id.wire().into_owned(),
            name: call.function.name.as_str().to_owned(),
            arguments: match call.function.invalid_arguments.clone().or(text) {
                Some(text) => Value::String(text),
                None => Value::Object(call.function.arguments.clone()),
            },
        })),
        _ => None,
    }
}

fn usage(usage: &RigUsage) -> Usage {
    Usage {
        input: usage.input_tokens.unwrap_or(0),
        output: usage.output_tokens.unwrap_or(0),
        cache_read: usage.cached_input_tokens.unwrap_or(0),
        cache_write: usage.cache_creation_input_tokens.unwrap_or(0),
        reasoning: usage.reasoning_tokens.unwrap_or(0),
        // One that is less than nothing would make room below a limit.
        cost: usage
            .cost
            .map(|cost| cost.total)
            .filter(|cost| cost.is_finite() && *cost >= 0.0),
    }
}
