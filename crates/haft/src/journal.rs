//! The record of calls: the intent before the effect, the outcome after it.

use crate::{Effect, Error};
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
    /// Arguments after repair.
    pub arguments: Value,
    /// The most that the tool can do.
    pub effect: Effect,
}

/// Record of a call that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Id of the call.
    pub call_id: String,
    /// The reply as JSON, from [`crate::Reply::to_json`].
    pub reply: Value,
    /// Run time of the call.
    pub duration: Duration,
    /// File with the full output, if the reply is truncated.
    pub output: Option<PathBuf>,
}

/// Records calls. A call whose intent cannot be recorded is not made.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Records a call before it runs.
    async fn intent(&self, intent: Intent) -> Result<(), Error>;
    /// Records the result of a call.
    async fn outcome(&self, outcome: Outcome) -> Result<(), Error>;
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
    async fn intent(&self, intent: Intent) -> Result<(), Error> {
        let mut calls = self
            .calls
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if calls.len() >= self.capacity {
            calls.pop_front();
        }
        calls.push_back((intent, None));
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
