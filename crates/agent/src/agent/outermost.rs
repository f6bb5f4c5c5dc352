//! Sub-agents change the memory of the outermost session too: it lists every sub-agent that
//! was started. The outermost agent records that memory with its own transactions, but the
//! next one may be far off, so a sub-agent records its change at once.

use super::record::{NotRecorded, Record};
use haft::State;
use haft_store::record::Batch;
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};

/// The record of the outermost session, for the agents within it.
pub(crate) struct OutermostRecord {
    record: Record,
    /// The count of changes that was recorded last. Locked while recording, so that an older
    /// memory never replaces a newer one.
    seen: Mutex<u64>,
}

impl OutermostRecord {
    pub(super) fn new(record: &Record) -> Option<Self> {
        record.is_on().then(|| Self {
            record: record.clone(),
            seen: Mutex::default(),
        })
    }

    /// Called before each transaction of an agent. For a sub-agent, records the memory of the
    /// outermost session if it changed. For the outermost agent, whose own transaction has
    /// that memory, returns the lock to hold until it is done.
    pub(super) async fn before(
        &self,
        record: &Record,
        state: &State,
    ) -> Result<Option<MutexGuard<'_, u64>>, NotRecorded> {
        let mut seen = self.seen.lock().await;
        if self.record.is(record) {
            return Ok(Some(seen));
        }
        let state = state.outermost();
        let changes = state.changes();
        if changes != *seen {
            let batch = Batch {
                state: Some(Value::Object(state.snapshot()).to_string()),
                ..Batch::default()
            };
            self.record.commit(vec![batch]).await?;
            *seen = changes;
        }
        Ok(None)
    }
}
