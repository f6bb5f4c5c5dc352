//! Exports a session as JSON lines, Markdown or HTML.

use super::transcript::{self, moment};
use super::{failure, html, markdown};
use crate::exit::Failure;
use crate::output;
use haft::ops::effects::Store;
use haft_store::sessions::{
    Info, RecordItem, RecordedCall, RecordedEvent, Sessions, StoredMessage,
};
use serde_json::{Value, json};
use std::ops::ControlFlow;

/// Version of the JSON lines format.
const VERSION: u64 = 1;

/// Prints a session in the given format.
pub(super) fn run(
    sessions: &Sessions,
    store: Option<&Store>,
    id: &str,
    format: &str,
) -> Result<(), Failure> {
    let mut printed = Ok(());
    let mut print = |text: String| {
        printed = match format {
            "jsonl" => output::json_lines(&text),
            _ => output::partial_text(&text),
        };
        match printed {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    };
    match format {
        "md" => {
            transcript::walk(sessions, store, id, |piece| print(markdown::of(&piece)))
                .map_err(failure)?;
        }
        "html" => {
            let mut begun = false;
            transcript::walk(sessions, store, id, |piece| {
                if !begun {
                    begun = true;
                    print(html::begin(&piece))?;
                }
                print(html::of(&piece))
            })
            .map_err(failure)?;
            if begun {
                let _ = print(html::END.to_owned());
            }
        }
        _ => sessions
            .walk(id, |entry| print(line(&entry)))
            .map_err(failure)?,
    }
    printed
}

/// Returns a session as Markdown.
pub(crate) fn as_markdown(
    sessions: &Sessions,
    store: Option<&Store>,
    id: &str,
) -> Result<String, haft_store::sessions::Error> {
    let mut text = String::new();
    transcript::walk(sessions, store, id, |piece| {
        text.push_str(&markdown::of(&piece));
        ControlFlow::Continue(())
    })?;
    Ok(text)
}

/// Formats an entry as a line of JSON.
fn line(entry: &RecordItem) -> String {
    let mut line = match entry {
        RecordItem::Session(info) => session(info),
        RecordItem::Message(message) => self::message(message),
        RecordItem::Call(call) => self::call(call),
        RecordItem::Event(event) => self::event(event),
        _ => return String::new(),
    };
    line.push('\n');
    line
}

fn session(info: &Info) -> String {
    let (from, at) = info.forked_from.clone().unzip();
    let (parent, parent_call) = info.parent.clone().unzip();
    json!({
        "type": "session",
        "version": VERSION,
        "id": info.id,
        "kind": info.kind.name(),
        "work_dir": info.work_dir.to_string_lossy(),
        "toolset": info.toolset,
        "provider": info.provider,
        "model": info.model,
        "title": info.title,
        "created": moment(info.created),
        "parent": parent,
        "parent_call": parent_call,
        "forked_from": from,
        "forked_at": at,
        "system": info.system,
    })
    .to_string()
}

fn message(message: &StoredMessage) -> String {
    let head = json!({
        "type": "message",
        "id": message.id,
        "parent": message.parent,
        "time": moment(message.time),
    });
    with(&head, &[("message", &message.body)])
}

fn call(call: &RecordedCall) -> String {
    let head = json!({
        "type": "call",
        "call_id": call.call_id,
        "tool": call.tool,
        "has_effect": call.has_effect,
        "is_error": call.reply.is_some().then_some(call.is_error),
        "duration_ms": call.duration_ms,
        "output": call.output,
        "time": moment(call.time),
    });
    let reply = call.reply.as_deref().unwrap_or("null");
    with(&head, &[("arguments", &call.arguments), ("reply", reply)])
}

fn event(event: &RecordedEvent) -> String {
    let head = json!({ "type": "event", "seq": event.seq, "time": moment(event.time) });
    with(&head, &[("event", &event.body)])
}

/// Adds fields whose values are copied byte for byte from the record.
fn with(head: &Value, fields: &[(&str, &str)]) -> String {
    let mut out = head.to_string();
    out.pop();
    for (name, text) in fields {
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        out.push_str(&format!(",\"{name}\":"));
        if is_json && !text.contains('\n') {
            out.push_str(text);
        } else {
            // Reformatted to fit on one line; text that is not JSON becomes a JSON
            // string.
            let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(*text));
            out.push_str(&value.to_string());
        }
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_values_keep_their_bytes() {
        let head = json!({ "type": "x" });
        assert_eq!(
            with(&head, &[("a", r#"{"n":1.0e2}"#)]),
            r#"{"type":"x","a":{"n":1.0e2}}"#
        );
        assert_eq!(with(&head, &[("a", "{\n}")]), r#"{"type":"x","a":{}}"#);
        assert_eq!(
            with(&head, &[("a", "no \"json")]),
            r#"{"type":"x","a":"no \"json"}"#
        );
    }
}
