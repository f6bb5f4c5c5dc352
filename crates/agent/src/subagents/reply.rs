//! What the agent that asked is told of what came of it.

use super::follow::Followed;
use crate::shape;
use haft::ops::text::decode::{prefix, suffix, visible};
use haft::{Context, Error, Reply};
use serde_json::json;

/// The reply to a call that had a sub-agent at work.
pub(super) fn of(followed: Followed, name: &str, id: &str, cx: &Context) -> Result<Reply, Error> {
    match followed {
        Followed::Done { text, response } => Ok(match response {
            None => answered(&text, id, cx),
            Some(value) => answered(&value.to_string(), id, cx).detail("response", value),
        }),
        Followed::Stopped { text, why } => {
            let message = format!("sub-agent {name} had to stop before it was done: {why}");
            let more = vec![("task_id", json!(id))];
            let reply = shape::failure(cx, &message, "result", text.trim(), more);
            Ok(reply.detail("task_id", id))
        }
        Followed::Failed { text, why } => {
            let mut hint = format!("task with task_id {id} goes on with it");
            let last = tail(&text, 500);
            if !last.is_empty() {
                hint.push_str(&format!("; its last words were: {last}"));
            }
            Err(Error::Failed {
                text: format!("sub-agent {name} failed: {}", visible(&why)),
                hint: Some(hint),
            })
        }
        Followed::Waits { question } => Err(Error::Waiting {
            question: format!("sub-agent {name} wants {question}"),
        }),
        Followed::Cancelled => Err(Error::Cancelled),
    }
}

fn answered(text: &str, id: &str, cx: &Context) -> Reply {
    let text = match text.trim() {
        "" => "(it ended without a text)",
        text => text,
    };
    let reply = if shape::is_object(cx.runtime().toolset()) {
        shape::object(cx, "result", text, vec![("task_id", json!(id))])
    } else {
        Reply::from(text).footer(format!("[task_id: {id}]"))
    };
    reply.detail("task_id", id)
}

/// The beginning of a text on one line.
pub(super) fn cut(text: &str, bytes: usize) -> String {
    let text = one_line(text);
    match text.len() > bytes {
        true => format!("{}…", prefix(&text, bytes)),
        false => text,
    }
}

/// The end of a text on one line.
pub(super) fn tail(text: &str, bytes: usize) -> String {
    // Escapes make it longer, never shorter.
    let end = one_line(suffix(text, bytes * 2));
    match end.len() > bytes {
        true => format!("…{}", suffix(&end, bytes)),
        false => end,
    }
}

fn one_line(text: &str) -> String {
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}
