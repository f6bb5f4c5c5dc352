//! A database file and the connections to it.
//!
//! Each reader has its own connection, so readers never wait for a writer. There is one
//! connection for writing: the calls of this process queue for it without blocking a
//! thread, and only the call that holds it competes with other processes.

mod create;
pub(crate) mod kind;
mod log;
mod open;

pub(crate) use kind::DatabaseKind;
pub use open::OpenError;

use crate::problem::Problem;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time that another process may hold the lock before a call fails.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of idle connections kept for readers.
const MAX_IDLE: usize = 8;

/// Size of the cache of prepared statements: enough for all of them.
const STATEMENT_CACHE: usize = 64;

/// An open database. Clones share it.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    kind: &'static DatabaseKind,
    path: PathBuf,
    identity: Identity,
    idle: Mutex<Vec<Connection>>,
    writer: Arc<tokio::sync::Mutex<Writer>>,
    damaged: Arc<AtomicBool>,
}

/// Identifies the file that was opened.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("Database")
            .field(&self.inner.path)
            .finish()
    }
}

/// Maximum wait of a reader for a lock. Readers rarely meet one: only while the log of a
/// killed process is recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockWait {
    /// Not at all: the calling thread must not block.
    Never,
    /// As long as a call may take.
    Blocking,
}

impl Database {
    /// Opens the database at `path`, or creates it. A new file and missing parent folders
    /// are only accessible to their owner; existing folders keep their permissions.
    ///
    /// May block while another process is opening the same file, for at most five seconds.
    ///
    /// # Errors
    /// When the file is not a store, or cannot be used. An existing file is never changed
    /// then.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, OpenError> {
        Self::open_as(path.into(), &kind::STORE)
    }

    /// Opens or creates a database with this schema.
    pub(crate) fn open_as(path: PathBuf, kind: &'static DatabaseKind) -> Result<Self, OpenError> {
        open::open(&path, kind).map_err(|problem| OpenError {
            kind: kind.name,
            path,
            problem,
        })
    }

    /// Returns the path, with all links in its parent folders resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    fn new(
        kind: &'static DatabaseKind,
        path: PathBuf,
        identity: Identity,
        writer: Connection,
    ) -> Self {
        let damaged = Arc::new(AtomicBool::new(false));
        let writer = Writer {
            connection: writer,
            locked_since: None,
            damaged: Arc::clone(&damaged),
            durability: Durability::PowerFailure,
            has_durable_writes: false,
            log: create::with_suffix(&path, "-wal"),
        };
        Self {
            inner: Arc::new(Inner {
                kind,
                path,
                identity,
                idle: Mutex::default(),
                writer: Arc::new(tokio::sync::Mutex::new(writer)),
                damaged,
            }),
        }
    }

    /// Returns a connection for reading.
    pub(crate) fn reader(&self, wait: LockWait) -> Result<Reader, Problem> {
        let connection = match self.idle().pop() {
            Some(connection) => connection,
            None => {
                self.check_identity()?;
                let connection = connect(&self.inner.path)?;
                connection.pragma_update(None, "query_only", true)?;
                connection
            }
        };
        connection.busy_timeout(match wait {
            LockWait::Never => Duration::ZERO,
            LockWait::Blocking => LOCK_TIMEOUT,
        })?;
        Ok(Reader {
            database: self.clone(),
            connection: Some(connection),
        })
    }

    /// Waits for the connection for writing.
    pub(crate) async fn writer(&self) -> tokio::sync::OwnedMutexGuard<Writer> {
        Arc::clone(&self.inner.writer).lock_owned().await
    }

    /// Blocks until the connection for writing is available.
    pub(crate) fn writer_blocking(&self) -> tokio::sync::OwnedMutexGuard<Writer> {
        Arc::clone(&self.inner.writer).blocking_lock_owned()
    }

    /// Fails if the path no longer refers to the open file: writes to a file without a name
    /// would be lost.
    pub(crate) fn check_identity(&self) -> Result<(), Problem> {
        match open::identity(&self.inner.path) {
            Ok(Some(identity)) if identity == self.inner.identity => Ok(()),
            _ => Err(Problem::Moved),
        }
    }

    /// Records damage. From then on nothing is written, so that the file stays as it is for
    /// recovery.
    pub(crate) fn record_damage(&self, problem: &Problem) {
        if let Problem::Damaged { .. } | Problem::NotADatabase = problem {
            self.inner.damaged.store(true, Ordering::Relaxed);
            tracing::warn!(path = %self.inner.path.display(), %problem, "the {}", self.inner.kind.name);
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.inner
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that returns to the pool when dropped.
pub(crate) struct Reader {
    database: Database,
    connection: Option<Connection>,
}

impl Reader {
    pub(crate) fn connection(&self) -> Result<&Connection, Problem> {
        self.connection.as_ref().ok_or(Problem::Moved)
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        // A connection that is still in a transaction would show old data to its next user.
        let clean = connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok();
        let mut idle = self.database.idle();
        if clean && idle.len() < MAX_IDLE {
            idle.push(connection);
        }
    }
}

/// The connection for writing.
pub(crate) struct Writer {
    connection: Connection,
    /// Time since which every attempt has found the database locked by another process.
    locked_since: Option<Instant>,
    damaged: Arc<AtomicBool>,
    durability: Durability,
    /// Whether any write had to survive a power failure.
    has_durable_writes: bool,
    log: PathBuf,
}

/// A log longer than this many bytes is always copied into the database on close.
const MAX_LOG: i64 = 1 << 20;

/// The failure that an acknowledged write must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// A power failure.
    PowerFailure,
    /// The end of this process.
    ProcessEnd,
}

impl Writer {
    /// Sets the failure that the following writes must survive.
    pub(crate) fn set_durability(&mut self, durability: Durability) -> Result<(), Problem> {
        if self.durability != durability {
            self.connection.execute_batch(match durability {
                Durability::PowerFailure => "PRAGMA synchronous = FULL",
                Durability::ProcessEnd => "PRAGMA synchronous = NORMAL",
            })?;
            self.durability = durability;
        }
        Ok(())
    }

    /// Overwrites deleted data from now on.
    pub(crate) fn overwrite_deleted(&mut self) -> Result<(), Problem> {
        let set = "PRAGMA secure_delete = ON";
        Ok(self.connection.query_row(set, [], |_| Ok(()))?)
    }

    /// Copies the log into the database and empties it, if no other connection uses it.
    pub(crate) fn checkpoint(&mut self) {
        let _ = self.connection.busy_timeout(Duration::ZERO);
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        let _ = self.connection.query_row(checkpoint, [], |_| Ok(()));
    }

    /// Starts a write transaction. `asked` is the time at which the caller joined the
    /// queue: waiting for other processes counts against the time limit, waiting for this
    /// process does not. So if another process holds the lock, all queued calls fail
    /// together.
    pub(crate) fn begin(
        &mut self,
        queued_at: Instant,
    ) -> Result<rusqlite::Transaction<'_>, Problem> {
        if self.damaged.load(Ordering::Relaxed) {
            let detail = "an earlier call found it damaged".to_owned();
            return Err(Problem::Damaged { detail });
        }
        self.has_durable_writes |= self.durability == Durability::PowerFailure;
        let now = Instant::now();
        let start = self.locked_since.map_or(now, |since| since.max(queued_at));
        let left = (start + LOCK_TIMEOUT).saturating_duration_since(now);
        self.connection.busy_timeout(left)?;
        match self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
        {
            Ok(transaction) => {
                self.locked_since = None;
                Ok(transaction)
            }
            Err(error) => {
                let problem = Problem::from(error);
                if problem == Problem::Locked {
                    self.locked_since.get_or_insert(now);
                }
                Err(problem)
            }
        }
    }
}

