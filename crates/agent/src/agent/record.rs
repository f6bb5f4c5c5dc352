//! The record of a conversation.

use crate::provider::Secret;
use haft_store::sessions::{Batch, Session};
use std::sync::Arc;

/// The stored session of a conversation, if it is recorded.
#[derive(Clone, Default)]
pub(crate) struct Record {
    session: Option<Arc<Session>>,
}

/// A failed transaction.
#[derive(Debug, thiserror::Error)]
#[error("cannot record the session: {0}")]
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

    /// Whether both records are the same session.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.session, &other.session) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Redacts a key from everything that is recorded.
    pub(crate) fn redact(&self, secret: &Secret) {
        if let Some(session) = &self.session {
            let secret = secret.expose().to_owned();
            session.sessions().redact_also([secret]);
        }
    }

    /// Records events in a small transaction.
    pub(crate) async fn commit_events(
        &self,
        events: Vec<(u64, String)>,
    ) -> Result<(), NotRecorded> {
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

    /// Commits batches in one transaction and returns the ids of the messages.
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
