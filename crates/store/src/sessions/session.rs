//! One session that this process may add to.

use super::batch::Batch;
use super::desk::{self, Haste};
use super::error::{Error, Stop};
use super::lease::Owner;
use super::record::{self, Current};
use super::{New, Sessions, millis};
use rusqlite::Connection;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// How many bytes may wait to be recorded soon.
const ROOM: usize = 4 << 20;

/// A session that this process may add to, and no other may meanwhile. Clones are the
/// same one; when the last is dropped, somebody else may go on with it.
#[derive(Clone)]
pub struct Session {
    held: Arc<Held>,
}

/// Gives the session back when it is dropped.
struct Held {
    key: Arc<Key>,
    /// What nobody waits for, as long as more can be added to it.
    gathering: Mutex<Option<Arc<Mutex<Later>>>>,
    sessions: Sessions,
}

/// Batches that are recorded together, soon.
struct Later {
    batch: Batch,
    size: usize,
    /// Whether it is being written.
    taken: bool,
}

/// What a piece of work needs to know. It holds nothing that waits for the thread it
/// runs on.
struct Key {
    id: String,
    lease: i64,
    owner: Owner,
    new: Option<New>,
    /// Whether it may have a row.
    used: AtomicBool,
    /// Whether it has one.
    begun: AtomicBool,
    /// Bytes on their way that nobody waits for.
    waiting: AtomicUsize,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Session").field(&self.id()).finish()
    }
}

impl Session {
    /// A session that will begin with its first batch.
    pub(super) fn new(sessions: Sessions, id: String, new: New) -> Self {
        Self::of(sessions, id, fastrand::i64(1..), Some(new))
    }

    /// A session that was there before.
    pub(super) fn taken(sessions: Sessions, id: String, lease: i64) -> Self {
        Self::of(sessions, id, lease, None)
    }

    fn of(sessions: Sessions, id: String, lease: i64, new: Option<New>) -> Self {
        let key = Key {
            id,
            lease,
            owner: Owner::ourselves(),
            used: AtomicBool::new(new.is_none()),
            begun: AtomicBool::new(new.is_none()),
            new,
            waiting: AtomicUsize::new(0),
        };
        Self {
            held: Arc::new(Held {
                key: Arc::new(key),
                gathering: Mutex::default(),
                sessions,
            }),
        }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.held.key.id
    }

    /// The sessions it is one of.
    #[must_use]
    pub fn sessions(&self) -> &Sessions {
        &self.held.sessions
    }

    /// Records a batch: all of it or nothing. Once this returns it is on the disk. The
    /// ids of its messages are returned in their order.
    ///
    /// A batch that was handed in is recorded also if nobody waits for it any more, and
    /// batches are recorded in the order in which they were handed in.
    ///
    /// # Errors
    /// When nothing of it was recorded: the database cannot be written, the session was
    /// taken over or deleted, or the batch contradicts what is recorded.
    pub async fn commit(&self, batch: Batch) -> Result<Vec<i64>, Error> {
        self.commit_all(vec![batch]).await
    }

    /// Records batches, one after the other, in one step: all of them or none. They share
    /// what makes them last. The ids are those of the messages of all of them.
    ///
    /// # Errors
    /// As [`Session::commit`].
    pub async fn commit_all(&self, batches: Vec<Batch>) -> Result<Vec<i64>, Error> {
        self.commit_with(Haste::Now, batches).await
    }

    /// Records a batch that outlives the end of this process, but perhaps not the end of
    /// the power: for what is only told, and not relied on. That takes much less time.
    ///
    /// # Errors
    /// As [`Session::commit`].
    pub async fn commit_lightly(&self, batch: Batch) -> Result<(), Error> {
        self.commit_with(Haste::Light, vec![batch]).await.map(drop)
    }

