//! Restoring the files that an earlier session kept in memory.

use super::Builder;
use haft_ops::backend::Kept;

impl Builder {
    /// Restores files that an earlier session kept [in memory](super::super::MemoryFiles),
    /// by their path in the tree.
    #[must_use]
    pub fn restored_files(mut self, files: Vec<Kept>) -> Self {
        self.restored_files = files;
        self
    }
}
