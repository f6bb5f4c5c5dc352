//! Sessions and their records, which survive the end of a process at any moment.
//!
//! Everything that must be recorded together goes into one [`Batch`], which is one
//! transaction. An acknowledged batch is on disk. Only one process at a time may write to a
//! session; when it ends, however it ends, another may resume the session.
//!
//! ```
//! use haft_store::sessions::{Batch, NewMessage, NewSession, SessionKind, Sessions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let sessions = Sessions::open(folder.path().join("sessions.db"))?;
//! let session = sessions.begin(NewSession {
//!     id: None,
//!     kind: SessionKind::Agent,
//!     work_dir: "/project".into(),
//!     toolset: "standard".to_owned(),
//!     provider: "replay".to_owned(),
//!     model: "scripted".to_owned(),
//!     title: Some("the failing test".to_owned()),
//!     parent: None,
//!     system: None,
//! })?;
//! let prompt = NewMessage { role: "user".to_owned(), body: "{}".to_owned(), usage: None };
//! session.commit(Batch { messages: vec![prompt], ..Batch::default() }).await?;
//!
//! let id = session.id().to_owned();
//! drop(session);
//! let (session, loaded) = sessions.resume(&id)?;
//! assert_eq!((session.id(), loaded.messages.len()), (id.as_str(), 1));
//! # Ok(())
//! # }
//! ```

mod delete;
mod error;
mod files;
mod fork;
mod lease;
mod names;
mod read;
mod record;
mod session;
mod tables;
#[cfg(test)]
mod tests;
mod writer_thread;

pub use crate::record::{
    Approval, Batch, Call, Decision, Deleted, Filter, Info, Loaded, NewMessage, NewSession,
    OpenCall, Outcome, PendingApproval, REDACTED, RecordItem, RecordedCall, RecordedEvent,
    Redactor, SessionFile, SessionKind, StoredMessage, Summary,
};
pub use error::Error;
pub use session::Session;
pub(crate) use tables::{LATER_TABLES, TABLES};

use crate::database::{Database, LockWait, OpenError, kind};
use crate::problem::Problem;
use error::WorkError;
use lease::Owner;
use rusqlite::Connection;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};
use writer_thread::{Urgency, WriterThread};

/// Maximum length of a title in characters.
const MAX_TITLE: usize = 200;

/// Returns an id for a session that will start later: [`NewSession::id`].
#[must_use]
pub fn new_id() -> String {
    names::generate()
}

/// All sessions of one database. Clones share it.
///
/// Functions that are not `async` may block briefly, to read from disk or to wait for a
/// write.
#[derive(Clone)]
pub struct Sessions {
    inner: Arc<Inner>,
}

struct Inner {
    database: Database,
    writer: WriterThread,
    redactor: RwLock<Arc<Redactor>>,
}

impl Inner {
    fn redactor(&self) -> Arc<Redactor> {
        let redactor = self.redactor.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&redactor)
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_tuple("Sessions")
            .field(&self.path())
            .finish()
    }
}