impl Drop for Writer {
    /// Leaves all data in the database file if no other process uses it: a leftover log
    /// could be mistaken for the log of a copy put in its place. After unimportant writes
    /// only, it does not wait for the disk, and leaves this to the next process.
    fn drop(&mut self) {
        let is_long = rustix::fs::lstat(&self.log).is_ok_and(|log| log.st_size > MAX_LOG);
        if !self.damaged.load(Ordering::Relaxed) && (self.has_durable_writes || is_long) {
            self.checkpoint();
        }
    }
}

/// Opens a connection with the settings common to all.
fn connect(path: &Path) -> Result<Connection, Problem> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // Before anything is read, because closing the connection must not change a file that
    // turns out to be foreign or damaged, nor interfere with a process that is still
    // writing to the log.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // Otherwise SQLite would plan a statement again for every bound value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    connection.busy_timeout(LOCK_TIMEOUT)?;
    // FULL: an acknowledged write must survive a power failure, not only the end of the
    // process.
    connection.execute_batch(
        "PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = ON;
         PRAGMA journal_size_limit = 67108864;
         PRAGMA cell_size_check = ON;
         PRAGMA trusted_schema = OFF;",
    )?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use haft_ops::backend::Expect;
    use haft_ops::{Access, Backend, Scope};
    use std::io::Read;

    /// Simulates a full disk with a limit of pages.
    #[tokio::test]
    async fn a_full_database_is_reported_and_keeps_the_old_content() {
        let binary = std::env::current_exe().unwrap();
        let folder = tempfile::TempDir::new_in(binary.parent().unwrap()).unwrap();
        let database = Database::open(folder.path().join("store.db")).unwrap();
        let store = Store::new(database.clone(), "test");
        let path = Scope::detached().resolve("f", Access::Write).unwrap();
        let write = |bytes: Vec<u8>| store.write(&path, bytes, Expect::Anything);
        write(b"old".to_vec()).await.unwrap();
        let limit_pages = |pages: i64| {
            let writer = database.inner.writer.try_lock().unwrap();
            let set = format!("PRAGMA max_page_count = {pages}");
            writer.connection.query_row(&set, [], |_| Ok(())).unwrap();
        };
        limit_pages(20);
        let text = write(vec![1; 1 << 20]).await.unwrap_err().to_string();
        assert!(
            text.ends_with(
                "cannot grow: no space left; nothing was changed; free some space and try again"
            ),
            "{text}"
        );
        let mut kept = String::new();
        let mut content = store.read(&path).await.unwrap();
        content.reader.read_to_string(&mut kept).unwrap();
        assert_eq!(kept, "old");
        limit_pages(1000);
        write(vec![1; 1 << 20]).await.unwrap();
    }
}
