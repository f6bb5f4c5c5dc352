//! The record of calls: the intent before the effect, the outcome after it.

use crate::{Effect, Error, EventKind, Reply};
use async_trait::async_trait;
use serde_json::Value;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

/// Record of a call that is about to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool.
    pub tool: String,
    /// Arguments after repair. `None` if the call was refused before they were repaired,
    /// which only happens in a batch.
    pub arguments: Option<Value>,
    /// The most that the call can do.
    pub effect: Effect,
}

/// Record of a call that has ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// Id of the call.
    pub call_id: String,
    /// The reply as JSON, from [`crate::Reply::to_json`].
    pub reply: Value,
    /// Whether the reply is an error.
    pub is_error: bool,
    /// Whether the call waits for the user and will be made again.
    pub is_pending: bool,
    /// Run time of the call; zero if it did not run.
    pub duration: Duration,
    /// File with the full output, if the reply is truncated.
    pub output: Option<PathBuf>,
    /// The last event of the call, for a journal that records both in one transaction.
    /// `None` if the call ends without one: a reply replaced it, or it waits for approval.
    pub event: Option<EventKind>,
}

impl Outcome {
    /// Creates the outcome of a call that did not run and that no event reports.
    #[must_use]
    pub fn of_unmade(call_id: &str, reply: &Reply) -> Self {
        Self {
            call_id: call_id.to_owned(),
            reply: reply.to_json(),
            is_error: reply.is_error(),
            is_pending: reply.is_pending(),
            duration: Duration::ZERO,
            output: None,
            event: None,
        }
    }
}

/// Records calls. A call whose intent cannot be recorded is not made, and each recorded
/// intent is followed by one outcome.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Records calls before any of them runs, all of them or none.
    async fn intents(&self, intents: Vec<Intent>) -> Result<(), Error>;
    /// Records the result of a call. A journal may write it later, together with others; the
    /// reply does not wait for that.
    async fn outcome(&self, outcome: Outcome) -> Result<(), Error>;
    /// Returns the id under which a running call is recorded, if it is not its own.
    fn recorded_as(&self, call_id: &str) -> Option<String> {
        let _ = call_id;
        None
    }
    /// Records a note that belongs to no call, such as a finding at the end of the session.
    async fn note(&self, text: String) -> Result<(), Error> {
        drop(text);
        Ok(())
    }
}

/// A journal in memory that keeps the most recent calls.
#[derive(Debug)]
pub struct MemoryJournal {
    capacity: usize,
    calls: Mutex<VecDeque<(Intent, Option<Outcome>)>>,
}

impl MemoryJournal {
    /// Creates a journal that keeps the last `capacity` calls.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            calls: Mutex::default(),
        }
    }

    /// Returns the recorded calls, oldest first. Those without an outcome are still
    /// running.
    #[must_use]
    pub fn calls(&self) -> Vec<(Intent, Option<Outcome>)> {
        self.calls
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .iter()
            .cloned()
            .collect()
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    async fn intents(&self, intents: Vec<Intent>) -> Result<(), Error> {
        let mut calls = self
            .calls
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        calls.extend(intents.into_iter().map(|intent| (intent, None)));
        let excess = calls.len().saturating_sub(self.capacity);
        calls.drain(..excess);
        Ok(())
    }

    async fn outcome(&self, outcome: Outcome) -> Result<(), Error> {
        let mut calls = self
            .calls
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((_, slot)) = calls
            .iter_mut()
            .rev()
            .find(|(intent, _)| intent.call_id == outcome.call_id)
        {
            *slot = Some(outcome);
        }
        Ok(())
    }
}
