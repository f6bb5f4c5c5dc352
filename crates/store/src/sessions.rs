//! Sessions: what was said and done, in an order that no end of a process disturbs.
//!
//! Everything that must be true together goes into one [`Batch`], which is one
//! transaction. A batch that was acknowledged is on the disk. One process at a time may
//! add to a session; when it ends, however it ends, another may go on with it.
//!
//! ```
//! use haft_store::sessions::{Batch, Kind, New, NewMessage, Sessions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let sessions = Sessions::open(folder.path().join("sessions.db"))?;
//! let session = sessions.begin(New {
//!     id: None,
//!     kind: Kind::Agent,
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
//! let (session, loaded) = sessions.take(&id)?;
//! assert_eq!((session.id(), loaded.messages.len()), (id.as_str(), 1));
//! # Ok(())
//! # }
//! ```

mod batch;
mod delete;
mod desk;
mod error;
mod facts;
mod files;
mod fork;
mod lease;
mod names;
mod read;
mod record;
mod redact;
mod session;
mod tables;
#[cfg(test)]
mod tests;

pub use batch::{Approval, Batch, Call, Decision, NewMessage, Outcome, SessionFile};
pub use error::Error;
pub use facts::{
    Deleted, Entry, Filter, Info, Kind, Loaded, New, OpenCall, Pending, RecordedCall,
    RecordedEvent, Stored, Summary,
};
pub use redact::{REDACTED, Redactor};
pub use session::Session;
pub(crate) use tables::{ADDED, TABLES};

use crate::database::{Database, OpenError, Patience, form};
use crate::problem::Problem;
use desk::{Desk, Haste};
use error::Stop;
use lease::Owner;
use rusqlite::Connection;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

/// How long a title may be, in characters.
const TITLE: usize = 200;

/// An id for a session that will begin later: [`New::id`].
#[must_use]
pub fn new_id() -> String {
    names::fresh()
}

/// All sessions of one database. Clones are the same one.
///
/// Functions that are not `async` may block for a moment: they look something up, or wait
/// for what is being written.
#[derive(Clone)]
pub struct Sessions {
    inner: Arc<Inner>,
}