    async fn commit_with(&self, haste: Haste, batches: Vec<Batch>) -> Result<Vec<i64>, Error> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        self.hand_in(haste, batches, move |result| {
            let _ = answer.send(result);
        });
        let nobody = || Err(desk::ended(&self.held.sessions.inner.database));
        answered.await.unwrap_or_else(|_| nobody())
    }

    /// The same for a thread that may wait.
    ///
    /// # Errors
    /// As [`Session::commit`].
    pub fn commit_blocking(&self, batch: Batch) -> Result<Vec<i64>, Error> {
        let (answer, answered) = std::sync::mpsc::sync_channel(1);
        self.hand_in(Haste::Now, vec![batch], move |result| {
            let _ = answer.send(result);
        });
        let nobody = || Err(desk::ended(&self.held.sessions.inner.database));
        answered.recv().unwrap_or_else(|_| nobody())
    }

    /// Records a batch within the next moment, without waiting for it: for what nobody
    /// relies on. It goes together with others that wait so, and outlives the end of this
    /// process once it was written. All of it is written when the last user of the
    /// database in this process is dropped. Whoever is faster than the disk waits for it.
    ///
    /// # Errors
    /// As [`Session::commit`], where it had to wait. What goes wrong later is logged.
    pub async fn commit_soon(&self, mut batch: Batch) -> Result<(), Error> {
        let key = &self.held.key;
        let size = batch.size();
        if key.waiting.load(Ordering::Relaxed) + size > ROOM {
            return self.commit(batch).await.map(drop);
        }
        key.waiting.fetch_add(size, Ordering::Relaxed);
        self.clean(&mut batch);
        let mut gathering = lock(&self.held.gathering);
        if let Some(later) = &*gathering {
            let mut later = lock(later);
            if !later.taken {
                later.batch.append(batch);
                later.size += size;
                return Ok(());
            }
        }
        let later = Arc::new(Mutex::new(Later {
            batch,
            size,
            taken: false,
        }));
        *gathering = Some(Arc::clone(&later));
        let (key, written) = (Arc::clone(key), Arc::clone(&later));
        self.work(
            Haste::Soon,
            move |add| {
                let mut later = lock(&later);
                later.taken = true;
                add(std::slice::from_ref(&later.batch))
            },
            move |result| {
                let size = lock(&written).size;
                key.waiting.fetch_sub(size, Ordering::Relaxed);
                if let Err(error) = result {
                    tracing::warn!(%error, session = key.id, "not recorded");
                }
            },
        );
        Ok(())
    }

    fn hand_in(
        &self,
        haste: Haste,
        mut batches: Vec<Batch>,
        answer: impl FnOnce(Result<Vec<i64>, Error>) + Send + 'static,
    ) {
        batches.iter_mut().for_each(|batch| self.clean(batch));
        // What is handed in later comes later.
        let mut gathering = lock(&self.held.gathering);
        *gathering = None;
        self.work(haste, move |add| add(&batches), answer);
    }

    fn clean(&self, batch: &mut Batch) {
        let redactor = self.held.sessions.inner.redactor();
        batch.texts().for_each(|text| redactor.wash(text));
    }

    /// Hands in work that adds a batch.
    fn work(
        &self,
        haste: Haste,
        mut work: impl FnMut(&dyn Fn(&[Batch]) -> Result<Vec<i64>, Stop>) -> Result<Vec<i64>, Stop>
        + Send
        + 'static,
        answer: impl FnOnce(Result<Vec<i64>, Error>) + Send + 'static,
    ) {
        let now = millis(SystemTime::now());
        let key = Arc::clone(&self.held.key);
        key.used.store(true, Ordering::Relaxed);
        let begun = Arc::clone(&key);
        self.held.sessions.inner.desk.hand_in(
            haste,
            move |connection| work(&|batches| key.add(connection, batches, now)),
            move |result| {
                if result.is_ok() {
                    begun.begun.store(true, Ordering::Relaxed);
                }
                answer(result);
            },
        );
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Key {
    /// Adds batches, if the session is still ours.
    fn add(&self, connection: &Connection, batches: &[Batch], now: i64) -> Result<Vec<i64>, Stop> {
        let id = || self.id.clone();
        let begun = self.begun.load(Ordering::Relaxed);
        let current = match (Current::find(connection, &self.id)?, &self.new) {
            (Some(current), _) if current.lease == Some(self.lease) => Some(current),
            (Some(_), _) if !begun => return Err(Error::BadId { given: id() }.into()),
            (Some(_), _) => return Err(Error::Lost { id: id() }.into()),
            (None, Some(new)) if !begun => {
                record::begin(connection, &self.id, new, self.lease, &self.owner, now)?;
                Current::find(connection, &self.id)?
            }
            (None, _) => None,
        };
        let mut current = current.ok_or_else(|| Error::Deleted { id: id() })?;
        let mut ids = Vec::new();
        for batch in batches {
            ids.extend(record::write(connection, &mut current, batch, now)?);
        }
        Ok(ids)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // What is on its way begins it, so that is waited for too.
        if !self.key.used.load(Ordering::Relaxed) {
            return;
        }
        let key = Arc::clone(&self.key);
        self.sessions.inner.desk.hand_in(
            Haste::Light,
            move |connection| record::disown(connection, key.lease, &key.id),
            // Who is gone holds nothing: it needs no more to be taken over.
            |_| {},
        );
    }
}
