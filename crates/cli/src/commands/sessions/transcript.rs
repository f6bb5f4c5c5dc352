//! Splits a recorded session into parts to show: messages, calls and results. Records
//! that do not have the expected form are shown unchanged.

use haft::ops::effects::{SetState, Store};
use haft::truncate::format_size;
use haft_store::sessions::{Info, RecordItem, RecordedCall, SessionKind, Sessions, StoredMessage};
use serde_json::Value;
use std::ops::ControlFlow;
use std::time::SystemTime;

/// A part of a session.
pub(super) enum Part {
    /// Start of a session or of a sub-agent's.
    Session(Box<Info>),
    /// A text by the user, the model or haft; `message` is its number in the record.
    Words {
        who: &'static str,
        message: Option<i64>,
        time: SystemTime,
        text: String,
    },
    Call {
        tool: String,
        arguments: String,
    },
    Result {
        tool: String,
        text: String,
        is_error: bool,
    },
    /// Changes that a call made.
    Changes {
        summary: String,
        lines: Vec<String>,
    },
    /// A call without a recorded outcome.
    Unknown {
        call_id: String,
        note: &'static str,
    },
}

/// Formats a time.
pub(super) fn moment(time: SystemTime) -> String {
    haft::ops::text::moment::to_millis(time)
}

/// Visits the parts of a session and of its sub-agents.
pub(super) fn walk(
    sessions: &Sessions,
    store: Option<&Store>,
    id: &str,
    mut visit: impl FnMut(Part) -> ControlFlow<()>,
) -> Result<(), haft_store::sessions::Error> {
    // A call without an outcome is still running if a process has the session open.
    let busy = in_use(sessions)?;
    let mut kind = SessionKind::Agent;
    let mut is_running = false;
    let mut changes = Vec::new();
    sessions.walk(id, |entry| {
        let parts = match entry {
            RecordItem::Session(info) => {
                changes = changes_of(store, &info.id);
                kind = info.kind;
                is_running = busy.contains(&info.id);
                vec![Part::Session(info)]
            }
            RecordItem::Message(message) => message_parts(&message, &mut changes),
            RecordItem::Call(call) => {
                let mut parts = call_parts(&call, kind, is_running);
                if kind != SessionKind::Agent || call.reply.is_none() {
                    parts.extend(take_changes(&mut changes, &call.call_id));
                }
                parts
            }
            _ => Vec::new(),
        };
        for part in parts {
            visit(part)?;
        }
        ControlFlow::Continue(())
    })
}

/// Returns what the calls of a session changed, by the id of the call.
fn changes_of(store: Option<&Store>, id: &str) -> Vec<(String, Part)> {
    let session = store.and_then(|store| store.find(id).ok().flatten());
    let Some(session) = session else {
        return Vec::new();
    };
    let sets = session.sets().unwrap_or_default().into_iter();
    sets.map(|set| {
        let changes = haft::effects::in_order(&set.changes);
        let lines = changes.into_iter();
        let lines = lines.map(|change| haft::effects::change_line(session.work_dir(), change));
        let state = match set.summary.state {
            SetState::Undone => " (undone)",
            SetState::Interrupted => " (interrupted)",
            SetState::Running => " (running)",
            SetState::NoLongerKept => " (no longer kept)",
            SetState::Done => "",
        };
        let mut summary = haft::effects::counts_words(&set.summary.counts);
        summary.push_str(state);
        if let Some(gap) = haft::effects::gap(&set.summary.counts) {
            summary.push_str(&format!("; {gap}"));
        }
        let lines = lines.collect();
        (set.summary.call_id, Part::Changes { summary, lines })
    })
    .collect()
}

/// Takes out what a call changed.
fn take_changes(changes: &mut Vec<(String, Part)>, call_id: &str) -> Vec<Part> {
    let (taken, rest) = std::mem::take(changes)
        .into_iter()
        .partition::<Vec<_>, _>(|(id, _)| id == call_id);
    *changes = rest;
    taken.into_iter().map(|(_, part)| part).collect()
}

/// Returns the sessions that a process has open.
fn in_use(sessions: &Sessions) -> Result<Vec<String>, haft_store::sessions::Error> {
    let all = sessions.list(&haft_store::sessions::Filter {
        sub_agents: true,
        ..Default::default()
    })?;
    let busy = all
        .into_iter()
        .filter(|summary| summary.in_use_by.is_some());
    Ok(busy.map(|summary| summary.id).collect())
}

