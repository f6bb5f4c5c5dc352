//! Redacts keys from events. The arguments that tools receive are not redacted.

use crate::{AgentEvent, Chunk, EventKind};
use haft::Content;
use haft_store::record::Redactor;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Removes secrets from a text.
type Clean<'a> = &'a dyn for<'t> Fn(&'t str) -> Cow<'t, str>;

/// Redacts an event. In haft's own messages and in the arguments of calls, passwords in URLs
/// are removed as well as keys. In text of the model and output of tools only keys are
/// removed, since the user asked for that text.
pub(super) fn event(kind: &mut EventKind, secrets: &Redactor) {
    let keys: Clean<'_> = &|text| secrets.clean(text);
    let all: Clean<'_> = &|text| secrets.scrub(text);
    match kind {
        EventKind::Agent(event) => redact_agent(event, keys, all),
        EventKind::Tool(event) => redact_tool(event, keys, all),
    }
}

fn redact_agent(event: &mut AgentEvent, keys: Clean<'_>, all: Clean<'_>) {
    match event {
        AgentEvent::MessageUpdate { delta: text, .. } | AgentEvent::Steering { text } => {
            redact_text(text, keys)
        }
        AgentEvent::AgentEnd { text, response, .. } => {
            redact_text(text, keys);
            response
                .iter_mut()
                .for_each(|value| redact_value(value, keys));
        }
        AgentEvent::Retry { reason: text, .. }
        | AgentEvent::PictureLeftOut { reason: text, .. }
        | AgentEvent::Error { message: text } => redact_text(text, all),
        AgentEvent::AgentStart { .. }
        | AgentEvent::TurnStart { .. }
        | AgentEvent::BackgroundTask { .. }
        | AgentEvent::BackgroundWait { .. }
        | AgentEvent::Compaction { .. }
        | AgentEvent::TurnLimitReached { .. }
        | AgentEvent::TurnEnd { .. }
        | AgentEvent::LastLook { .. } => {}
    }
}

fn redact_tool(event: &mut haft::EventKind, keys: Clean<'_>, all: Clean<'_>) {
    match event {
        haft::EventKind::ToolStart {
            tool, arguments, ..
        } => {
            redact_text(tool, keys);
            redact_value(arguments, all);
        }
        haft::EventKind::ApprovalNeeded {
            tool,
            arguments,
            question,
            ..
        } => {
            redact_text(tool, keys);
            redact_value(arguments, all);
            question.iter_mut().for_each(|text| redact_text(text, all));
        }
        haft::EventKind::ReviewNeeded { tool, changes, .. } => {
            redact_text(tool, keys);
            changes
                .iter_mut()
                .for_each(|change| redact_value(change, all));
        }
        haft::EventKind::ToolUpdate { tool, content, .. } => {
            redact_text(tool, keys);
            redact_content(content, keys);
        }
        haft::EventKind::ToolEnd {
            tool,
            details,
            content,
            ..
        } => {
            redact_text(tool, keys);
            redact_map(details, all);
            if content.iter().any(|block| has(block, keys)) {
                let content: &mut Vec<Content> = Arc::make_mut(content);
                redact_content(content, keys);
            }
        }
        haft::EventKind::ToolDenied { tool, reason, .. } => {
            redact_text(tool, keys);
            redact_text(reason, all);
        }
        _ => {}
    }
}

fn redact_text(text: &mut String, clean: Clean<'_>) {
    if let Cow::Owned(cleaned) = clean(text) {
        *text = cleaned;
    }
}

fn redact_content(content: &mut [Content], clean: Clean<'_>) {
    for block in content {
        if let Content::Text { text } = block {
            redact_text(text, clean);
        }
    }
}

fn has(block: &Content, clean: Clean<'_>) -> bool {
    match block {
        Content::Text { text } => matches!(clean(text), Cow::Owned(_)),
        _ => false,
    }
}

