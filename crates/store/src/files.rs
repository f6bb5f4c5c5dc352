//! Files in a database: each namespace is a backend.

mod rows;
mod stream;

use crate::database::{Database, LockWait};
use crate::problem::Problem;
use async_trait::async_trait;
use haft_ops::backend::{Backend, Content, Entry, Expect, Kind, Stat, Written};
use haft_ops::blocking::{self, Weight};
use haft_ops::{Error, FilePath, Result};
use rows::{ChangeResult, Found};
use rusqlite::Connection;
use std::io::Cursor;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use stream::Stream;

/// Maximum size of a file in bytes.
pub const MAX_FILE: u64 = 1_000_000_000;

/// A file's name and metadata are separate from its content, so that a listing reads few
/// pages, however large the files are. The content is stored in parts, so that reading a
/// large file does not need its size in memory. Content `n` has the rows from `n * 1024`
/// on, and at least one row.
pub(crate) const TABLES: &str = "
CREATE TABLE files (
    namespace BLOB NOT NULL,
    path BLOB NOT NULL,
    size INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    modified_at INTEGER NOT NULL,
    content INTEGER NOT NULL,
    PRIMARY KEY (namespace, path)
) STRICT, WITHOUT ROWID;
CREATE TABLE parts (
    id INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT;
";

/// Files up to this many bytes are read on the caller's thread.
const MAX_LIGHT_SIZE: u64 = 128 << 10;

/// Number of rows that a listing may read on the caller's thread.
const MAX_LIGHT_ROWS: usize = 256;

/// The files of one namespace. Folders exist while they contain files, as in
/// [`haft_ops::backend::Memory`]. A store never sees other namespaces.
#[derive(Debug, Clone)]
pub struct Store {
    database: Database,
    namespace: Arc<[u8]>,
}

impl Store {
    /// Creates a backend for `namespace`, which may be any text, even empty.
    pub fn new(database: Database, namespace: impl Into<String>) -> Self {
        Self {
            database,
            namespace: namespace.into().into_bytes().into(),
        }
    }

    fn key(&self, path: &FilePath) -> Key {
        Key {
            namespace: Arc::clone(&self.namespace),
            path: path.below().as_os_str().as_bytes().into(),
        }
    }

    /// Converts a problem of the database to an error of this operation.
    fn failed(&self, action: &'static str, path: &FilePath, problem: &Problem) -> Error {
        self.database.record_damage(problem);
        Error::Store {
            action,
            path: path.given().to_owned(),
            store: self.database.path().display().to_string(),
            problem: problem.to_string(),
            remedy: problem.remedy().to_owned(),
        }
    }

    /// Runs a lookup: on the caller's thread if it is quick, otherwise, or if the database
    /// is locked, on a thread that may block.
    async fn lookup<T: Send + 'static>(
        &self,
        action: &'static str,
        path: &FilePath,
        work: impl Fn(&Connection, &Key, LockWait) -> Result<Lookup<T>, Problem> + Send + 'static,
    ) -> Result<T> {
        let key = self.key(path);
        match self.lookup_once(&key, LockWait::Never, &work) {
            Ok(Lookup::Done(value)) => return Ok(value),
            Ok(Lookup::Heavy) | Err(Problem::Locked) => {}
            Err(problem) => return Err(self.failed(action, path, &problem)),
        }
        let (store, path) = (self.clone(), path.clone());
        blocking::run(Weight::Heavy, move || {
            match store.lookup_once(&key, LockWait::Blocking, &work) {
                Ok(Lookup::Done(value)) => Ok(value),
                Ok(Lookup::Heavy) => {
                    Err(Error::Fault("a blocking lookup did not finish".to_owned()))
                }
                Err(problem) => Err(store.failed(action, &path, &problem)),
            }
        })
        .await
    }

    fn lookup_once<T>(
        &self,
        key: &Key,
        wait: LockWait,
        work: impl Fn(&Connection, &Key, LockWait) -> Result<Lookup<T>, Problem>,
    ) -> Result<Lookup<T>, Problem> {
        let reader = self.database.reader(wait)?;
        work(reader.connection()?, key, wait)
    }

    /// Runs a change in one transaction, on a thread that may block. A call that is
    /// cancelled while it waits in the queue changes nothing.
    async fn change<T: Send + 'static>(
        &self,
        action: &'static str,
        path: &FilePath,
        work: impl FnOnce(&Connection, &Key) -> Result<ChangeResult<T>, Problem> + Send + 'static,
    ) -> Result<T> {
        let queued_at = Instant::now();
        let mut writer = self.database.writer().await;
        let guard = CancelGuard::default();
        let is_awaited = guard.is_awaited();
        let (store, path, key) = (self.clone(), path.clone(), self.key(path));
        blocking::run(Weight::Heavy, move || {
            let changed = || -> Result<ChangeResult<T>, Problem> {
                store.database.check_identity()?;
                let transaction = writer.begin(queued_at)?;
                if !is_awaited.load(Ordering::Relaxed) {
                    return Ok(ChangeResult::Abandoned);
                }
                let result = work(&transaction, &key)?;
                // A refused change is rolled back when the transaction is dropped.
                if let ChangeResult::Done(_) = result {
                    transaction.commit()?;
                }
                Ok(result)
            };
            match changed() {
                Ok(ChangeResult::Done(done)) => Ok(done),
                Ok(ChangeResult::Found(found)) => Err(found.error(&path)),
                Ok(ChangeResult::Contended) => Err(Error::Contended {
                    path: path.given().to_owned(),
                }),
                Ok(ChangeResult::Abandoned) => Err(Error::Cancelled),
                Err(problem) => Err(store.failed(action, &path, &problem)),
            }
        })
        .await
    }
}