/// Returns the parts of a message.
fn message_parts(message: &StoredMessage, changes: &mut Vec<(String, Part)>) -> Vec<Part> {
    let words = |who, number, text: String| Part::Words {
        who,
        message: number,
        time: message.time,
        text,
    };
    let Ok(body) = serde_json::from_str::<Value>(&message.body) else {
        return vec![words("record", Some(message.id), message.body.clone())];
    };
    let list = |name: &str| {
        body.get(name)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let mut parts = Vec::new();
    match message.role.as_str() {
        "assistant" => {
            for part in list("parts") {
                match part.get("type").and_then(Value::as_str) {
                    Some("call") => parts.push(Part::Call {
                        tool: string(&part, "name"),
                        arguments: part.get("arguments").map(plain).unwrap_or_default(),
                    }),
                    Some("reasoning") => {
                        parts.push(words("thinking", None, string(&part, "text")));
                    }
                    _ => parts.push(words("assistant", None, string(&part, "text"))),
                }
            }
            // Every message shows its number, which `haft sessions fork` needs, even if
            // it has no text.
            match parts
                .iter_mut()
                .find(|part| matches!(part, Part::Words { .. }))
            {
                Some(Part::Words {
                    message: number, ..
                }) => *number = Some(message.id),
                _ => parts.insert(0, words("assistant", Some(message.id), String::new())),
            }
        }
        "tool" => {
            for result in list("results") {
                parts.push(Part::Result {
                    tool: string(&result, "tool"),
                    text: blocks(result.get("content")),
                    is_error: result
                        .get("is_error")
                        .and_then(Value::as_bool)
                        .unwrap_or(false),
                });
                parts.extend(take_changes(changes, &string(&result, "call_id")));
            }
        }
        role => {
            let who = match (role, body.get("origin").and_then(Value::as_str)) {
                ("compaction", _) | (_, Some("summary")) => "summary",
                (_, Some("note")) => "haft",
                _ => "you",
            };
            parts.push(words(who, Some(message.id), blocks(body.get("content"))));
        }
    }
    parts
}

/// Returns the parts of a call that the messages do not contain.
fn call_parts(call: &RecordedCall, kind: SessionKind, is_running: bool) -> Vec<Part> {
    let mut parts = Vec::new();
    if kind != SessionKind::Agent {
        parts.push(Part::Call {
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
        });
    }
    match &call.reply {
        None => parts.push(Part::Unknown {
            call_id: call.call_id.clone(),
            note: match (is_running, call.has_effect) {
                (true, _) => "running",
                (false, true) => "outcome unknown: it may have run, partly or completely",
                (false, false) => "outcome unknown: it was interrupted and changed nothing",
            },
        }),
        Some(reply) if kind != SessionKind::Agent => parts.push(Part::Result {
            tool: call.tool.clone(),
            text: reply_text(reply),
            is_error: call.is_error,
        }),
        Some(_) => {}
    }
    parts
}

/// Returns the text of a reply.
pub(super) fn reply_text(reply: &str) -> String {
    match serde_json::from_str::<Value>(reply) {
        Ok(reply) => blocks(reply.get("content")),
        Err(_) => reply.to_owned(),
    }
}

/// Returns the text of content blocks. An image becomes a line that describes it.
fn blocks(content: Option<&Value>) -> String {
    let blocks = content
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let texts: Vec<String> = blocks
        .iter()
        .map(|block| match block.get("type").and_then(Value::as_str) {
            Some("image") => {
                let size = string(block, "data").len() / 4 * 3;
                format!(
                    "[image {}, {}]",
                    string(block, "mimeType"),
                    format_size(size as u64)
                )
            }
            _ => string(block, "text"),
        })
        .collect();
    texts.join("\n")
}

fn string(value: &Value, name: &str) -> String {
    value.get(name).map(plain).unwrap_or_default()
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Describes a session in one line.
pub(super) fn about(info: &Info) -> String {
    let mut words = vec![info.kind.name().to_owned(), info.toolset.clone()];
    words.extend(
        [&info.provider, &info.model]
            .into_iter()
            .filter(|word| !word.is_empty())
            .cloned(),
    );
    words.push(info.work_dir.display().to_string());
    words.push(moment(info.created));
    if let Some((from, _)) = &info.forked_from {
        words.push(format!("forked from {from}"));
    }
    if let Some((parent, _)) = &info.parent {
        words.push(format!("started by {parent}"));
    }
    words.join(" · ")
}