struct Inner {
    database: Database,
    desk: Desk,
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
    /// Opens the sessions at `path`, or makes their database: the file for its owner
    /// alone, and so are the folders above it that are missing.
    ///
    /// # Errors
    /// When there is something else than such a database, or one that cannot be used.
    /// What is there is left as it is.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, OpenError> {
        let database = Database::open_as(path.into(), &form::SESSIONS)?;
        let desk = Desk::open(&database).map_err(|problem| OpenError {
            what: form::SESSIONS.word,
            path: database.path().to_owned(),
            problem,
        })?;
        Ok(Self {
            inner: Arc::new(Inner {
                database,
                desk,
                redactor: RwLock::default(),
            }),
        })
    }

    /// Where they are.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.inner.database.path()
    }

    /// From now on, [`REDACTED`] is recorded and shown by [`Sessions::walk`] wherever one
    /// of these values would be. Values of fewer than 8 characters are left. The user name
    /// and the password of an address are never recorded, whatever they are.
    pub fn redact(&self, secrets: impl IntoIterator<Item = String>) {
        let redactor = Arc::new(Redactor::new(secrets));
        let mut known = self
            .inner
            .redactor
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *known = redactor;
    }

    /// The same for these values too.
    pub fn redact_also(&self, secrets: impl IntoIterator<Item = String>) {
        let known = &self.inner.redactor;
        let mut known = known.write().unwrap_or_else(PoisonError::into_inner);
        let mut redactor = Redactor::clone(&known);
        redactor.add(secrets);
        *known = Arc::new(redactor);
    }

    /// Begins a session. It is recorded with its first batch: one that nobody says
    /// anything in leaves nothing.
    ///
    /// # Errors
    /// When the id is none. That it is taken is said by the first commit.
    pub fn begin(&self, mut new: New) -> Result<Session, Error> {
        let id = match new.id.take() {
            Some(id) => names::checked(id)?,
            None => names::fresh(),
        };
        let redactor = self.inner.redactor();
        let texts = new.title.iter_mut().chain(&mut new.system);
        texts.for_each(|text| redactor.wash(text));
        Ok(Session::new(self.clone(), id, new))
    }

    /// Goes on with a session, given by its id or the beginning of it.
    ///
    /// # Errors
    /// When there is none, when a process that is alive writes to it (this one too), or
    /// when the database cannot be used.
    pub fn take(&self, id: &str) -> Result<(Session, Loaded), Error> {
        let given = id.to_owned();
        let lease = fastrand::i64(1..);
        let owner = Owner::ourselves();
        let id = self.inner.desk.wait(Haste::Light, move |connection| {
            let (number, id) = names::find(connection, &given)?;
            read::is_free(connection, number)?;
            record::own(connection, number, lease, &owner)?;
            Ok(id)
        })?;
        // Given back if it cannot be loaded.
        let session = Session::taken(self.clone(), id, lease);
        let loaded = self.look(session.id())?;
        Ok((session, loaded))
    }

    /// What there is of a session, without taking it.
    ///
    /// # Errors
    /// When there is none, or the database cannot be used.
    pub fn look(&self, id: &str) -> Result<Loaded, Error> {
        self.read(|connection| {
            let (number, _) = names::find(connection, id)?;
            read::load(connection, number)
        })
    }

    /// The files that a session holds itself, as they were recorded last, by path.
    ///
    /// # Errors
    /// When there is none, or the database cannot be used.
    pub fn files(&self, id: &str) -> Result<Vec<SessionFile>, Error> {
        self.read(|connection| {
            let (number, _) = names::find(connection, id)?;
            files::of(connection, number)
        })
    }

    /// The whole id of a session, given by the beginning of it.
    ///
    /// # Errors
    /// When there is none, or the database cannot be used.
    pub fn find(&self, id: &str) -> Result<String, Error> {
        self.read(|connection| Ok(names::find(connection, id)?.1))
    }

    /// The session of a model that was last used in a folder.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub fn newest(&self, work_dir: &Path) -> Result<Option<String>, Error> {
        let filter = Filter {
            work_dir: Some(work_dir.to_owned()),
            kinds: vec![Kind::Agent],
            most: Some(1),
            ..Filter::default()
        };
        let newest = self.list(&filter)?.into_iter().next();
        Ok(newest.map(|summary| summary.id))
    }

    /// Sessions, the newest first.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Summary>, Error> {
        self.read(|connection| read::list(connection, filter))
    }

    /// Makes another session that goes on after the message `at`, or where this one ends.
    /// What was said up to there is shared; questions that wait are not carried over.
    ///
    /// # Errors
    /// When there is no such session or no such message in it, or when the database
    /// cannot be used.
    pub fn fork(&self, id: &str, at: Option<i64>) -> Result<String, Error> {
        let given = id.to_owned();
        let fresh = names::fresh();
        let now = millis(SystemTime::now());
        self.inner.desk.wait(Haste::Now, move |connection| {
            let from = names::find(connection, &given)?;
            fork::fork(connection, &from, at, &fresh, now)?;
            Ok(fresh.clone())
        })
    }

    /// Deletes a session and those of the agents it started, but not what a fork shares
    /// with it. What is deleted is overwritten. Files with outputs are left to the caller.
    ///
    /// # Errors
    /// When there is no such session, when one of them is in use, or when the database
    /// cannot be used.
    pub fn delete(&self, id: &str) -> Result<Deleted, Error> {
        let given = id.to_owned();
        self.inner.desk.wait(Haste::Erase, move |connection| {
            let (number, _) = names::find(connection, &given)?;
            delete::delete(connection, number)
        })
    }

    /// A call by its id, of one session or of any, and the session it is of.
    ///
    /// # Errors
    /// When there is none or more than one, or when the database cannot be used.
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

    /// The session of a folder that was used last and has a call of this id.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub fn with_call(&self, work_dir: &Path, call_id: &str) -> Result<Option<String>, Error> {
        self.read(|connection| read::with_call(connection, work_dir, call_id))
    }

    /// Shows a session piece by piece, in the order in which things were recorded, and
    /// then the sessions of the agents it started. All of it is of one moment, and never
    /// in memory as a whole.
    ///
    /// # Errors
    /// When there is none, or the database cannot be used.
    pub fn walk(
        &self,
        id: &str,
        mut visit: impl FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let redactor = self.inner.redactor();
        self.read(|connection| {
            let (number, _) = names::find(connection, id)?;
            let mut cleaned = |mut entry: Entry| {
                texts(&mut entry).for_each(|text| redactor.wash(text));
                visit(entry)
            };
            read::walk(connection, number, &mut cleaned).map(drop)
        })
    }

    /// Looks something up in one moment of the database.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Stop>) -> Result<T, Error> {
        let database = &self.inner.database;
        let work = || -> Result<T, Stop> {
            let reader = database.reader(Patience::Long)?;
            // Rolled back when it is dropped.
            let moment = reader.connection()?.unchecked_transaction()?;
            work(&moment)
        };
        work().map_err(|stop| match stop {
            Stop::Said(error) => error,
            Stop::Broken(problem) => self.broken(problem),
        })
    }

    fn broken(&self, problem: Problem) -> Error {
        self.inner.database.note(&problem);
        desk::told(&self.inner.database, problem)
    }
}

/// The texts of an entry that come from outside.
fn texts(entry: &mut Entry) -> impl Iterator<Item = &mut String> {
    let texts: Vec<&mut String> = match entry {
        Entry::Session(info) => info.title.iter_mut().chain(&mut info.system).collect(),
        Entry::Message(message) => vec![&mut message.body],
        Entry::Call(call) => [&mut call.arguments]
            .into_iter()
            .chain(&mut call.reply)
            .collect(),
        Entry::Event(event) => vec![&mut event.body],
    };
    texts.into_iter()
}

fn millis(time: SystemTime) -> i64 {
    let whole = |distance: Duration| i64::try_from(distance.as_millis()).unwrap_or(i64::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => whole(since),
        Err(before) => -whole(before.duration()),
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

/// The beginning of the first text in a message, on one line.
fn title_of(body: &str) -> Option<String> {
    let body: serde_json::Value = serde_json::from_str(body).ok()?;
    let content = body.get("content")?.as_array()?;
    let text = content
        .iter()
        .find_map(|block| block.get("text")?.as_str())?;
    let mut title: String = text
        .split_whitespace()
        .flat_map(|word| [" ", word])
        .skip(1)
        .flat_map(str::chars)
        .take(TITLE + 1)
        .collect();
    if let Some((at, _)) = title.char_indices().nth(TITLE) {
        title.truncate(at);
        title.push('…');
    }
    (!title.is_empty()).then_some(title)
}
