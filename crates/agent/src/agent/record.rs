//! What is recorded, and when: always before somebody is told that it is done.

use crate::provider::Secret;
use haft_store::sessions::{Batch, Session};
use std::sync::Arc;

/// Where a conversation is recorded, if anywhere.
#[derive(Clone, Default)]
pub(crate) struct Record {
    session: Option<Arc<Session>>,
}

/// Why something could not be recorded.
#[derive(Debug, thiserror::Error)]
#[error("the session cannot be recorded: {0}")]
pub(crate) struct NotRecorded(String);

impl Record {
    pub(crate) fn new(session: Option<Session>) -> Self {
        Self {
            session: session.map(Arc::new),
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.session.is_some()
    }

    /// Whether both are one.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.session, &other.session) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// A key that is never recorded.
    pub(crate) fn hide(&self, secret: &Secret) {
        if let Some(session) = &self.session {
            let secret = secret.expose().to_owned();
            session.sessions().redact_also([secret]);
        }
    }

    /// Events that are about to be told.
    pub(crate) async fn note(&self, events: Vec<(u64, String)>) -> Result<(), NotRecorded> {
        let batch = Batch {
            events,
            ..Batch::default()
        };
        match &self.session {
            None => Ok(()),
            Some(session) => session
                .commit_lightly(batch)
                .await
                .map_err(|error| NotRecorded(error.to_string())),
        }
    }

    /// One transaction. The numbers are those of its messages.
    pub(crate) async fn commit(&self, batches: Vec<Batch>) -> Result<Vec<i64>, NotRecorded> {
        match &self.session {
            None => Ok(Vec::new()),
            Some(session) => session
                .commit_all(batches)
                .await
                .map_err(|error| NotRecorded(error.to_string())),
        }
    }
}
