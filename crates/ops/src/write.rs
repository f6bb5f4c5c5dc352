//! Writing a complete file.

use crate::backend::{Expect, Written};
use crate::{Backend, FilePath, Result};

/// What to do if the file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExisting {
    /// Replaces the file.
    Replace,
    /// Fails and leaves the file unchanged.
    Refuse,
}

/// Request to write a file.
#[derive(Debug)]
pub struct Write {
    /// The file to write.
    pub path: FilePath,
    /// Complete new content.
    pub content: Vec<u8>,
    /// What to do if the file exists.
    pub on_existing: OnExisting,
}

/// Writes a file atomically: completely or not at all.
///
/// # Errors
/// [`crate::Error::AlreadyExists`] for [`OnExisting::Refuse`] if the file exists; otherwise
/// errors of the backend.
pub async fn file(backend: &dyn Backend, request: Write) -> Result<Written> {
    let expect = match request.on_existing {
        OnExisting::Replace => Expect::Anything,
        OnExisting::Refuse => Expect::Absent,
    };
    backend.write(&request.path, request.content, expect).await
}
