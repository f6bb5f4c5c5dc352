//! A record taken apart for people: who said what, what was called, what came of it.
//! Nothing in it is trusted to have a form; what has none is shown as it is.

use haft::truncate::format_size;
use haft_store::sessions::{Entry, Info, Kind, RecordedCall, Sessions, Stored};
use serde_json::Value;
use std::ops::ControlFlow;
use std::time::SystemTime;

/// A piece of a session.
pub(super) enum Piece {
    /// A session begins.
    Session(Box<Info>),
    /// Words: who said them, the number of the message, when.
    Words {
        who: &'static str,
        message: Option<i64>,
        time: SystemTime,
        text: String,
    },
    /// A tool is called.
    Call { tool: String, arguments: String },
    /// What came of a call.
    Result {
        tool: String,
        text: String,
        is_error: bool,
    },
    /// A call of which nobody knows what came.
    Unknown { call_id: String, note: &'static str },
}

/// A moment, as it is written.
pub(super) fn moment(time: SystemTime) -> String {
    haft::ops::text::moment::to_millis(time)
}

/// Shows a session, and those of its agents, piece by piece.
pub(super) fn walk(
    sessions: &Sessions,
    id: &str,
    mut visit: impl FnMut(Piece) -> ControlFlow<()>,
) -> Result<(), haft_store::sessions::Error> {
    // Under way, if somebody is at it.
    let busy = in_use(sessions)?;
    let mut kind = Kind::Agent;
    let mut under_way = false;
    sessions.walk(id, |entry| {
        let pieces = match entry {
            Entry::Session(info) => {
                kind = info.kind;
                under_way = busy.contains(&info.id);
                vec![Piece::Session(info)]
            }
            Entry::Message(message) => said(&message),
            Entry::Call(call) => called(&call, kind, under_way),
            _ => Vec::new(),
        };
        for piece in pieces {
            visit(piece)?;
        }
        ControlFlow::Continue(())
    })
}

/// The sessions that somebody is writing to.
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

/// What a message says.
fn said(message: &Stored) -> Vec<Piece> {
    let words = |who, number, text: String| Piece::Words {
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
    let mut pieces = Vec::new();
    match message.role.as_str() {
        "assistant" => {
            for part in list("parts") {
                match part.get("type").and_then(Value::as_str) {
                    Some("call") => pieces.push(Piece::Call {
                        tool: string(&part, "name"),
                        arguments: part.get("arguments").map(plain).unwrap_or_default(),
                    }),
                    Some("reasoning") => {
                        pieces.push(words("thinking", None, string(&part, "text")));
                    }
                    _ => pieces.push(words("assistant", None, string(&part, "text"))),
                }
            }
            // Who wants to fork needs its number, whatever it says.
            match pieces
                .iter_mut()
                .find(|piece| matches!(piece, Piece::Words { .. }))
            {
                Some(Piece::Words {
                    message: number, ..
                }) => *number = Some(message.id),
                _ => pieces.insert(0, words("assistant", Some(message.id), String::new())),
            }
        }
        "tool" => {
            for result in list("results") {
                pieces.push(Piece::Result {
                    tool: string(&result, "tool"),
                    text: blocks(result.get("content")),
                    is_error: result
                        .get("is_error")
                        .and_then(Value::as_bool)
                        .unwrap_or(false),
                });
            }
        }
        role => {
            let who = match (role, body.get("origin").and_then(Value::as_str)) {
                ("compaction", _) | (_, Some("summary")) => "summary",
                (_, Some("note")) => "haft",
                _ => "you",
            };
            pieces.push(words(who, Some(message.id), blocks(body.get("content"))));
        }
    }
    pieces
}

/// What a call says beyond the conversation it is in.
fn called(call: &RecordedCall, kind: Kind, under_way: bool) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if kind != Kind::Agent {
        pieces.push(Piece::Call {
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
        });
    }
    match &call.reply {
        None => pieces.push(Piece::Unknown {
            call_id: call.call_id.clone(),
            note: match (under_way, call.has_effect) {
                (true, _) => "under way",
                (false, true) => "outcome unknown: it may have been made, in part or as a whole",
                (false, false) => "outcome unknown: it was interrupted, and changed nothing",
            },
        }),
        Some(reply) if kind != Kind::Agent => pieces.push(Piece::Result {
            tool: call.tool.clone(),
            text: reply_text(reply),
            is_error: call.is_error,
        }),
        Some(_) => {}
    }
    pieces
}

/// The text of a reply.
pub(super) fn reply_text(reply: &str) -> String {
    match serde_json::from_str::<Value>(reply) {
        Ok(reply) => blocks(reply.get("content")),
        Err(_) => reply.to_owned(),
    }
}

/// The text of content blocks; a picture is a line that names it.
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

/// What a session is, in a line.
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
