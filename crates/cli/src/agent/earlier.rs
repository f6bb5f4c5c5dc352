//! Earlier messages of a session: to return to, and to show when it is resumed.

use crate::commands::sessions::age;
use haft::Content;
use haft_agent::{Message, Origin, Part};
use haft_chat::{EarlierPrompt, Recalled};
use haft_store::sessions::{Loaded, Sessions, StoredMessage};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::SystemTime;

/// Maximum number of messages to show when a session is resumed.
const MAX_RECALLED: usize = 120;

fn parsed(message: &StoredMessage) -> Option<Message> {
    serde_json::from_str(&message.body).ok()
}

fn text_of(content: &[Content]) -> String {
    let texts = content.iter().filter_map(Content::as_text);
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the text of a message, if it is a prompt.
fn prompt_text(message: &StoredMessage) -> Option<String> {
    // Most messages are others, which need not be parsed.
    if message.role != "user" {
        return None;
    }
    match parsed(message)? {
        Message::User {
            content,
            origin: Origin::Prompt,
        } => Some(text_of(&content)),
        _ => None,
    }
}

/// Returns the prompts of a session, newest first.
pub(super) fn prompts(sessions: &Sessions, id: &str) -> Result<Vec<EarlierPrompt>, String> {
    let loaded = load(sessions, id)?;
    let now = SystemTime::now();
    let prompts = loaded.messages.iter().rev().filter_map(|message| {
        Some(EarlierPrompt {
            id: message.id.to_string(),
            text: prompt_text(message).filter(|text| !text.trim().is_empty())?,
            about: format!("{} ago", age(now, message.time)),
        })
    });
    Ok(prompts.collect())
}

/// Copies a session, or what came before a prompt. Returns `None` if nothing came before.
pub(super) fn fork(
    sessions: &Sessions,
    id: &str,
    before: Option<&str>,
) -> Result<Option<String>, String> {
    let last = match before {
        None => None,
        Some(prompt) => match message(&load(sessions, id)?, prompt) {
            None => return Err(format!("session {id} has no message {prompt}")),
            Some(message) => match message.parent {
                None => return Ok(None),
                last => last,
            },
        },
    };
    let copy = sessions.fork(id, last).map_err(|error| error.to_string())?;
    Ok(Some(copy))
}

/// Returns when a prompt was sent.
pub(super) fn time(sessions: &Sessions, id: &str, prompt: &str) -> Option<SystemTime> {
    let loaded = load(sessions, id).ok()?;
    message(&loaded, prompt).map(|message| message.time)
}

fn load(sessions: &Sessions, id: &str) -> Result<Loaded, String> {
    sessions.load(id).map_err(|error| error.to_string())
}

fn message<'a>(loaded: &'a Loaded, id: &str) -> Option<&'a StoredMessage> {
    let id: i64 = id.parse().ok()?;
    loaded.messages.iter().find(|message| message.id == id)
}

/// Returns the end of a conversation, to show it when the session is resumed.
pub(crate) fn recalled(sessions: &Sessions, loaded: &Loaded) -> Vec<Recalled> {
    let id = loaded.info.id.as_str();
    let messages = loaded.messages.iter();
    let messages: Vec<_> = messages.filter(|one| one.role != "compaction").collect();
    let mut first = messages.len().saturating_sub(MAX_RECALLED);
    // A prompt is a good place to begin.
    let begins = |message: &&StoredMessage| prompt_text(message).is_some();
    if first > 0
        && let Some(at) = messages.iter().skip(first).position(begins)
    {
        first += at;
    }
    let mut out = Vec::new();
    if first > 0 {
        out.push(Recalled::Note(format!(
            "… {first} earlier messages: haft sessions show {id}"
        )));
    }
    for message in messages.into_iter().skip(first).filter_map(parsed) {
        match message {
            Message::User {
                content,
                origin: Origin::Prompt | Origin::Steering,
            } => out.push(Recalled::Prompt(text_of(&content))),
            Message::User { .. } => {}
            Message::Assistant(answer) => {
                out.extend(answer.parts.into_iter().filter_map(|part| match part {
                    Part::Text { text } => Some(Recalled::Answer(text)),
                    Part::Reasoning { .. } => None,
                    Part::Call(call) => Some(Recalled::Call(haft::EventKind::ToolStart {
                        call_id: call.id,
                        tool: call.name,
                        arguments: call.arguments,
                    })),
                }));
            }
            Message::Tool { results } => out.extend(results.into_iter().map(|result| {
                let (details, duration_ms) = outcome(sessions, id, &result.call_id);
                Recalled::Call(haft::EventKind::ToolEnd {
                    call_id: result.call_id,
                    tool: result.tool,
                    is_error: result.is_error,
                    details,
                    duration_ms,
                    bytes: text_of(&result.content).len() as u64,
                    truncated: false,
                    content: Arc::new(result.content),
                })
            })),
        }
    }
    out
}

/// Returns the details and the duration of a call, as far as they are recorded.
fn outcome(sessions: &Sessions, session: &str, call: &str) -> (Map<String, Value>, u64) {
    let Ok((_, call)) = sessions.call(Some(session), call) else {
        return Default::default();
    };
    let reply: Option<Value> = call
        .reply
        .and_then(|reply| serde_json::from_str(&reply).ok());
    let details = reply.and_then(|reply| reply["details"].as_object().cloned());
    (
        details.unwrap_or_default(),
        call.duration_ms.unwrap_or_default(),
    )
}
