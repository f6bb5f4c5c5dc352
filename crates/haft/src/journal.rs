//! The record of calls: the intent before the effect, the outcome after it.

use crate::{Effect, Error};
use async_trait::async_trait;
use serde_json::Value;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

/// What is about to be done.
#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    /// The call.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// The arguments as they were repaired.
    pub arguments: Value,
    /// What the tool can do.
    pub effect: Effect,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The call.
    pub call_id: String,
    /// The reply, as [`crate::Reply::to_json`] shows it.
    pub reply: Value,
    /// How long it took.
    pub duration: Duration,
    /// The file that holds the whole output, where the reply has a part of it.
    pub output: Option<PathBuf>,
}

/// Where calls are recorded. A call whose intent cannot be recorded is not made.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Records what is about to be done.
    async fn intent(&self, intent: Intent) -> Result<(), Error>;
    /// Records what came of it.
    async fn outcome(&self, outcome: Outcome) -> Result<(), Error>;
    /// Records something that no call says: what was found when the session ended.
    async fn note(&self, text: String) -> Result<(), Error> {
        drop(text);
        Ok(())
    }
}

/// A journal in memory that keeps the newest calls.
#[derive(Debug)]
pub struct MemoryJournal {
    capacity: usize,
    calls: Mutex<VecDeque<(Intent, Option<Outcome>)>>,
}

impl MemoryJournal {
    /// Keeps `capacity` calls.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            calls: Mutex::default(),
        }
    }

    /// The calls kept, oldest first; those without an outcome are under way.
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
