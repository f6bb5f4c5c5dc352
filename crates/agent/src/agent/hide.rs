//! Keys stay out of what those who watch are told. What a model said reaches its tools
//! as it is.

use crate::{AgentEvent, EventKind, Piece};
use haft::Content;
use haft_store::sessions::Redactor;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Takes them out of an event.
pub(super) fn from(kind: &mut EventKind, hidden: &Redactor) {
    if hidden.is_empty() {
        return;
    }
    match kind {
        EventKind::Agent(event) => from_agent(event, hidden),
        EventKind::Tool(event) => from_tool(event, hidden),
    }
}

fn from_agent(event: &mut AgentEvent, hidden: &Redactor) {
    match event {
        AgentEvent::MessageUpdate { delta: text, .. }
        | AgentEvent::Retry { reason: text, .. }
        | AgentEvent::Steering { text }
        | AgentEvent::AgentEnd { text, .. }
        | AgentEvent::Error { message: text } => from_text(text, hidden),
        AgentEvent::AgentStart { .. }
        | AgentEvent::TurnStart { .. }
        | AgentEvent::Compaction { .. }
        | AgentEvent::TurnLimitReached { .. }
        | AgentEvent::TurnEnd { .. } => {}
    }
}

fn from_tool(event: &mut haft::EventKind, hidden: &Redactor) {
    match event {
        haft::EventKind::ToolStart {
            tool, arguments, ..
        } => {
            from_text(tool, hidden);
            from_value(arguments, hidden);
        }
        haft::EventKind::ApprovalNeeded {
            tool,
            arguments,
            question,
            ..
        } => {
            from_text(tool, hidden);
            from_value(arguments, hidden);
            question.iter_mut().for_each(|text| from_text(text, hidden));
        }
        haft::EventKind::ToolUpdate { tool, content, .. } => {
            from_text(tool, hidden);
            from_content(content, hidden);
        }
        haft::EventKind::ToolEnd {
            tool,
            details,
            content,
            ..
        } => {
            from_text(tool, hidden);
            from_map(details, hidden);
            if content.iter().any(|block| has(block, hidden)) {
                let content: &mut Vec<Content> = Arc::make_mut(content);
                from_content(content, hidden);
            }
        }
        haft::EventKind::ToolDenied { tool, reason, .. } => {
            from_text(tool, hidden);
            from_text(reason, hidden);
        }
        _ => {}
    }
}

fn from_text(text: &mut String, hidden: &Redactor) {
    if let Cow::Owned(cleaned) = hidden.clean(text) {
        *text = cleaned;
    }
}

fn from_content(content: &mut [Content], hidden: &Redactor) {
    for block in content {
        if let Content::Text { text } = block {
            from_text(text, hidden);
        }
    }
}

fn has(block: &Content, hidden: &Redactor) -> bool {
    match block {
        Content::Text { text } => matches!(hidden.clean(text), Cow::Owned(_)),
        _ => false,
    }
}

fn from_value(value: &mut Value, hidden: &Redactor) {
    match value {
        Value::String(text) => from_text(text, hidden),
        Value::Array(items) => items.iter_mut().for_each(|item| from_value(item, hidden)),
        Value::Object(fields) => from_map(fields, hidden),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn from_map(fields: &mut Map<String, Value>, hidden: &Redactor) {
    let is_named = |name: &String| matches!(hidden.clean(name), Cow::Owned(_));
    if fields.keys().any(is_named) {
        let all = std::mem::take(fields).into_iter();
        *fields = all
            .map(|(name, value)| (hidden.clean(&name).into_owned(), value))
            .collect();
    }
    fields
        .values_mut()
        .for_each(|value| from_value(value, hidden));
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
