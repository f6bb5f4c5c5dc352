//! Removing a file or a link. Directories are never removed.

use crate::{Backend, FilePath, Result};

/// Removes a file, or a link but not its target. The `path` must have been resolved for
/// [`crate::Access::Unlink`].
///
/// # Errors
/// [`crate::Error::IsDirectory`] for a directory, empty or not.
pub async fn file(backend: &dyn Backend, path: &FilePath) -> Result<()> {
    backend.remove(path).await
}
