//! Keys stay out of what those who watch are told. What a model said reaches its tools
//! as it is.

use crate::{AgentEvent, EventKind, Piece};
use haft::Content;
use haft_store::sessions::Redactor;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Takes something out of a text.
type Clean<'a> = &'a dyn for<'t> Fn(&'t str) -> Cow<'t, str>;

/// Takes them out of an event. Where haft speaks for itself, and in the arguments of a call,
/// the passwords of addresses go too. The words of a model and what a tool said are as they
/// are but for keys: they are what the person asked for.
pub(super) fn from(kind: &mut EventKind, hidden: &Redactor) {
    let keys: Clean<'_> = &|text| hidden.clean(text);
    let all: Clean<'_> = &|text| hidden.scrub(text);
    match kind {
        EventKind::Agent(event) => from_agent(event, keys, all),
        EventKind::Tool(event) => from_tool(event, keys, all),
    }
}

fn from_agent(event: &mut AgentEvent, keys: Clean<'_>, all: Clean<'_>) {
    match event {
        AgentEvent::MessageUpdate { delta: text, .. } | AgentEvent::Steering { text } => {
            from_text(text, keys)
        }
        AgentEvent::AgentEnd { text, response, .. } => {
            from_text(text, keys);
            response
                .iter_mut()
                .for_each(|value| from_value(value, keys));
        }
        AgentEvent::Retry { reason: text, .. }
        | AgentEvent::PictureLeftOut { reason: text, .. }
        | AgentEvent::Error { message: text } => from_text(text, all),
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

fn from_tool(event: &mut haft::EventKind, keys: Clean<'_>, all: Clean<'_>) {
    match event {
        haft::EventKind::ToolStart {
            tool, arguments, ..
        } => {
            from_text(tool, keys);
            from_value(arguments, all);
        }
        haft::EventKind::ApprovalNeeded {
            tool,
            arguments,
            question,
            ..
        } => {
            from_text(tool, keys);
            from_value(arguments, all);
            question.iter_mut().for_each(|text| from_text(text, all));
        }
        haft::EventKind::ToolUpdate { tool, content, .. } => {
            from_text(tool, keys);
            from_content(content, keys);
        }
        haft::EventKind::ToolEnd {
            tool,
            details,
            content,
            ..
        } => {
            from_text(tool, keys);
            from_map(details, all);
            if content.iter().any(|block| has(block, keys)) {
                let content: &mut Vec<Content> = Arc::make_mut(content);
                from_content(content, keys);
            }
        }
        haft::EventKind::ToolDenied { tool, reason, .. } => {
            from_text(tool, keys);
            from_text(reason, all);
        }
        _ => {}
    }
}

fn from_text(text: &mut String, clean: Clean<'_>) {
    if let Cow::Owned(cleaned) = clean(text) {
        *text = cleaned;
    }
}

fn from_content(content: &mut [Content], clean: Clean<'_>) {
    for block in content {
        if let Content::Text { text } = block {
            from_text(text, clean);
        }
    }
}

fn has(block: &Content, clean: Clean<'_>) -> bool {
    match block {
        Content::Text { text } => matches!(clean(text), Cow::Owned(_)),
        _ => false,
    }
}

fn from_value(value: &mut Value, clean: Clean<'_>) {
    match value {
        Value::String(text) => from_text(text, clean),
        Value::Array(items) => items.iter_mut().for_each(|item| from_value(item, clean)),
        Value::Object(fields) => from_map(fields, clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn from_map(fields: &mut Map<String, Value>, clean: Clean<'_>) {
    let is_named = |name: &String| matches!(clean(name), Cow::Owned(_));
    if fields.keys().any(is_named) {
        let all = std::mem::take(fields).into_iter();
        *fields = all
            .map(|(name, value)| (clean(&name).into_owned(), value))
            .collect();
    }
    fields
        .values_mut()
        .for_each(|value| from_value(value, clean));
}

/// Pieces of one answer, which may have a key in several of them: an end that may be the
/// beginning of one waits for what follows.
pub(super) struct Pieces {
    hidden: Arc<Redactor>,
    held: Option<Piece>,
}

impl Pieces {
    pub(super) fn new(hidden: Arc<Redactor>) -> Self {
        Self { hidden, held: None }
    }

    /// What may be shown now that this came, or that nothing more comes.
    pub(super) fn next(&mut self, piece: Option<Piece>) -> impl Iterator<Item = Piece> {
        if self.hidden.is_empty() {
            return [None, piece].into_iter().flatten();
        }
        let (before, mut piece) = match (self.held.take(), piece) {
            (Some(Piece::Text(held)), Some(Piece::Text(text))) => {
                (None, Some(Piece::Text(held + &text)))
            }
            (Some(Piece::Reasoning(held)), Some(Piece::Reasoning(text))) => {
                (None, Some(Piece::Reasoning(held + &text)))
            }
            (held, piece) => (held, piece),
        };
        if let Some(Piece::Text(text) | Piece::Reasoning(text)) = &mut piece {
            let mut shown = self.hidden.clean(text).into_owned();
            let rest = shown.split_off(self.hidden.begun(&shown));
            *text = shown;
            let rest = Some(rest).filter(|rest| !rest.is_empty());
            self.held = rest.map(|rest| match &piece {
                Some(Piece::Reasoning(_)) => Piece::Reasoning(rest),
                _ => Piece::Text(rest),
            });
        }
        let is_something = |piece: &Piece| match piece {
            Piece::Text(text) | Piece::Reasoning(text) | Piece::Call(text) => !text.is_empty(),
        };
        [before, piece.filter(is_something)].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(hidden: &str, pieces: &[Piece]) -> Vec<Piece> {
        let mut all = Pieces::new(Arc::new(Redactor::new([hidden.to_owned()])));
        let come = pieces.iter().cloned().map(Some).chain([None]);
        come.flat_map(|piece| all.next(piece).collect::<Vec<_>>())
            .collect()
    }

    fn text(text: &str) -> Piece {
        Piece::Text(text.to_owned())
    }

    #[test]
    fn a_key_in_pieces_is_not_shown() {
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
    fn passwords_of_addresses_go_where_haft_speaks_and_in_arguments() {
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
            from(&mut kind, &Redactor::default());
            let shown = serde_json::to_string(&kind).unwrap();
            assert!(shown.contains("[redacted]@host"), "{shown}");
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        let mut words = EventKind::Agent(AgentEvent::MessageUpdate {
            kind: "text",
            delta: text(),
        });
        from(&mut words, &Redactor::default());
        assert!(serde_json::to_string(&words).unwrap().contains(url));
    }

    #[test]
    fn nothing_else_is_held_back_or_changed() {
        let call = Piece::Call("ls".to_owned());
        let pieces = [
            text("tas"),
            text("ks"),
            Piece::Reasoning("s".to_owned()),
            call.clone(),
            text("sk-can"),
        ];
        let expected = [
            text("ta"),
            text("sk"),
            text("s"),
            Piece::Reasoning("s".to_owned()),
            call,
            text("sk-can"),
        ];
        assert_eq!(shown("sk-canary-1", &pieces), expected);
        assert_eq!(shown("short", &[text("short")]), [text("short")]);
    }
}
