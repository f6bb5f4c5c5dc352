//! The journal for the calls of one answer. It collects what the runtime records, so that
//! facts which belong together share a transaction: the answer and the intents of its calls,
//! an outcome and the event that reports it.

use super::handle::OpenCalls;
use super::record::{NotRecorded, Recorder, UnrecordedAnswer, recorded};
use crate::{Message, ToolCall};
use async_trait::async_trait;
use haft::{Error, EventKind, Intent, Journal, Outcome};
use haft_store::record::{Batch, Call, Outcome as StoredOutcome};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Records the calls of one answer.
pub(super) struct CallJournal {
    recorder: Recorder,
    /// Journal of the runtime, if the program that embeds the agent has set one.
    outer: Option<Arc<dyn Journal>>,
    state: Mutex<Unrecorded>,
}

/// Facts that the next transaction records.
#[derive(Default)]
pub(super) struct Unrecorded {
    /// The answer and its calls, until the intents are known.
    new: Option<(Message, Vec<ToolCall>)>,
    /// The answer and the intents, if the calls only read.
    pub(super) answer: Option<UnrecordedAnswer>,
    pub(super) outcomes: Vec<StoredOutcome>,
    /// Events to emit after the transaction.
    pub(super) events: Vec<EventKind>,
    /// Calls that started and then asked the user something.
    has_begun: HashSet<String>,
}

impl CallJournal {
    /// Creates the journal for the calls of an answer. Without an answer, the calls are in
    /// the record since an earlier run.
    pub(super) fn new(
        recorder: &Recorder,
        outer: Option<&Arc<dyn Journal>>,
        answer: Option<(Message, Vec<ToolCall>)>,
    ) -> Self {
        Self {
            recorder: recorder.clone(),
            outer: outer.cloned(),
            state: Mutex::new(Unrecorded {
                new: answer,
                ..Unrecorded::default()
            }),
        }
    }

    /// Whether results, or the answer itself, wait for a transaction.
    pub(super) fn has_unrecorded(&self) -> bool {
        let state = self.lock();
        state.answer.is_some() || !state.outcomes.is_empty()
    }

    /// Whether a pending call had started before it asked.
    pub(super) fn has_begun(&self, call_id: &str) -> bool {
        self.lock().has_begun.contains(call_id)
    }

    /// Takes what is not recorded, for a transaction of the caller.
    pub(super) fn take(&self) -> Unrecorded {
        std::mem::take(&mut *self.lock())
    }

    /// Records the answer and the outcomes so far while other calls are still running.
    pub(super) async fn flush(&self) -> Result<(), NotRecorded> {
        // Events of other calls must come after these.
        let emitter = self.recorder.emitter();
        let _holding = emitter.hold();
        let (mut answer, outcomes, events) = {
            let mut state = self.lock();
            let state = &mut *state;
            let outcomes = std::mem::take(&mut state.outcomes);
            let events = std::mem::take(&mut state.events);
            (state.answer.take(), outcomes, events)
        };
        let calls = answer.as_mut().map(|one| std::mem::take(&mut one.calls));
        let events = events.into_iter();
        let events: Vec<_> = events.map(|kind| emitter.prepare_tool(kind)).collect();
        let batch = Batch {
            outcomes,
            ..self.recorder.batch()
        };
        let recorder = &self.recorder;
        recorder.commit_or_emit(answer, batch, &events).await?;
        if let Some(calls) = calls {
            self.mark_started(calls);
        }
        for event in events {
            emitter.send(event);
        }
        Ok(())
    }

    /// Remembers the calls as open, so that each of them gets a result even if the run breaks
    /// off.
    fn mark_started(&self, calls: Vec<ToolCall>) {
        self.recorder.set_open(OpenCalls {
            calls,
            done: Vec::new(),
            pending: Vec::new(),
            since: SystemTime::now(),
        });
    }

    fn lock(&self) -> MutexGuard<'_, Unrecorded> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Journal for CallJournal {
    /// Records the answer and the intents. If no call has effects, that waits for the first
    /// results.
    async fn intents(&self, intents: Vec<Intent>) -> Result<(), Error> {
        if let Some(outer) = &self.outer {
            outer.intents(intents.clone()).await?;
        }
        let Some((message, calls)) = self.lock().new.take() else {
            return Ok(());
        };
        let batch = Batch {
            messages: vec![recorded(&message)],
            calls: intents.iter().map(|one| stored_call(one, &calls)).collect(),
            ..self.recorder.batch()
        };
        if batch.calls.iter().any(|call| call.has_effect) {
            let ids = self.recorder.commit(batch).await?;
            self.recorder.extend_history(vec![message], ids);
            self.mark_started(calls);
        } else {
            self.recorder.emitter().defer_recording(true);
            self.lock().answer = Some(UnrecordedAnswer {
                message,
                batch,
                calls,
            });
        }
        Ok(())
    }

    async fn outcome(&self, outcome: Outcome) -> Result<(), Error> {
        let forwarded = match &self.outer {
            Some(outer) => outer.outcome(outcome.clone()).await,
            None => Ok(()),
        };
        let mut state = self.lock();
        if !outcome.is_pending {
            state.outcomes.push(stored_outcome(&outcome));
        } else if outcome.event.is_some() {
            state.has_begun.insert(outcome.call_id);
        }
        state.events.extend(outcome.event);
        forwarded
    }
}

/// Converts an intent for the record. A call that was refused has the arguments that the
/// model sent.
fn stored_call(intent: &Intent, calls: &[ToolCall]) -> Call {
    let sent = || calls.iter().find(|call| call.id == intent.call_id);
    let arguments = match &intent.arguments {
        Some(arguments) => arguments.to_string(),
        None => sent().map_or_else(String::new, |call| call.arguments.to_string()),
    };
    Call {
        call_id: intent.call_id.clone(),
        tool: intent.tool.clone(),
        arguments,
        has_effect: intent.effect.may_change(),
    }
}

fn stored_outcome(outcome: &Outcome) -> StoredOutcome {
    let output = outcome.output.as_ref();
    StoredOutcome {
        call_id: outcome.call_id.clone(),
        reply: outcome.reply.to_string(),
        is_error: outcome.is_error,
        duration_ms: u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
        output: output.map(|path| path.to_string_lossy().into_owned()),
    }
}