impl Sessions {
    /// Opens the session database at `path`, or creates it. A new file and missing parent
    /// folders are only accessible to their owner.
    ///
    /// # Errors
    /// When the file is not a session database, or cannot be used. An existing file is
    /// never changed then.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, OpenError> {
        let database = Database::open_as(path.into(), &kind::SESSIONS)?;
        let writer = WriterThread::open(&database).map_err(|problem| OpenError {
            kind: kind::SESSIONS.name,
            path: database.path().to_owned(),
            problem,
        })?;
        Ok(Self {
            inner: Arc::new(Inner {
                database,
                writer,
                redactor: RwLock::default(),
            }),
        })
    }

    /// Returns the path of the database.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.inner.database.path()
    }

    /// Replaces these values by [`REDACTED`] in everything recorded from now on and in the
    /// output of [`Sessions::walk`]. Values of fewer than 8 characters are ignored. User
    /// names and passwords in URLs are always redacted.
    pub fn redact(&self, secrets: impl IntoIterator<Item = String>) {
        let redactor = Arc::new(Redactor::new(secrets));
        let mut known = self
            .inner
            .redactor
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *known = redactor;
    }

    /// Redacts these values in addition to the current ones.
    pub fn redact_also(&self, secrets: impl IntoIterator<Item = String>) {
        let known = &self.inner.redactor;
        let mut known = known.write().unwrap_or_else(PoisonError::into_inner);
        let mut redactor = Redactor::clone(&known);
        redactor.add(secrets);
        *known = Arc::new(redactor);
    }

    /// Starts a session. It is recorded with its first batch, so an unused session leaves
    /// no trace.
    ///
    /// # Errors
    /// When the id is not valid. The first commit fails if the id is already in use.
    pub fn begin(&self, mut new: NewSession) -> Result<Session, Error> {
        let id = match new.id.take() {
            Some(id) => names::check(id)?,
            None => names::generate(),
        };
        let redactor = self.inner.redactor();
        let texts = new.title.iter_mut().chain(&mut new.system);
        texts.for_each(|text| redactor.redact_in_place(text));
        Ok(Session::new(self.clone(), id, new))
    }

    /// Resumes a session for writing, given its id or the start of it.
    ///
    /// # Errors
    /// When it is not found, when a running process (including this one) writes to it, or
    /// when the database cannot be used.
    pub fn resume(&self, id: &str) -> Result<(Session, Loaded), Error> {
        let given = id.to_owned();
        let lease = fastrand::i64(1..);
        let owner = Owner::this_process();
        let id = self
            .inner
            .writer
            .wait(Urgency::Volatile, move |connection| {
                let (number, id) = names::find(connection, &given)?;
                read::check_free(connection, number)?;
                record::set_owner(connection, number, lease, &owner)?;
                Ok(id)
            })?;
        // The lease is returned if loading fails.
        let session = Session::resumed(self.clone(), id, lease);
        let loaded = self.load(session.id())?;
        Ok((session, loaded))
    }

    /// Loads a session without acquiring it for writing.
    ///
    /// # Errors
    /// When it is not found, or the database cannot be used.
    pub fn load(&self, id: &str) -> Result<Loaded, Error> {
        self.read(|connection| {
            let (number, _) = names::find(connection, id)?;
            read::load(connection, number)
        })
    }

    /// Returns the newest version of each file that the session stores itself, sorted by
    /// path.
    ///
    /// # Errors
    /// When the session is not found, or the database cannot be used.
    pub fn files(&self, id: &str) -> Result<Vec<SessionFile>, Error> {
        self.read(|connection| {
            let (number, _) = names::find(connection, id)?;
            files::current(connection, number)
        })
    }

    /// Returns the full id of a session, given the start of it.
    ///
    /// # Errors
    /// When it is not found, or the database cannot be used.
    pub fn find(&self, id: &str) -> Result<String, Error> {
        self.read(|connection| Ok(names::find(connection, id)?.1))
    }

    /// Returns the agent session that was used last in a folder.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub fn newest(&self, work_dir: &Path) -> Result<Option<String>, Error> {
        let filter = Filter {
            work_dir: Some(work_dir.to_owned()),
            kinds: vec![SessionKind::Agent],
            limit: Some(1),
            ..Filter::default()
        };
        let newest = self.list(&filter)?.into_iter().next();
        Ok(newest.map(|summary| summary.id))
    }

    /// Lists sessions, newest first.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Summary>, Error> {
        self.read(|connection| read::list(connection, filter))
    }

    /// Creates a session that continues after the message `at`, or at the end. The history
    /// up to there is shared; pending approvals are not carried over.
    ///
    /// # Errors
    /// When the session or the message is not found, or when the database cannot be used.
    pub fn fork(&self, id: &str, at: Option<i64>) -> Result<String, Error> {
        let given = id.to_owned();
        let generate = names::generate();
        let now = millis(SystemTime::now());
        self.inner.writer.wait(Urgency::Durable, move |connection| {
            let from = names::find(connection, &given)?;
            fork::fork(connection, &from, at, &generate, now)?;
            Ok(generate.clone())
        })
    }

    /// Deletes a session and those of its sub-agents, except for history that a fork
    /// shares. Deleted data is overwritten. Output files are left to the caller.
    ///
    /// # Errors
    /// When the session is not found or in use, or when the database cannot be used.
    pub fn delete(&self, id: &str) -> Result<Deleted, Error> {
        let given = id.to_owned();
        self.inner.writer.wait(Urgency::Erase, move |connection| {
            let (number, _) = names::find(connection, &given)?;
            delete::delete(connection, number)
        })
    }

    /// Finds a call by its id, in one session or in any, and returns its session too.
    ///
    /// # Errors
    /// When none or several are found, or when the database cannot be used.
    pub fn call(
        &self,
        session: Option<&str>,
        call_id: &str,
    ) -> Result<(String, RecordedCall), Error> {
        self.read(|connection| {
            let session = match session {
                Some(given) => Some(names::find(connection, given)?),
                None => None,
            };
            read::call(connection, session.as_ref(), call_id)
        })
    }

    /// Returns the session of a folder that was used last and contains a call with this id.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub fn with_call(&self, work_dir: &Path, call_id: &str) -> Result<Option<String>, Error> {
        self.read(|connection| read::with_call(connection, work_dir, call_id))
    }

    /// Visits all records of a session in the order in which they were recorded, and then
    /// those of its sub-agents. Reads from one snapshot, without loading everything into
    /// memory.
    ///
    /// # Errors
    /// When the session is not found, or the database cannot be used.
    pub fn walk(
        &self,
        id: &str,
        mut visit: impl FnMut(RecordItem) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let redactor = self.inner.redactor();
        self.read(|connection| {
            let (number, _) = names::find(connection, id)?;
            let mut redacted = |mut entry: RecordItem| {
                texts(&mut entry).for_each(|text| redactor.redact_in_place(text));
                visit(entry)
            };
            read::walk(connection, number, &mut redacted).map(drop)
        })
    }

    /// Runs a query on a snapshot of the database.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, WorkError>) -> Result<T, Error> {
        let database = &self.inner.database;
        let work = || -> Result<T, WorkError> {
            let reader = database.reader(LockWait::Blocking)?;
            // The transaction is rolled back when dropped.
            let snapshot = reader.connection()?.unchecked_transaction()?;
            work(&snapshot)
        };
        work().map_err(|error| match error {
            WorkError::Rejected(error) => error,
            WorkError::Database(problem) => self.database_error(problem),
        })
    }

    fn database_error(&self, problem: Problem) -> Error {
        self.inner.database.record_damage(&problem);
        writer_thread::database_error(&self.inner.database, problem)
    }
}