fn redact_value(value: &mut Value, clean: Clean<'_>) {
    match value {
        Value::String(text) => redact_text(text, clean),
        Value::Array(items) => items.iter_mut().for_each(|item| redact_value(item, clean)),
        Value::Object(fields) => redact_map(fields, clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn redact_map(fields: &mut Map<String, Value>, clean: Clean<'_>) {
    let is_named = |name: &String| matches!(clean(name), Cow::Owned(_));
    if fields.keys().any(is_named) {
        let all = std::mem::take(fields).into_iter();
        *fields = all
            .map(|(name, value)| (clean(&name).into_owned(), value))
            .collect();
    }
    fields
        .values_mut()
        .for_each(|value| redact_value(value, clean));
}

/// Redacts the chunks of one answer. A key may be split across chunks, so the end of a chunk
/// that may be the start of a key is held back until the next chunk.
pub(super) struct ChunkRedactor {
    secrets: Arc<Redactor>,
    held: Option<Chunk>,
}

impl ChunkRedactor {
    pub(super) fn new(secrets: Arc<Redactor>) -> Self {
        Self {
            secrets,
            held: None,
        }
    }

    /// Adds a chunk, or `None` at the end, and returns the chunks that may be shown now.
    pub(super) fn next(&mut self, chunk: Option<Chunk>) -> impl Iterator<Item = Chunk> {
        if self.secrets.is_empty() {
            return [None, chunk].into_iter().flatten();
        }
        let (before, mut chunk) = match (self.held.take(), chunk) {
            (Some(Chunk::Text(held)), Some(Chunk::Text(text))) => {
                (None, Some(Chunk::Text(held + &text)))
            }
            (Some(Chunk::Reasoning(held)), Some(Chunk::Reasoning(text))) => {
                (None, Some(Chunk::Reasoning(held + &text)))
            }
            (held, chunk) => (held, chunk),
        };
        if let Some(Chunk::Text(text) | Chunk::Reasoning(text)) = &mut chunk {
            let mut shown = self.secrets.clean(text).into_owned();
            let rest = shown.split_off(self.secrets.incomplete_from(&shown));
            *text = shown;
            let rest = Some(rest).filter(|rest| !rest.is_empty());
            self.held = rest.map(|rest| match &chunk {
                Some(Chunk::Reasoning(_)) => Chunk::Reasoning(rest),
                _ => Chunk::Text(rest),
            });
        }
        let is_something = |chunk: &Chunk| match chunk {
            Chunk::Text(text) | Chunk::Reasoning(text) | Chunk::Call(text) => !text.is_empty(),
        };
        [before, chunk.filter(is_something)].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(secrets: &str, chunks: &[Chunk]) -> Vec<Chunk> {
        let mut all = ChunkRedactor::new(Arc::new(Redactor::new([secrets.to_owned()])));
        let come = chunks.iter().cloned().map(Some).chain([None]);
        come.flat_map(|chunk| all.next(chunk).collect::<Vec<_>>())
            .collect()
    }

    fn text(text: &str) -> Chunk {
        Chunk::Text(text.to_owned())
    }

    #[test]
    fn a_key_split_across_chunks_is_redacted() {
        let key = "sk-canary-é1";
        for cut in key.char_indices().map(|(at, _)| at).skip(1) {
            let (a, b) = key.split_at(cut);
            let all = shown(key, &[text(&format!("it is {a}")), text(b), text(" so")]);
            let all = format!("{all:?}");
            assert!(
                all.contains("[redacted]") && !all.contains(b),
                "{cut}: {all}"
            );
        }
        let letters: Vec<_> = key.chars().map(|one| text(&one.to_string())).collect();
        assert_eq!(shown(key, &letters), [text("[redacted]")]);
    }

    #[test]
    fn passwords_in_urls_are_redacted_in_messages_of_haft_and_in_arguments() {
        let url = "https://me:hunter2@host";
        let text = || url.to_owned();
        let arguments = serde_json::json!({ url: ["x", { "a": url }] });
        let details = Map::from_iter([("changed_arguments".to_owned(), arguments.clone())]);
        let id = || "c".to_owned();
        let cleaned = [
            EventKind::Tool(haft::EventKind::ToolStart {
                call_id: id(),
                tool: "t".to_owned(),
                arguments,
            }),
            EventKind::Tool(haft::EventKind::ToolDenied {
                call_id: id(),
                tool: "t".to_owned(),
                reason: text(),
            }),
            EventKind::Agent(AgentEvent::Error { message: text() }),
            EventKind::Tool(haft::EventKind::ToolEnd {
                call_id: id(),
                tool: "t".to_owned(),
                is_error: false,
                details,
                duration_ms: 0,
                bytes: 0,
                truncated: false,
                content: Arc::default(),
            }),
        ];
        for mut kind in cleaned {
            event(&mut kind, &Redactor::default());
            let shown = serde_json::to_string(&kind).unwrap();
            assert!(shown.contains("[redacted]@host"), "{shown}");
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        let mut words = EventKind::Agent(AgentEvent::MessageUpdate {
            kind: "text",
            delta: text(),
        });
        event(&mut words, &Redactor::default());
        assert!(serde_json::to_string(&words).unwrap().contains(url));
    }

    #[test]
    fn other_text_is_neither_held_back_nor_changed() {
        let call = Chunk::Call("ls".to_owned());
        let chunks = [
            text("tas"),
            text("ks"),
            Chunk::Reasoning("s".to_owned()),
            call.clone(),
            text("sk-can"),
        ];
        let expected = [
            text("ta"),
            text("sk"),
            text("s"),
            Chunk::Reasoning("s".to_owned()),
            call,
            text("sk-can"),
        ];
        assert_eq!(shown("sk-canary-1", &chunks), expected);
        assert_eq!(shown("short", &[text("short")]), [text("short")]);
    }
}
