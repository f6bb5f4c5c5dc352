//! Listing a directory.

use crate::backend::{Entry, Kind};
use crate::scope::filter::{LeftOut, Link};
use crate::{Backend, FilePath, Result};
use std::os::unix::ffi::OsStrExt;

/// How to treat entries whose name starts with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    /// Includes names that start with a dot.
    Show,
    /// Omits names that start with a dot.
    Leave,
}

/// Request to list a directory.
#[derive(Debug)]
pub struct List {
    /// The directory to list.
    pub path: FilePath,
    /// Whether to include names that start with a dot.
    pub hidden: Hidden,
}

/// Result of listing a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Entries, sorted by name.
    pub entries: Vec<Entry>,
    /// Number of entries that the session's rules hide.
    pub left_out: LeftOut,
}

/// Lists the entries of a directory, sorted by name.
///
/// # Errors
/// Errors of the backend; [`crate::Error::NotADirectory`] for a file.
pub async fn directory(backend: &dyn Backend, request: &List) -> Result<Listed> {
    let mut entries = backend.list(&request.path).await?;
    if request.hidden == Hidden::Leave {
        entries.retain(|entry| entry.name.as_bytes().first() != Some(&b'.'));
    }
    Ok(open(&request.path, entries))
}

/// Removes the entries that rules hide, and counts them. Links are resolved for this, which
/// costs one system call each.
#[must_use]
pub fn open(folder: &FilePath, mut entries: Vec<Entry>) -> Listed {
    let mut left_out = LeftOut::default();
    if folder.has_filter() {
        entries.retain(|entry| {
            let link = match entry.stat.kind {
                Kind::Link => Link::Yes,
                _ => Link::No,
            };
            let exclusion = folder.excludes_entry(&entry.name, link);
            if let Some(exclusion) = exclusion {
                left_out.add(exclusion.why);
            }
            exclusion.is_none()
        });
    }
    Listed { entries, left_out }
}
