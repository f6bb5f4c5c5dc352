//! The types of a session's record, independent of where it is stored. This part of the crate
//! does not need SQLite.

mod batch;
mod facts;
mod redact;

pub use batch::{Approval, Batch, Call, Decision, NewMessage, Outcome, SessionFile};
pub use facts::{
    Deleted, Filter, Info, Loaded, NewSession, OpenCall, PendingApproval, RecordItem, RecordedCall,
    RecordedEvent, SessionKind, StoredMessage, Summary,
};
pub use redact::{REDACTED, Redactor};

use async_trait::async_trait;

/// A session that an agent writes to. With the feature `sqlite`, `sessions::Session` is one.
/// An error says why nothing was recorded.
#[async_trait]
pub trait SessionRecord: Send + Sync {
    /// Records several batches in order and in one transaction. When this returns, they
    /// survive a power failure. Returns the ids of all their messages.
    async fn commit(&self, batches: Vec<Batch>) -> Result<Vec<i64>, String>;

    /// Records a batch that survives the end of this process, but perhaps not a power
    /// failure.
    async fn commit_lightly(&self, batch: Batch) -> Result<(), String>;

    /// Returns a recorded call of this session.
    fn call(&self, call_id: &str) -> Option<RecordedCall>;

    /// Redacts this value in everything recorded from now on.
    fn redact(&self, secret: String);
}
