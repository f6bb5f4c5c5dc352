//! Taking a file or a link away. Directories stay.

use crate::{Backend, FilePath, Result};

/// Removes what `path` names, which must have been resolved for
/// [`crate::Access::Unlink`]: of a link, the link itself.
///
/// # Errors
/// [`crate::Error::IsDirectory`] for a directory, empty or not.
pub async fn file(backend: &dyn Backend, path: &FilePath) -> Result<()> {
    backend.remove(path).await
}
