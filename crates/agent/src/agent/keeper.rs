//! Files that a session holds itself are recorded with what was done to them: those that
//! changed, before somebody is told so. Sub-agents work on the same files, which are kept
//! with the session of the agent that has them.

use super::record::{NotRecorded, Record};
use haft::{HeldFiles, Mark};
use haft_store::sessions::{Batch, SessionFile};
use tokio::sync::{Mutex, MutexGuard};

/// Records the files of a session.
pub(crate) struct Keeper {
    held: HeldFiles,
    record: Record,
    /// How far they are recorded. Held while that goes on: whoever comes meanwhile tells
    /// of nothing that is still on its way.
    seen: Mutex<Mark>,
}

/// Changes that are about to be recorded.
pub(super) struct Changed<'a> {
    seen: MutexGuard<'a, Mark>,
    now: Mark,
}

impl Keeper {
    /// For a session that holds files, and is recorded.
    pub(super) fn new(held: &HeldFiles, record: &Record) -> Option<Self> {
        (record.is_on() && !held.is_empty()).then(|| Self {
            held: held.clone(),
            record: record.clone(),
            seen: Mutex::default(),
        })
    }

    /// Puts what changed into a batch of the session, or records it at once where the
    /// batch is of another one. It counts when [`Changed::recorded`] says so.
    pub(super) async fn add(
        &self,
        batch: &mut Batch,
        of: &Record,
    ) -> Result<Changed<'_>, NotRecorded> {
        let seen = self.seen.lock().await;
        let (now, files) = self.held.since(&seen);
        let files = files.into_iter().map(|file| SessionFile {
            path: file.path,
            bytes: file.bytes,
            modified: file.modified,
        });
        let files: Vec<_> = files.collect();
        if self.record.is(of) {
            batch.files = files;
        } else if !files.is_empty() {
            let batch = Batch {
                files,
                ..Batch::default()
            };
            self.record.commit(vec![batch]).await?;
        }
        Ok(Changed { seen, now })
    }
}

impl Changed<'_> {
    /// They are on the disk.
    pub(super) fn recorded(mut self) {
        *self.seen = self.now;
    }
}
