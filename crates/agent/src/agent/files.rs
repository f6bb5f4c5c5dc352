//! Records files that live in the session itself (`Backing::State`). Changed files are recorded
//! before an event reports the change. Sub-agents work on the files of the outermost agent,
//! and they are recorded in its session.

use super::record::{NotRecorded, Record};
use haft::{MemoryFiles, MemoryMark};
use haft_store::record::{Batch, SessionFile};
use tokio::sync::{Mutex, MutexGuard};

/// Records the files of a session.
pub(crate) struct FileRecorder {
    held: MemoryFiles,
    record: Record,
    /// State of the files that was recorded last. Locked while recording, so that no event
    /// reports a change that another task is still recording.
    recorded: Mutex<MemoryMark>,
}

/// Changes that are being recorded.
pub(super) struct ChangedFiles<'a> {
    recorded: MutexGuard<'a, MemoryMark>,
    now: MemoryMark,
}

impl FileRecorder {
    /// Returns `None` if the session has no files of its own or is not recorded.
    pub(super) fn new(held: &MemoryFiles, record: &Record) -> Option<Self> {
        (record.is_on() && !held.is_empty()).then(|| Self {
            held: held.clone(),
            record: record.clone(),
            recorded: Mutex::default(),
        })
    }

    /// Adds changed files to a batch of `record`. If that is a sub-agent's record, commits
    /// them to the outermost session immediately. Call [`ChangedFiles::committed`] when the
    /// batch is committed.
    pub(super) async fn add(
        &self,
        batch: &mut Batch,
        record: &Record,
    ) -> Result<ChangedFiles<'_>, NotRecorded> {
        let recorded = self.recorded.lock().await;
        let (now, files) = self.held.since(&recorded);
        let files = files.into_iter().map(|file| SessionFile {
            path: file.path,
            bytes: file.bytes,
            modified: file.modified,
        });
        let files: Vec<_> = files.collect();
        if self.record.is(record) {
            batch.files = files;
        } else if !files.is_empty() {
            let batch = Batch {
                files,
                ..Batch::default()
            };
            self.record.commit(vec![batch]).await?;
        }
        Ok(ChangedFiles { recorded, now })
    }
}

impl ChangedFiles<'_> {
    /// Marks the changes as recorded.
    pub(super) fn committed(mut self) {
        *self.recorded = self.now;
    }
}