/// Result of a lookup.
enum Lookup<T> {
    Done(T),
    /// Too much work for the caller's thread.
    Heavy,
}

/// A path in a namespace.
#[derive(Debug, Clone)]
struct Key {
    namespace: Arc<[u8]>,
    path: Box<[u8]>,
}

/// Tells the thread that works for a call whether the call has been cancelled.
#[derive(Default)]
struct CancelGuard(Arc<AtomicBool>);

impl CancelGuard {
    fn is_awaited(&self) -> Arc<AtomicBool> {
        self.0.store(true, Ordering::Relaxed);
        Arc::clone(&self.0)
    }
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Found {
    /// Returns the error for an operation that expected something else at the path.
    fn error(self, path: &FilePath) -> Error {
        let path = path.given().to_owned();
        match self {
            Self::Nothing => Error::NotFound {
                path,
                similar: Vec::new(),
            },
            Self::Folder => Error::IsDirectory { path },
            Self::BelowFile => Error::NotADirectory { path },
            Self::File(_) => Error::AlreadyExists { path },
        }
    }
}

/// A folder, without the time of its newest file, which only `stat` looks up.
const FOLDER: Stat = Stat {
    kind: Kind::Directory,
    size: 0,
    modified: None,
    mode: None,
};

#[async_trait]
impl Backend for Store {
    async fn read(&self, path: &FilePath) -> Result<Content> {
        enum Opened {
            Small(Content),
            Large,
            Missing(Found),
        }
        let opened = self.lookup("read", path, |connection, key, wait| {
            let limit = match wait {
                LockWait::Never => MAX_LIGHT_SIZE,
                LockWait::Blocking => rows::PART,
            };
            let (row, bytes) = match rows::read(connection, key, limit)? {
                Ok(read) => read,
                Err(found) => return Ok(Lookup::Done(Opened::Missing(found))),
            };
            Ok(match bytes {
                Some(bytes) => Lookup::Done(Opened::Small(Content {
                    stat: row.stat(),
                    reader: Box::new(Cursor::new(bytes)),
                    weight: Weight::Light,
                })),
                None if row.size <= rows::PART => Lookup::Heavy,
                None => Lookup::Done(Opened::Large),
            })
        });
        match opened.await? {
            Opened::Small(content) => Ok(content),
            Opened::Missing(found) => Err(found.error(path)),
            Opened::Large => {
                let (store, path, key) = (self.clone(), path.clone(), self.key(path));
                blocking::run(Weight::Heavy, move || {
                    let opened = store
                        .database
                        .reader(LockWait::Blocking)
                        .and_then(|reader| Stream::open(reader, &key));
                    match opened {
                        Ok(Ok((row, stream))) => Ok(Content {
                            stat: row.stat(),
                            reader: Box::new(stream),
                            weight: Weight::Heavy,
                        }),
                        Ok(Err(found)) => Err(found.error(&path)),
                        Err(problem) => Err(store.failed("read", &path, &problem)),
                    }
                })
                .await
            }
        }
    }

    async fn write(&self, path: &FilePath, bytes: Vec<u8>, expect: Expect) -> Result<Written> {
        let size = bytes.len() as u64;
        if size > MAX_FILE {
            return Err(Error::TooLarge {
                path: path.given().to_owned(),
                size,
                limit: MAX_FILE,
            });
        }
        let written = self.change("write", path, move |connection, key| {
            rows::write(connection, key, &bytes, &expect)
        });
        Ok(Written {
            created: written.await?,
            links_broken: 0,
        })
    }

    async fn remove(&self, path: &FilePath) -> Result<()> {
        self.change("delete", path, rows::remove).await
    }

    async fn stat(&self, path: &FilePath) -> Result<Stat> {
        let found = self.lookup("stat", path, |connection, key, wait| {
            Ok(match (rows::stat(connection, key)?, wait) {
                // The time of a folder requires reading all its files.
                (Found::Folder, LockWait::Never) => Lookup::Heavy,
                (Found::Folder, LockWait::Blocking) => Lookup::Done(Ok(Stat {
                    modified: rows::newest(connection, key)?,
                    ..FOLDER
                })),
                (Found::File(row), _) => Lookup::Done(Ok(row.stat())),
                (other, _) => Lookup::Done(Err(other)),
            })
        });
        found.await?.map_err(|found| found.error(path))
    }

    async fn list(&self, path: &FilePath) -> Result<Vec<Entry>> {
        let listed = self.lookup("list", path, |connection, key, wait| {
            let limit = match wait {
                LockWait::Never => MAX_LIGHT_ROWS,
                LockWait::Blocking => usize::MAX,
            };
            Ok(match rows::list(connection, key, limit)? {
                Some(listed) => Lookup::Done(listed),
                None => Lookup::Heavy,
            })
        });
        listed.await?.map_err(|found| match found {
            // Listing a file is an error, because a folder was expected.
            Found::File(_) => Found::BelowFile.error(path),
            other => other.error(path),
        })
    }
}
