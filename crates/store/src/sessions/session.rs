//! A session that this process may write to.

use super::error::{Error, WorkError};
use super::lease::Owner;
use super::record::{self, SessionRow};
use super::writer_thread::{self, Urgency};
use super::{Batch, NewSession, Sessions, millis};
use crate::record::{RecordedCall, SessionRecord};
use async_trait::async_trait;
use rusqlite::Connection;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Maximum number of bytes that may wait in delayed batches.
const MAX_DELAYED: usize = 4 << 20;

/// A session that only this process may write to. Clones share it; when the last one is
/// dropped, another process may resume the session.
#[derive(Clone)]
pub struct Session {
    lease_guard: Arc<LeaseGuard>,
}

/// The lease on a session. Dropping it returns the session.
struct LeaseGuard {
    key: Arc<Key>,
    /// The delayed batch that can still grow.
    delayed_batch: Mutex<Option<Arc<Mutex<DelayedBatch>>>>,
    sessions: Sessions,
}

/// A batch that is written with a delay, together with later ones.
struct DelayedBatch {
    batch: Batch,
    size: usize,
    /// Whether it is being written.
    is_being_written: bool,
}

/// Everything that work on the writing thread needs. It must not own anything whose drop
/// waits for that thread.
struct Key {
    id: String,
    lease: i64,
    owner: Owner,
    new: Option<NewSession>,
    /// Whether a write was attempted, so that the session may have a row.
    may_have_row: AtomicBool,
    /// Whether the session has a row.
    has_row: AtomicBool,
    /// Size of delayed batches in bytes.
    delayed_bytes: AtomicUsize,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Session").field(&self.id()).finish()
    }
}

impl Session {
    /// Creates a session that starts with its first batch.
    pub(super) fn new(sessions: Sessions, id: String, new: NewSession) -> Self {
        Self::with_lease(sessions, id, fastrand::i64(1..), Some(new))
    }

    /// Creates a handle for a session that was resumed.
    pub(super) fn resumed(sessions: Sessions, id: String, lease: i64) -> Self {
        Self::with_lease(sessions, id, lease, None)
    }

    fn with_lease(sessions: Sessions, id: String, lease: i64, new: Option<NewSession>) -> Self {
        let key = Key {
            id,
            lease,
            owner: Owner::this_process(),
            may_have_row: AtomicBool::new(new.is_none()),
            has_row: AtomicBool::new(new.is_none()),
            new,
            delayed_bytes: AtomicUsize::new(0),
        };
        Self {
            lease_guard: Arc::new(LeaseGuard {
                key: Arc::new(key),
                delayed_batch: Mutex::default(),
                sessions,
            }),
        }
    }

