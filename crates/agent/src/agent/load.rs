//! Restores a recorded session.

use super::Agent;
use super::calls::result_from;
use super::handle::{OpenCalls, PendingCall};
use super::pictures::omit_recorded;
use super::record::Record;
use crate::{Message, ModelAnswer, ToolCall};
use haft::{Content, ReplyForm};
use haft_store::record::{Loaded, REDACTED, SessionRecord, StoredMessage};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Gap in event numbers after a process was killed, which may have emitted events without
/// recording them.
const GAP: u64 = 100_000;

/// A recorded session that cannot be restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A message that this version cannot read.
    #[error(
        "cannot read message {id} of the session: {reason}; `haft sessions fork --at` continues from before it"
    )]
    Message {
        /// Id of the message.
        id: i64,
        /// Problem with the message.
        reason: String,
    },
}

/// A recorded compaction.
#[derive(Deserialize)]
struct Compaction {
    summary: Message,
    keeps_from: Option<i64>,
}

/// A recorded reply.
#[derive(Deserialize)]
struct Reply {
    content: Vec<Content>,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    details: Map<String, Value>,
}

/// The question for the user about a pending call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalQuestion {
    /// Text of the question.
    pub question: String,
    /// Whether the call had started and asks while it runs. Otherwise the question is whether
    /// it may run.
    pub has_begun: bool,
    /// Whether the call has run, and the question is whether to keep its changes.
    pub is_review: bool,
}

/// A recorded question.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RecordedQuestion {
    question: String,
    has_begun: bool,
    held: Option<Value>,
}

impl Agent {
    /// Restores the conversation of a recorded session. [`Agent::resume`] continues with calls
    /// that have no result.
    ///
    /// # Errors
    /// When a message cannot be read.
    pub fn resuming(
        self,
        session: impl SessionRecord + 'static,
        loaded: &Loaded,
    ) -> Result<Self, LoadError> {
        let mut history: Vec<Arc<Message>> = Vec::new();
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
                history.insert(0, Arc::new(compaction.summary));
                ids.insert(0, Some(stored.id));
                continue;
            }
            let message: Message = read(stored)?;
            if let Message::Assistant(answer) = &message {
                total.add(&answer.usage);
                last = answer.usage.total();
                call_ids.extend(answer.calls().map(|call| call.id.clone()));
                omit_recorded(&mut history, &ids, answer);
            }
            history.push(Arc::new(message));
            ids.push(Some(stored.id));
        }
        let open = open_calls(
            &session,
            loaded,
            history.last(),
            self.shared.runtime.reply_form(),
        );
        let ended = match history.last().map(|message| &**message) {
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
            let last = loaded.messages.last().map(|stored| stored.time);
            conversation.told_undos = (HashMap::new(), last);
            let has_mark = |stored: &StoredMessage| stored.body.contains(REDACTED);
            conversation.has_marks = loaded.messages.iter().any(has_mark);
        }
        self.shared.record(Record::new(Arc::new(session)));
        self.shared.background.find_waiting(&self.shared.runtime);
        Ok(self)
    }

    /// Whether the session can continue without a new prompt: the model has not answered yet,
    /// calls have no results, or a sub-agent in the background waits for approval or has ended
    /// without the model knowing.
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
                .is_some_and(|message| !matches!(**message, Message::Assistant(_)))
    }

    /// Returns the calls that wait for approval.
    #[must_use]
    pub fn pending_calls(&self) -> Vec<ToolCall> {
        self.shared.pending_calls()
    }

    /// Returns the question about a pending call. A call that has started asks for something
    /// else than permission to run; a sub-agent asks about one of its own calls.
    #[must_use]
    pub fn question(&self, call_id: &str) -> Option<ApprovalQuestion> {
        let conversation = self.shared.lock();
        let one = conversation.open.as_ref()?.pending(call_id)?;
        Some(ApprovalQuestion {
            question: one.question.clone(),
            has_begun: one.has_begun,
            is_review: one.held.is_some(),
        })
    }
}

fn read<T: serde::de::DeserializeOwned>(stored: &StoredMessage) -> Result<T, LoadError> {
    serde_json::from_str(&stored.body).map_err(|error| LoadError::Message {
        id: stored.id,
        reason: error.to_string(),
    })
}

/// Returns the calls of the last answer, if the conversation has no results for them.
fn open_calls(
    session: &dyn SessionRecord,
    loaded: &Loaded,
    last: Option<&Arc<Message>>,
    form: ReplyForm,
) -> Option<OpenCalls> {
    let Message::Assistant(answer) = &**last? else {
        return None;
    };
    let mut calls: Vec<ToolCall> = ModelAnswer::calls(answer).cloned().collect();
    if calls.is_empty() {
        return None;
    }
    let mut done = Vec::new();
    for call in &mut calls {
        // Calls that only read are recorded after they ended.
        let Some(recorded) = session.call(&call.id) else {
            continue;
        };
        // The question was about the recorded arguments, which a hook may have changed.
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
        done.push(result_from(call, content, is_error, changed, form));
    }
    // A call with an answer but no outcome may have started, so it is not pending.
    let undecided = loaded.approvals.iter().filter(|one| one.decision.is_none());
    let pending = undecided.map(|one| {
        let asked: RecordedQuestion = serde_json::from_str(&one.question).unwrap_or_default();
        PendingCall {
            call_id: one.call_id.clone(),
            question: asked.question,
            has_begun: asked.has_begun,
            held: asked.held,
        }
    });
    let pending = pending.collect();
    let since = loaded.messages.last().map(|stored| stored.time);
    Some(OpenCalls {
        calls,
        done,
        pending,
        since: since.unwrap_or_else(std::time::SystemTime::now),
    })
}
