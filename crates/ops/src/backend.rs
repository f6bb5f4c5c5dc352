//! Where files live: six primitives, and nothing that can be written once above
//! them. Edit, search and glob are not here, so every backend has them.

pub mod composite;
pub mod limited;
pub mod local;
pub mod memory;
pub mod unwritable;

pub use composite::{Composite, Mount};
pub use limited::Limited;
pub use local::Local;
pub use memory::{Kept, Memory};
pub use unwritable::Unwritable;

use crate::blocking::Weight;
use crate::{FilePath, Result};
use async_trait::async_trait;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// A place that holds files. Paths arrive checked.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Opens a regular file. Anything that could block or never end is refused.
    async fn read(&self, path: &FilePath) -> Result<Content>;

    /// Puts `bytes` at `path`, whole or not at all, making parents as needed,
    /// and answers only when it would survive a crash.
    async fn write(&self, path: &FilePath, bytes: Vec<u8>, expect: Expect) -> Result<Written>;

    /// Takes away a file or a link, never a directory.
    async fn remove(&self, path: &FilePath) -> Result<()>;

    /// What is at `path`.
    async fn stat(&self, path: &FilePath) -> Result<Stat>;

    /// The entries of a directory, sorted by name.
    async fn list(&self, path: &FilePath) -> Result<Vec<Entry>>;

    /// Everything below a directory, parents before children, each folder's
    /// entries sorted by name. Links are named, not followed; what the scope
    /// hides is left out; a folder that cannot be read is reported and passed.
    async fn walk(&self, path: &FilePath, visit: &mut Visitor<'_>) -> Result<()> {
        let mut open = vec![(path.clone(), PathBuf::new())];
        while let Some((folder, below)) = open.pop() {
            let entries = match self.list(&folder).await {
                Ok(entries) => entries,
                Err(error) if below.as_os_str().is_empty() => return Err(error),
                Err(_) => match visit(Visit::Unreadable(&below)) {
                    Step::Stop => return Ok(()),
                    Step::Into | Step::Over => continue,
                },
            };
            let mut inner = Vec::new();
            for entry in entries {
                let below = below.join(&entry.name);
                let Some(path) = folder.child(&entry.name) else {
                    continue;
                };
                match visit(Visit::Entry {
                    below: &below,
                    path: &path,
                    stat: &entry.stat,
                }) {
                    Step::Into if entry.stat.kind == Kind::Directory => inner.push((path, below)),
                    Step::Into | Step::Over => {}
                    Step::Stop => return Ok(()),
                }
            }
            open.extend(inner.into_iter().rev());
        }
        Ok(())
    }

    /// Where `path` really is on this machine's disk, when it is: search then
    /// walks with several threads. A hint only; both roads answer alike.
    fn on_disk<'a>(&self, _path: &'a FilePath) -> Option<&'a Path> {
        None
    }

    /// The stretches that the tree at `path` is made of, when it is more than one:
    /// each is then walked by itself, in the way that is best for it.
    fn parts(&self, _path: &FilePath) -> Vec<Part<'_>> {
        Vec::new()
    }
}

/// A stretch of a tree that is made of several backends.
pub struct Part<'a> {
    /// Who holds it.
    pub backend: &'a dyn Backend,
    /// Where it begins there.
    pub path: FilePath,
    /// Where it begins, seen from the path that was asked about.
    pub below: PathBuf,
    /// Paths below it that other stretches cover.
    pub covered: Vec<PathBuf>,
}

/// Files up to this size are read at once.
const LIGHT: u64 = 128 << 10;

/// An open file.
pub struct Content {
    /// What the file was when it was opened.
    pub stat: Stat,
    /// Its bytes. Reading may block: see `weight`.
    pub reader: Box<dyn Read + Send>,
    /// How long it can take to read all of it.
    pub weight: Weight,
}

/// What a write expects to find. Comparing and replacing are one step, also
/// between processes.
#[derive(Debug, Clone)]
pub enum Expect {
    /// Whatever is there, or nothing.
    Anything,
    /// Nothing: the file is new.
    Absent,
    /// A file with exactly these bytes.
    Exactly(Arc<[u8]>),
}

/// What a write did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Whether the file is new.
    pub created: bool,
    /// How many other names the old file had: they keep the old content.
    pub links_broken: u64,
}

/// What kind of thing has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A FIFO, socket or device, by name.
    Other(&'static str),
}

/// What is known of a name without opening it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: Kind,
    /// Size in bytes; 0 for a directory.
    pub size: u64,
    /// When it was last changed, where the backend knows.
    pub modified: Option<SystemTime>,
    /// Permission bits, where the backend has them.
    pub mode: Option<u32>,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: OsString,
    /// What it is; a link is not followed.
    pub stat: Stat,
    /// Where a link points, and the kind of what is there.
    pub target: Option<Target>,
}

/// Where a link points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The link's own text.
    pub path: PathBuf,
    /// What is at its other end.
    pub through: Through,
}

/// What a link leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Through {
    /// Something of this kind.
    To(Kind),
    /// Nothing.
    Broken,
    /// Out of reach: not even whether it is there is told.
    Unseen,
}

/// Who follows a walk.
pub type Visitor<'a> = dyn for<'v> FnMut(Visit<'v>) -> Step + Send + 'a;

/// What a walk met.
pub enum Visit<'a> {
    /// An entry.
    Entry {
        /// Its path from where the walk began.
        below: &'a Path,
        /// Its path for other operations.
        path: &'a FilePath,
        /// What it is.
        stat: &'a Stat,
    },
    /// A folder whose entries could not be read.
    Unreadable(&'a Path),
}

/// Where a walk goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// On, and into this entry if it is a directory.
    Into,
    /// On, but past this entry.
    Over,
    /// Nowhere.
    Stop,
}
