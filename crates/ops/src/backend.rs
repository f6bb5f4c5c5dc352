//! File storage: six primitives. Operations that can be built from them (edit, search,
//! glob) are elsewhere, so every backend has them.

pub mod composite;
pub mod limited;
pub mod local;
pub mod memory;
pub mod recorded;
pub mod unwritable;

pub use composite::{Composite, Mount};
pub use limited::Limited;
pub use local::Local;
pub use memory::{Kept, Memory};
pub use recorded::Recorded;
pub use unwritable::Unwritable;

use crate::blocking::Weight;
use crate::{FilePath, Result};
use async_trait::async_trait;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// A store of files. Paths are already checked.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Opens a regular file. Refuses anything that could block or never end.
    async fn read(&self, path: &FilePath) -> Result<Content>;

    /// Writes `bytes` to `path` atomically, creating parents as needed. Returns once the
    /// file would survive a crash.
    async fn write(&self, path: &FilePath, bytes: Vec<u8>, expect: Expect) -> Result<Written>;

    /// Removes a file or a link, never a directory.
    async fn remove(&self, path: &FilePath) -> Result<()>;

    /// Returns the metadata of `path`.
    async fn stat(&self, path: &FilePath) -> Result<Stat>;

    /// Lists the entries of a directory, sorted by name.
    async fn list(&self, path: &FilePath) -> Result<Vec<Entry>>;

    /// Visits everything below a directory, parents before children, the entries of each
    /// folder sorted by name. Reports links without following them, omits entries that the
    /// scope hides, and reports folders that cannot be read.
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

    /// Returns the real path on a local disk, if there is one. Search then walks with
    /// several threads. This is only a hint; the results are the same.
    fn on_disk<'a>(&self, _path: &'a FilePath) -> Option<&'a Path> {
        None
    }

    /// Returns the parts of the tree at `path` if several backends make it up. Each is then
    /// walked in the way that is best for it.
    fn parts(&self, _path: &FilePath) -> Vec<Part<'_>> {
        Vec::new()
    }
}

/// A part of a tree that consists of several backends.
pub struct Part<'a> {
    /// The backend of this part.
    pub backend: &'a dyn Backend,
    /// Root of the part in that backend.
    pub path: FilePath,
    /// Root of the part, relative to the requested path.
    pub below: PathBuf,
    /// Paths below it that other parts cover.
    pub covered: Vec<PathBuf>,
}

/// Maximum size of a file to read on the calling thread, in bytes.
const LIGHT: u64 = 128 << 10;

/// An open file.
pub struct Content {
    /// Metadata at the time of opening.
    pub stat: Stat,
    /// Content. Reading may block: see `weight`.
    pub reader: Box<dyn Read + Send>,
    /// Whether reading all of it can take long.
    pub weight: Weight,
}

/// Condition for a write. Comparing and replacing are one atomic step, even between
/// processes.
#[derive(Debug, Clone)]
pub enum Expect {
    /// Writes in any case.
    Anything,
    /// The file must not exist.
    Absent,
    /// The file must have exactly this content.
    Exactly(Arc<[u8]>),
}

/// Result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Whether the file is new.
    pub created: bool,
    /// Number of other hard links of the old file, which keep the old content.
    pub links_broken: u64,
}

/// Type of a file system entry.
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

/// Metadata of an entry, without opening it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// Type of the entry.
    pub kind: Kind,
    /// Size in bytes; 0 for a directory.
    pub size: u64,
    /// Time of the last change, if the backend knows it.
    pub modified: Option<SystemTime>,
    /// Permission bits, if the backend has them.
    pub mode: Option<u32>,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name without a path.
    pub name: OsString,
    /// Metadata; links are not followed.
    pub stat: Stat,
    /// Target, if the entry is a link.
    pub target: Option<Target>,
}

/// Target of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Text of the link.
    pub path: PathBuf,
    /// Type of the target, if it may be known.
    pub through: Through,
}

/// Result of following a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Through {
    /// An entry of this type.
    To(Kind),
    /// Nothing; the target does not exist.
    Broken,
    /// Something outside the scope; not even its existence is revealed.
    Unseen,
}

/// Callback of a walk.
pub type Visitor<'a> = dyn for<'v> FnMut(Visit<'v>) -> Step + Send + 'a;

/// Event of a walk.
pub enum Visit<'a> {
    /// An entry of the tree.
    Entry {
        /// Path relative to the start of the walk.
        below: &'a Path,
        /// Path for other operations.
        path: &'a FilePath,
        /// Metadata of the entry.
        stat: &'a Stat,
    },
    /// A folder that could not be read.
    Unreadable(&'a Path),
}

/// Decision of the visitor about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Enters this entry if it is a directory.
    Into,
    /// Skips this entry.
    Over,
    /// Ends the walk.
    Stop,
}
