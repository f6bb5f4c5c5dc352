//! Going on with a recorded session.

use super::Agent;
use super::calls::heard;
use super::handle::{Open, Waiting};
use super::pictures::take_out_again;
use super::record::Record;
use crate::{Answer, Message, Said, ToolCall};
use haft::Content;
use haft_store::sessions::{Loaded, REDACTED, Session, Stored};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::Arc;

/// Numbers of events that may have been told and not recorded when a process was ended.
const GAP: u64 = 100_000;

/// Why a recorded session cannot be gone on with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A message that this version cannot read.
    #[error(
        "message {id} of the session cannot be read ({reason}); `haft sessions fork --at` goes on from before it"
    )]
    Message {
        /// Which.
        id: i64,
        /// Why.
        reason: String,
    },
    /// The record cannot be read.
    #[error(transparent)]
    Record(#[from] haft_store::sessions::Error),
}

/// A conversation that was made shorter.
#[derive(Deserialize)]
struct Compaction {
    summary: Message,
    keeps_from: Option<i64>,
}

/// A reply as it was recorded.
#[derive(Deserialize)]
struct Reply {
    content: Vec<Content>,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    details: Map<String, Value>,
}

/// What a person is asked about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asked {
    /// The question.
    pub question: String,
    /// The call ran and asks for something; else it is asked whether it may run.
    pub has_begun: bool,
}

/// A question as it was recorded.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Question {
    question: String,
    has_begun: bool,
}

impl Agent {
    /// With everything that was said in a recorded session. Calls that nobody finished
    /// are taken up by [`Agent::resume`].
    ///
    /// # Errors
    /// When a message cannot be read.
    pub fn resuming(self, session: Session, loaded: &Loaded) -> Result<Self, LoadError> {
        let mut history: Vec<Arc<Said>> = Vec::new();
        let mut ids = Vec::new();
        let mut total = crate::Usage::default();
        let mut last = 0;
        let mut call_ids = HashSet::new();
        for stored in &loaded.messages {
            if stored.role == "compaction" {
                let compaction: Compaction = read(stored)?;
                let from = compaction.keeps_from;
                let from = ids.iter().position(|id| *id == from).unwrap_or(ids.len());
                history.drain(..from);
                ids.drain(..from);
                history.insert(0, Said::new(compaction.summary));
                ids.insert(0, Some(stored.id));
                continue;
            }
            let message: Message = read(stored)?;
            if let Message::Assistant(answer) = &message {
                total.add(&answer.usage);
                last = answer.usage.total();
                call_ids.extend(answer.calls().map(|call| call.id.clone()));
                take_out_again(&mut history, &ids, answer);
            }
            history.push(Said::new(message));
            ids.push(Some(stored.id));
        }
        let open = open(
            &session,
            loaded,
            history.last(),
            self.shared.runtime.toolset(),
        )?;
        let ended = match history.last().map(|said| &said.message) {
            None => true,
            Some(Message::Assistant(answer)) => answer.calls().next().is_none(),
            Some(_) => false,
        };
        let seq = match ended {
            true => loaded.last_seq,
            false => loaded.last_seq + GAP,
        };
        self.shared.continue_after(seq);
        let state = loaded.state.as_deref();
        if let Some(state) = state.and_then(|state| serde_json::from_str(state).ok()) {
            self.shared.runtime.state().restore(state);
        }
        {
            let mut conversation = self.shared.lock();
            conversation.history = Arc::new(history);
            conversation.ids = ids;
            conversation.total = total;
            conversation.last = last;
            conversation.open = open;
            conversation.call_ids = call_ids;
            let has_mark = |stored: &Stored| stored.body.contains(REDACTED);
            conversation.has_marks = loaded.messages.iter().any(has_mark);
        }
        self.shared.record(Record::new(Some(session)));
        self.shared.background.find_waiting(&self.shared.runtime);
        Ok(self)
    }

    /// Whether there is something to go on with when nothing new is said: an answer
    /// that is to come, calls without results, or a sub-agent in the background that waits
    /// for a person or has ended without the model knowing.
    #[must_use]
    pub fn has_work(&self) -> bool {
        let (background, runtime) = (&self.shared.background, &self.shared.runtime);
        let has_tasks = background.has_questions(runtime) || background.is_busy(runtime);
        let conversation = self.shared.lock();
        has_tasks
            || conversation.open.is_some()
            || conversation
                .history
                .last()
                .is_some_and(|said| !matches!(said.message, Message::Assistant(_)))
    }

    /// The calls that wait for a person.
    #[must_use]
    pub fn waiting(&self) -> Vec<ToolCall> {
        self.shared.waiting()
    }

    /// What a person is asked about a call that waits. One that has begun asks for
    /// something else than whether it may be made, as a sub-agent does for its calls.
    #[must_use]
    pub fn question(&self, call_id: &str) -> Option<Asked> {
        let conversation = self.shared.lock();
        let one = conversation.open.as_ref()?.waits(call_id)?;
        Some(Asked {
            question: one.question.clone(),
            has_begun: one.has_begun,
        })
    }
}

fn read<T: serde::de::DeserializeOwned>(stored: &Stored) -> Result<T, LoadError> {
    serde_json::from_str(&stored.body).map_err(|error| LoadError::Message {
        id: stored.id,
        reason: error.to_string(),
    })
}

/// Calls of the last answer that have no results in the conversation.
fn open(
    session: &Session,
    loaded: &Loaded,
    last: Option<&Arc<Said>>,
    toolset: &str,
) -> Result<Option<Open>, LoadError> {
    let Some(Message::Assistant(answer)) = last.map(|said| &said.message) else {
        return Ok(None);
    };
    let mut calls: Vec<ToolCall> = Answer::calls(answer).cloned().collect();
    if calls.is_empty() {
        return Ok(None);
    }
    let mut done = Vec::new();
    for call in &mut calls {
        let recorded = match session.sessions().call(Some(session.id()), &call.id) {
            Ok((_, recorded)) => recorded,
            // A call that only reads is not recorded before it has ended.
            Err(_) => continue,
        };
        // A hook may have changed them: with these it was asked for.
        if let Ok(arguments) = serde_json::from_str(&recorded.arguments) {
            call.arguments = arguments;
        }
        let Some(reply) = recorded.reply else {
            continue;
        };
        let Ok(reply) = serde_json::from_str::<Reply>(&reply) else {
            continue;
        };
        let changed = reply.details.get("changed_arguments").cloned();
        let (content, is_error) = (reply.content, reply.is_error);
        done.push(heard(call, content, is_error, changed, toolset));
    }
    // One that was answered and has no outcome may have begun.
    let undecided = loaded.approvals.iter().filter(|one| one.decision.is_none());
    let waiting = undecided.map(|one| {
        let asked: Question = serde_json::from_str(&one.question).unwrap_or_default();
        Waiting {
            call_id: one.call_id.clone(),
            question: asked.question,
            has_begun: asked.has_begun,
        }
    });
    let waiting = waiting.collect();
    let since = loaded.messages.last().map(|stored| stored.time);
    Ok(Some(Open {
        calls,
        done,
        waiting,
        since: since.unwrap_or_else(std::time::SystemTime::now),
    }))
}
