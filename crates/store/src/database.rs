//! One database file, and the connections to it.
//!
//! Readers have connections of their own, so that none of them ever waits for a
//! writer. There is one connection that writes: calls of this process queue for
//! it without a thread, and only its holder competes with other processes.

pub(crate) mod form;
mod log;
mod make;
mod open;

pub(crate) use form::Form;
pub use open::OpenError;

use crate::problem::Problem;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long another process may hold the lock before a call gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// How many idle connections are kept for readers.
const MAX_IDLE: usize = 8;

/// How many prepared statements a connection keeps: all there are.
const STATEMENTS: usize = 64;

/// A database. Clones are the same one.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    form: &'static Form,
    path: PathBuf,
    identity: Identity,
    idle: Mutex<Vec<Connection>>,
    writer: Arc<tokio::sync::Mutex<Writer>>,
    damaged: Arc<AtomicBool>,
}

/// Which file a name stood for.
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

/// How long a reader waits. Readers hardly ever meet a lock: only while the log
/// of a killed process is taken up again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Not at all: this thread must not block.
    None,
    /// As long as a call may take.
    Long,
}

impl Database {
    /// Opens the database at `path`, or makes it: the file for its owner alone,
    /// and so are the folders above it that are missing. Folders that are there
    /// keep their permissions.
    ///
    /// It may block as long as another process is starting on the same file, five
    /// seconds at most.
    ///
    /// # Errors
    /// When there is something else than a database of this kind, or one that
    /// cannot be used. What is there is left as it is.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, OpenError> {
        Self::open_as(path.into(), &form::STORE)
    }

    /// Opens a database of some kind.
    pub(crate) fn open_as(path: PathBuf, form: &'static Form) -> Result<Self, OpenError> {
        open::open(&path, form).map_err(|problem| OpenError {
            what: form.word,
            path,
            problem,
        })
    }

    /// Where it is, with every link in the folders above it resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    fn new(form: &'static Form, path: PathBuf, identity: Identity, writer: Connection) -> Self {
        let damaged = Arc::new(AtomicBool::new(false));
        let writer = Writer {
            connection: writer,
            locked_since: None,
            damaged: Arc::clone(&damaged),
            lasting: Lasting::Power,
            earnest: false,
            log: make::beside(&path, "-wal"),
        };
        Self {
            inner: Arc::new(Inner {
                form,
                path,
                identity,
                idle: Mutex::default(),
                writer: Arc::new(tokio::sync::Mutex::new(writer)),
                damaged,
            }),
        }
    }

    /// A connection for reading.
    pub(crate) fn reader(&self, patience: Patience) -> Result<Reader, Problem> {
        let connection = match self.idle().pop() {
            Some(connection) => connection,
            None => {
                self.still_there()?;
                let connection = connect(&self.inner.path)?;
                connection.pragma_update(None, "query_only", true)?;
                connection
            }
        };
        connection.busy_timeout(match patience {
            Patience::None => Duration::ZERO,
            Patience::Long => PATIENCE,
        })?;
        Ok(Reader {
            database: self.clone(),
            connection: Some(connection),
        })
    }

    /// The turn to write.
    pub(crate) async fn writer(&self) -> tokio::sync::OwnedMutexGuard<Writer> {
        Arc::clone(&self.inner.writer).lock_owned().await
    }

    /// The turn to write, for a thread that may wait.
    pub(crate) fn writer_blocking(&self) -> tokio::sync::OwnedMutexGuard<Writer> {
        Arc::clone(&self.inner.writer).blocking_lock_owned()
    }

    /// Fails when the name no longer leads to the open file: what is written to
    /// a file without a name is lost.
    pub(crate) fn still_there(&self) -> Result<(), Problem> {
        match open::identity(&self.inner.path) {
            Ok(Some(identity)) if identity == self.inner.identity => Ok(()),
            _ => Err(Problem::Moved),
        }
    }

    /// Remembers damage: from then on nothing is written, so that the file stays
    /// as it is for whoever wants to rescue something from it.
    pub(crate) fn note(&self, problem: &Problem) {
        if let Problem::Damaged { .. } | Problem::NotADatabase = problem {
            self.inner.damaged.store(true, Ordering::Relaxed);
            tracing::warn!(path = %self.inner.path.display(), %problem, "the {}", self.inner.form.word);
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.inner
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that goes back when it is dropped.
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
        // One that is still in a transaction would show the past to the next.
        let clean = connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok();
        let mut idle = self.database.idle();
        if clean && idle.len() < MAX_IDLE {
            idle.push(connection);
        }
    }
}

