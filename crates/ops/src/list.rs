//! Listing one directory.

use crate::backend::{Entry, Kind};
use crate::scope::closing::{LeftOut, Link};
use crate::{Backend, FilePath, Result};
use std::os::unix::ffi::OsStrExt;

/// Which entries to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    /// All of them.
    Show,
    /// None whose name begins with a dot.
    Leave,
}

/// A directory to list.
#[derive(Debug)]
pub struct List {
    /// Which.
    pub path: FilePath,
    /// What to do about names that begin with a dot.
    pub hidden: Hidden,
}

/// What is in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its entries, sorted by name.
    pub entries: Vec<Entry>,
    /// What the rules of the session close.
    pub left_out: LeftOut,
}

/// The entries of a directory, sorted by name.
///
/// # Errors
/// What the backend says, [`crate::Error::NotADirectory`] for a file.
pub async fn directory(backend: &dyn Backend, request: &List) -> Result<Listed> {
    let mut entries = backend.list(&request.path).await?;
    if request.hidden == Hidden::Leave {
        entries.retain(|entry| entry.name.as_bytes().first() != Some(&b'.'));
    }
    Ok(open(&request.path, entries))
}

/// The entries that are not closed, and how many are. Links are followed to judge
/// them, one look at the disk for each.
#[must_use]
pub fn open(folder: &FilePath, mut entries: Vec<Entry>) -> Listed {
    let mut left_out = LeftOut::default();
    if folder.is_judged() {
        entries.retain(|entry| {
            let link = match entry.stat.kind {
                Kind::Link => Link::Yes,
                _ => Link::No,
            };
            let closed = folder.closes_entry(&entry.name, link);
            if let Some(closed) = closed {
                left_out.add(closed.why);
            }
            closed.is_none()
        });
    }
    Listed { entries, left_out }
}
