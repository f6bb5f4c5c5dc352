//! What an agent within another one leaves in the memory of the outermost session, such as
//! which sub-agents it has started. That session is recorded with its own transactions,
//! which may be a while from now, so whoever works within it records the change at once.

use super::record::{NotRecorded, Record};
use haft::State;
use haft_store::sessions::Batch;
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard};

/// The record of the outermost session, for the agents within it.
pub(crate) struct Outer {
    record: Record,
    /// How often its memory had changed when it was recorded last. Held while that goes on,
    /// so that no older memory is written over a newer one.
    seen: Mutex<u64>,
}

impl Outer {
    pub(super) fn new(record: &Record) -> Option<Self> {
        record.is_on().then(|| Self {
            record: record.clone(),
            seen: Mutex::default(),
        })
    }

    /// Before a transaction of an agent: records what it changed in the memory of the
    /// outermost session. Where it is that session itself, its transaction has the memory,
    /// and others wait until it is through.
    pub(super) async fn before(
        &self,
        of: &Record,
        state: &State,
    ) -> Result<Option<MutexGuard<'_, u64>>, NotRecorded> {
        let mut seen = self.seen.lock().await;
        if self.record.is(of) {
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
