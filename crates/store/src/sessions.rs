//! Sessions: what was said and done, in an order that no end of a process disturbs.
//!
//! Everything that must be true together goes into one [`Batch`], which is one
//! transaction. A batch that was acknowledged is on the disk.

mod batch;

pub use batch::{Approval, Batch, Call, Decision, NewMessage, Outcome};

/// Until the database is there.
#[derive(Debug)]
pub struct Session;
impl Session {
    /// Records.
    ///
    /// # Errors
    /// Never.
    #[expect(clippy::unused_async, reason = "it will")]
    pub async fn commit(&self, _batch: Batch) -> Result<Vec<i64>, String> {
        Ok(Vec::new())
    }
}