    /// Returns the session's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.lease_guard.key.id
    }

    /// Returns the database that the session is in.
    #[must_use]
    pub fn sessions(&self) -> &Sessions {
        &self.lease_guard.sessions
    }

    /// Records a batch, all or nothing. When this returns, it is on disk. Returns the ids
    /// of its messages in order.
    ///
    /// A submitted batch is recorded even if the future is dropped, and batches are
    /// recorded in the order of submission.
    ///
    /// # Errors
    /// When nothing was recorded: the database cannot be written, the session was taken
    /// over or deleted, or the batch contradicts earlier records.
    pub async fn commit(&self, batch: Batch) -> Result<Vec<i64>, Error> {
        self.commit_all(vec![batch]).await
    }

    /// Records several batches in order and in one transaction. Returns the ids of all
    /// their messages.
    ///
    /// # Errors
    /// Same as [`Session::commit`].
    pub async fn commit_all(&self, batches: Vec<Batch>) -> Result<Vec<i64>, Error> {
        self.commit_with(Urgency::Durable, batches).await
    }

    /// Records a batch that survives the end of this process, but perhaps not a power
    /// failure: for information that nothing depends on. This is much faster.
    ///
    /// # Errors
    /// Same as [`Session::commit`].
    pub async fn commit_lightly(&self, batch: Batch) -> Result<(), Error> {
        self.commit_with(Urgency::Volatile, vec![batch])
            .await
            .map(drop)
    }

    async fn commit_with(&self, urgency: Urgency, batches: Vec<Batch>) -> Result<Vec<i64>, Error> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        self.submit(urgency, batches, move |result| {
            let _ = answer.send(result);
        });
        let writer_ended = || {
            Err(writer_thread::ended(
                &self.lease_guard.sessions.inner.database,
            ))
        };
        answered.await.unwrap_or_else(|_| writer_ended())
    }

    /// Same as [`Session::commit`], for a thread that may block.
    ///
    /// # Errors
    /// Same as [`Session::commit`].
    pub fn commit_blocking(&self, batch: Batch) -> Result<Vec<i64>, Error> {
        let (answer, answered) = std::sync::mpsc::sync_channel(1);
        self.submit(Urgency::Durable, vec![batch], move |result| {
            let _ = answer.send(result);
        });
        let writer_ended = || {
            Err(writer_thread::ended(
                &self.lease_guard.sessions.inner.database,
            ))
        };
        answered.recv().unwrap_or_else(|_| writer_ended())
    }

    /// Records a batch within a moment, without waiting: for information that nothing
    /// depends on. It is written together with other delayed batches, at the latest when
    /// the last user of the database in this process is dropped. If too much is delayed,
    /// the caller waits for the disk.
    ///
    /// # Errors
    /// Same as [`Session::commit`] if the caller had to wait. Later errors are only logged.
    pub async fn commit_soon(&self, mut batch: Batch) -> Result<(), Error> {
        let key = &self.lease_guard.key;
        let size = batch.size();
        if key.delayed_bytes.load(Ordering::Relaxed) + size > MAX_DELAYED {
            return self.commit(batch).await.map(drop);
        }
        key.delayed_bytes.fetch_add(size, Ordering::Relaxed);
        self.redact(&mut batch);
        let mut delayed_batch = lock(&self.lease_guard.delayed_batch);
        if let Some(delayed) = &*delayed_batch {
            let mut delayed = lock(delayed);
            if !delayed.is_being_written {
                delayed.batch.append(batch);
                delayed.size += size;
                return Ok(());
            }
        }
        let delayed = Arc::new(Mutex::new(DelayedBatch {
            batch,
            size,
            is_being_written: false,
        }));
        *delayed_batch = Some(Arc::clone(&delayed));
        let (key, written) = (Arc::clone(key), Arc::clone(&delayed));
        self.submit_work(
            Urgency::Soon,
            move |add| {
                let mut delayed = lock(&delayed);
                delayed.is_being_written = true;
                add(std::slice::from_ref(&delayed.batch))
            },
            move |result| {
                let size = lock(&written).size;
                key.delayed_bytes.fetch_sub(size, Ordering::Relaxed);
                if let Err(error) = result {
                    tracing::warn!(%error, session = key.id, "not recorded");
                }
            },
        );
        Ok(())
    }

    fn submit(
        &self,
        urgency: Urgency,
        mut batches: Vec<Batch>,
        answer: impl FnOnce(Result<Vec<i64>, Error>) + Send + 'static,
    ) {
        batches.iter_mut().for_each(|batch| self.redact(batch));
        // Later submissions must not overtake or join the delayed batch.
        let mut delayed_batch = lock(&self.lease_guard.delayed_batch);
        *delayed_batch = None;
        self.submit_work(urgency, move |add| add(&batches), answer);
    }

    fn redact(&self, batch: &mut Batch) {
        let redactor = self.lease_guard.sessions.inner.redactor();
        batch
            .texts()
            .for_each(|text| redactor.redact_in_place(text));
    }

    /// Submits work that adds batches.
    fn submit_work(
        &self,
        urgency: Urgency,
        mut work: impl FnMut(
            &dyn Fn(&[Batch]) -> Result<Vec<i64>, WorkError>,
        ) -> Result<Vec<i64>, WorkError>
        + Send
        + 'static,
        answer: impl FnOnce(Result<Vec<i64>, Error>) + Send + 'static,
    ) {
        let now = millis(SystemTime::now());
        let key = Arc::clone(&self.lease_guard.key);
        key.may_have_row.store(true, Ordering::Relaxed);
        let recorded = Arc::clone(&key);
        self.lease_guard.sessions.inner.writer.submit(
            urgency,
            move |connection| work(&|batches| key.add(connection, batches, now)),
            move |result| {
                if result.is_ok() {
                    recorded.has_row.store(true, Ordering::Relaxed);
                }
                answer(result);
            },
        );
    }
}

#[async_trait]
impl SessionRecord for Session {
    async fn commit(&self, batches: Vec<Batch>) -> Result<Vec<i64>, String> {
        let committed = self.commit_all(batches).await;
        committed.map_err(|error| error.to_string())
    }

    async fn commit_lightly(&self, batch: Batch) -> Result<(), String> {
        let committed = self.commit_with(Urgency::Volatile, vec![batch]).await;
        committed.map(drop).map_err(|error| error.to_string())
    }

    fn call(&self, call_id: &str) -> Option<RecordedCall> {
        let found = self.sessions().call(Some(self.id()), call_id);
        found.ok().map(|(_, call)| call)
    }

    fn redact(&self, secret: String) {
        self.sessions().redact_also([secret]);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Key {
    /// Adds batches, if this process still owns the session.
    fn add(
        &self,
        connection: &Connection,
        batches: &[Batch],
        now: i64,
    ) -> Result<Vec<i64>, WorkError> {
        let id = || self.id.clone();
        let has_row = self.has_row.load(Ordering::Relaxed);
        let row = match (SessionRow::find(connection, &self.id)?, &self.new) {
            (Some(row), _) if row.lease == Some(self.lease) => Some(row),
            (Some(_), _) if !has_row => return Err(Error::BadId { given: id() }.into()),
            (Some(_), _) => return Err(Error::Lost { id: id() }.into()),
            (None, Some(new)) if !has_row => {
                record::insert_session(connection, &self.id, new, self.lease, &self.owner, now)?;
                SessionRow::find(connection, &self.id)?
            }
            (None, _) => None,
        };
        let mut row = row.ok_or_else(|| Error::Deleted { id: id() })?;
        let mut ids = Vec::new();
        for batch in batches {
            ids.extend(record::write(connection, &mut row, batch, now)?);
        }
        Ok(ids)
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        // A submitted batch may create the row, so its lease must be returned too.
        if !self.key.may_have_row.load(Ordering::Relaxed) {
            return;
        }
        let key = Arc::clone(&self.key);
        self.sessions.inner.writer.submit(
            Urgency::Volatile,
            move |connection| record::clear_owner(connection, key.lease, &key.id),
            // Not needed if it fails: the lease of a process that has ended can be taken
            // over.
            |_| {},
        );
    }
}
