//! Files in a database: one namespace of them is a backend.

mod rows;
mod stream;

use crate::database::{Database, Patience};
use crate::problem::Problem;
use async_trait::async_trait;
use haft_ops::backend::{Backend, Content, Entry, Expect, Kind, Stat, Written};
use haft_ops::blocking::{self, Weight};
use haft_ops::{Error, FilePath, Result};
use rows::{Fate, Found};
use rusqlite::Connection;
use std::io::Cursor;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use stream::Stream;

/// The largest file, in bytes.
pub const MAX_FILE: u64 = 1_000_000_000;

/// A file's name and what is known of it are kept apart from its bytes: a listing
/// reads a few pages, however large the files are. The bytes are in parts, so
/// that a large file is never in memory whole only to be read; the parts of
/// content `n` are the rows from `n * 1024` on, and there is at least one.
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

/// Files up to this size are read at once, where the caller is.
const LIGHT: u64 = 128 << 10;

/// How many rows a listing may look at where the caller is.
const LIGHT_ROWS: usize = 256;

/// The files of one namespace. Folders are implied by the files in them, as in
/// [`haft_ops::backend::Memory`]; other namespaces of the database do not exist
/// for it, whatever its name.
#[derive(Debug, Clone)]
pub struct Store {
    database: Database,
    namespace: Arc<[u8]>,
}

impl Store {
    /// The files of `namespace`: any text, also an empty one.
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

    /// An error of the database, told of this call.
    fn failed(&self, action: &'static str, path: &FilePath, problem: &Problem) -> Error {
        self.database.note(problem);
        Error::Store {
            action,
            path: path.given().to_owned(),
            store: self.database.path().display().to_string(),
            problem: problem.to_string(),
            remedy: problem.remedy().to_owned(),
        }
    }

    /// Looks something up: here when it is quick, on a thread that may wait when
    /// it is not, or when somebody holds a lock.
    async fn look<T: Send + 'static>(
        &self,
        action: &'static str,
        path: &FilePath,
        work: impl Fn(&Connection, &Key, Patience) -> Result<Looked<T>, Problem> + Send + 'static,
    ) -> Result<T> {
        let key = self.key(path);
        match self.look_once(&key, Patience::None, &work) {
            Ok(Looked::Said(said)) => return Ok(said),
            Ok(Looked::Heavy) | Err(Problem::Locked) => {}
            Err(problem) => return Err(self.failed(action, path, &problem)),
        }
        let (store, path) = (self.clone(), path.clone());
        blocking::run(Weight::Heavy, move || {
            match store.look_once(&key, Patience::Long, &work) {
                Ok(Looked::Said(said)) => Ok(said),
                Ok(Looked::Heavy) => Err(Error::Fault("patience has an end".to_owned())),
                Err(problem) => Err(store.failed(action, &path, &problem)),
            }
        })
        .await
    }

    fn look_once<T>(
        &self,
        key: &Key,
        patience: Patience,
        work: impl Fn(&Connection, &Key, Patience) -> Result<Looked<T>, Problem>,
    ) -> Result<Looked<T>, Problem> {
        let reader = self.database.reader(patience)?;
        work(reader.connection()?, key, patience)
    }

    /// Changes something, in one transaction on a thread that may wait. A call
    /// that nobody waits for any more while it stands in line changes nothing.
    async fn change<T: Send + 'static>(
        &self,
        action: &'static str,
        path: &FilePath,
        work: impl FnOnce(&Connection, &Key) -> Result<Fate<T>, Problem> + Send + 'static,
    ) -> Result<T> {
        let asked = Instant::now();
        let mut writer = self.database.writer().await;
        let wanted = Wanted::default();
        let awaited = wanted.awaited();
        let (store, path, key) = (self.clone(), path.clone(), self.key(path));
        blocking::run(Weight::Heavy, move || {
            let changed = || -> Result<Fate<T>, Problem> {
                store.database.still_there()?;
                let transaction = writer.begin(asked)?;
                if !awaited.load(Ordering::Relaxed) {
                    return Ok(Fate::Abandoned);
                }
                let fate = work(&transaction, &key)?;
                // What is refused changed nothing: dropping it rolls back.
                if let Fate::Done(_) = fate {
                    transaction.commit()?;
                }
                Ok(fate)
            };
            match changed() {
                Ok(Fate::Done(done)) => Ok(done),
                Ok(Fate::Found(found)) => Err(found.error(&path)),
                Ok(Fate::Contended) => Err(Error::Contended {
                    path: path.given().to_owned(),
                }),
                Ok(Fate::Abandoned) => Err(Error::Cancelled),
                Err(problem) => Err(store.failed(action, &path, &problem)),
            }
        })
        .await
    }
}

