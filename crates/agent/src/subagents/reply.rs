//! Replies for the parent of a sub-agent.

use super::observe::RunOutcome;
use crate::tool_reply;
use haft::ops::text::decode::{prefix, suffix, visible};
use haft::{Context, Error, Reply};
use serde_json::json;

/// Creates the reply for the outcome of a sub-agent's run.
pub(super) fn from_outcome(
    outcome: RunOutcome,
    name: &str,
    id: &str,
    cx: &Context,
) -> Result<Reply, Error> {
    match outcome {
        RunOutcome::Done { text, response } => Ok(match response {
            None => answered(&text, id, cx),
            Some(value) => answered(&value.to_string(), id, cx).detail("response", value),
        }),
        RunOutcome::Stopped { text, why } => {
            let message = format!("sub-agent {name} was stopped before it was done: {why}");
            let more = vec![("task_id", json!(id))];
            let reply = tool_reply::failure(cx, &message, "result", text.trim(), more);
            Ok(reply.detail("task_id", id))
        }
        RunOutcome::Failed { text, why } => {
            let mut hint = format!("task with task_id {id} continues it");
            let last = tail(&text, 500);
            if !last.is_empty() {
                hint.push_str(&format!("; its last text was: {last}"));
            }
            Err(Error::Failed {
                text: format!("sub-agent {name} failed: {}", visible(&why)),
                hint: Some(hint),
            })
        }
        RunOutcome::Waits { question } => Err(Error::Waiting {
            question: format!("sub-agent {name} wants {question}"),
        }),
        RunOutcome::Cancelled => Err(Error::Cancelled),
    }
}

fn answered(text: &str, id: &str, cx: &Context) -> Reply {
    let text = match text.trim() {
        "" => "(it ended without text)",
        text => text,
    };
    let reply = if cx.runtime().reply_form().is_object() {
        tool_reply::object(cx, "result", text, vec![("task_id", json!(id))])
    } else {
        Reply::from(text).footer(format!("[task_id: {id}]"))
    };
    reply.detail("task_id", id)
}

/// Truncates a text after `bytes`, on one line.
pub(super) fn cut(text: &str, bytes: usize) -> String {
    let text = one_line(text);
    match text.len() > bytes {
        true => format!("{}…", prefix(&text, bytes)),
        false => text,
    }
}

/// Returns the end of a text, on one line.
pub(super) fn tail(text: &str, bytes: usize) -> String {
    // Escaping never makes the text shorter.
    let end = one_line(suffix(text, bytes * 2));
    match end.len() > bytes {
        true => format!("…{}", suffix(&end, bytes)),
        false => end,
    }
}

fn one_line(text: &str) -> String {
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}
