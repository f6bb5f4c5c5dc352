//! Listing one directory.

use crate::backend::Entry;
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

/// The entries of a directory, sorted by name.
///
/// # Errors
/// What the backend says, [`crate::Error::NotADirectory`] for a file.
pub async fn directory(backend: &dyn Backend, request: &List) -> Result<Vec<Entry>> {
    let mut entries = backend.list(&request.path).await?;
    if request.hidden == Hidden::Leave {
        entries.retain(|entry| entry.name.as_bytes().first() != Some(&b'.'));
    }
    Ok(entries)
}