/// The connection that writes.
pub(crate) struct Writer {
    connection: Connection,
    /// Since when every attempt met the lock of another process.
    locked_since: Option<Instant>,
    damaged: Arc<AtomicBool>,
    lasting: Lasting,
    /// What was begun in earnest: something that must outlive the end of the power.
    earnest: bool,
    log: PathBuf,
}

/// A log that is longer is always taken into the file.
const LONG_LOG: i64 = 1 << 20;

/// What a write must outlive once it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// The end of the power.
    Power,
    /// The end of this process.
    Process,
}

impl Writer {
    /// What the following writes must outlive.
    pub(crate) fn lasting(&mut self, lasting: Lasting) -> Result<(), Problem> {
        if self.lasting != lasting {
            self.connection.execute_batch(match lasting {
                Lasting::Power => "PRAGMA synchronous = FULL",
                Lasting::Process => "PRAGMA synchronous = NORMAL",
            })?;
            self.lasting = lasting;
        }
        Ok(())
    }

    /// From now on what is deleted is overwritten too.
    pub(crate) fn overwrite_deleted(&mut self) -> Result<(), Problem> {
        let set = "PRAGMA secure_delete = ON";
        Ok(self.connection.query_row(set, [], |_| Ok(()))?)
    }

    /// Takes the log into the file and empties it, where nobody is using it.
    pub(crate) fn fold_log(&mut self) {
        let _ = self.connection.busy_timeout(Duration::ZERO);
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        let _ = self.connection.query_row(checkpoint, [], |_| Ok(()));
    }

    /// Begins to write. `asked` is when the caller came into the queue: time in
    /// which another process held the lock counts, time in which this process was
    /// writing does not. So a hundred calls that meet a lock fail together.
    pub(crate) fn begin(&mut self, asked: Instant) -> Result<rusqlite::Transaction<'_>, Problem> {
        if self.damaged.load(Ordering::Relaxed) {
            let detail = "it was found so earlier".to_owned();
            return Err(Problem::Damaged { detail });
        }
        self.earnest |= self.lasting == Lasting::Power;
        let now = Instant::now();
        let begun = self.locked_since.map_or(now, |since| since.max(asked));
        let left = (begun + PATIENCE).saturating_duration_since(now);
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
    /// Leaves all in the one file where nobody else is using it: a log that stays
    /// behind would be taken for that of a copy put in its place. Who wrote nothing
    /// of weight does not wait for the disk and leaves that to the next.
    fn drop(&mut self) {
        let is_long = rustix::fs::lstat(&self.log).is_ok_and(|log| log.st_size > LONG_LOG);
        if !self.damaged.load(Ordering::Relaxed) && (self.earnest || is_long) {
            self.fold_log();
        }
    }
}

/// A connection with the settings that all of them have.
fn connect(path: &Path) -> Result<Connection, Problem> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // Before anything is read: closing a connection must change nothing, neither
    // in a file that turns out to be somebody else's or damaged, nor below a
    // process that goes on writing to the log.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // Without it SQLite plans a statement anew for every value bound to it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.busy_timeout(PATIENCE)?;
    // FULL: an answered write survives the end of the power too, not only ours.
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

    /// SQLite's own word for a full disk.
    #[tokio::test]
    async fn a_full_database_is_told_and_the_old_content_kept() {
        let binary = std::env::current_exe().unwrap();
        let folder = tempfile::TempDir::new_in(binary.parent().unwrap()).unwrap();
        let database = Database::open(folder.path().join("store.db")).unwrap();
        let store = Store::new(database.clone(), "test");
        let path = Scope::detached().resolve("f", Access::Write).unwrap();
        let write = |bytes: Vec<u8>| store.write(&path, bytes, Expect::Anything);
        write(b"old".to_vec()).await.unwrap();
        let bound = |pages: i64| {
            let writer = database.inner.writer.try_lock().unwrap();
            let set = format!("PRAGMA max_page_count = {pages}");
            writer.connection.query_row(&set, [], |_| Ok(())).unwrap();
        };
        bound(20);
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
        bound(1000);
        write(vec![1; 1 << 20]).await.unwrap();
    }
}