/// What a lookup came to.
enum Looked<T> {
    Said(T),
    /// More than may be done where the caller is.
    Heavy,
}

/// A path in a namespace.
#[derive(Debug, Clone)]
struct Key {
    namespace: Arc<[u8]>,
    path: Box<[u8]>,
}

/// Tells the thread that works for a call whether the call is still awaited.
#[derive(Default)]
struct Wanted(Arc<AtomicBool>);

impl Wanted {
    fn awaited(&self) -> Arc<AtomicBool> {
        self.0.store(true, Ordering::Relaxed);
        Arc::clone(&self.0)
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Found {
    /// The error for a call that wanted something else than what is there.
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

/// A folder, which is nothing but the files in it: as new as the newest of them, for
/// who asks about it and not only meets it.
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
            Whole(Content),
            Long,
            Not(Found),
        }
        let opened = self.look("read", path, |connection, key, patience| {
            let most = match patience {
                Patience::None => LIGHT,
                Patience::Long => rows::PART,
            };
            let (row, bytes) = match rows::read(connection, key, most)? {
                Ok(read) => read,
                Err(found) => return Ok(Looked::Said(Opened::Not(found))),
            };
            Ok(match bytes {
                Some(bytes) => Looked::Said(Opened::Whole(Content {
                    stat: row.stat(),
                    reader: Box::new(Cursor::new(bytes)),
                    weight: Weight::Light,
                })),
                None if row.size <= rows::PART => Looked::Heavy,
                None => Looked::Said(Opened::Long),
            })
        });
        match opened.await? {
            Opened::Whole(content) => Ok(content),
            Opened::Not(found) => Err(found.error(path)),
            Opened::Long => {
                let (store, path, key) = (self.clone(), path.clone(), self.key(path));
                blocking::run(Weight::Heavy, move || {
                    let opened = store
                        .database
                        .reader(Patience::Long)
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
        let found = self.look("stat", path, |connection, key, patience| {
            Ok(match (rows::stat(connection, key)?, patience) {
                // All that is in it has to be looked at.
                (Found::Folder, Patience::None) => Looked::Heavy,
                (Found::Folder, Patience::Long) => Looked::Said(Ok(Stat {
                    modified: rows::newest(connection, key)?,
                    ..FOLDER
                })),
                (Found::File(row), _) => Looked::Said(Ok(row.stat())),
                (other, _) => Looked::Said(Err(other)),
            })
        });
        found.await?.map_err(|found| found.error(path))
    }

    async fn list(&self, path: &FilePath) -> Result<Vec<Entry>> {
        let listed = self.look("list", path, |connection, key, patience| {
            let most = match patience {
                Patience::None => LIGHT_ROWS,
                Patience::Long => usize::MAX,
            };
            Ok(match rows::list(connection, key, most)? {
                Some(listed) => Looked::Said(listed),
                None => Looked::Heavy,
            })
        });
        listed.await?.map_err(|found| match found {
            // Wanted a folder.
            Found::File(_) => Found::BelowFile.error(path),
            other => other.error(path),
        })
    }
}
