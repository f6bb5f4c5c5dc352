//! Writing a whole file.

use crate::backend::{Expect, Written};
use crate::{Backend, FilePath, Result};

/// What to do when the file is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExisting {
    /// Replace it.
    Replace,
    /// Leave it and say so.
    Refuse,
}

/// A file to write.
#[derive(Debug)]
pub struct Write {
    /// Where.
    pub path: FilePath,
    /// All of it.
    pub content: Vec<u8>,
    /// What to do when it is there already.
    pub on_existing: OnExisting,
}

/// Writes a file, whole or not at all.
///
/// # Errors
/// [`crate::Error::AlreadyExists`] when told to refuse; otherwise what the
/// backend says.
pub async fn file(backend: &dyn Backend, request: Write) -> Result<Written> {
    let expect = match request.on_existing {
        OnExisting::Replace => Expect::Anything,
        OnExisting::Refuse => Expect::Absent,
    };
    backend.write(&request.path, request.content, expect).await
}