/// Returns the texts of a record that come from outside and may contain secrets.
fn texts(entry: &mut RecordItem) -> impl Iterator<Item = &mut String> {
    let texts: Vec<&mut String> = match entry {
        RecordItem::Session(info) => info.title.iter_mut().chain(&mut info.system).collect(),
        RecordItem::Message(message) => vec![&mut message.body],
        RecordItem::Call(call) => [&mut call.arguments]
            .into_iter()
            .chain(&mut call.reply)
            .collect(),
        RecordItem::Event(event) => vec![&mut event.body],
    };
    texts.into_iter()
}

fn millis(time: SystemTime) -> i64 {
    let saturated = |distance: Duration| i64::try_from(distance.as_millis()).unwrap_or(i64::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => saturated(since),
        Err(before) => -saturated(before.duration()),
    }
}

fn time(millis: i64) -> SystemTime {
    let distance = Duration::from_millis(millis.unsigned_abs());
    let found = if millis >= 0 {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    };
    found.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Returns the start of the first text in a message, on one line.
fn title_of(body: &str) -> Option<String> {
    let body: serde_json::Value = serde_json::from_str(body).ok()?;
    let content = body.get("content")?.as_array()?;
    let text = content
        .iter()
        .find_map(|block| block.get("text")?.as_str())?;
    let mut title: String = text
        .split_whitespace()
        .flat_map(|name| [" ", name])
        .skip(1)
        .flat_map(str::chars)
        .take(MAX_TITLE + 1)
        .collect();
    if let Some((at, _)) = title.char_indices().nth(MAX_TITLE) {
        title.truncate(at);
        title.push('…');
    }
    (!title.is_empty()).then_some(title)
}
