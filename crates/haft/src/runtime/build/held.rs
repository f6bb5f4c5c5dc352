//! What a session brings from before.

use super::Builder;
use haft_ops::backend::Kept;

impl Builder {
    /// Files that an earlier session [held in memory](super::super::HeldFiles), by their
    /// path in the tree.
    #[must_use]
    pub fn holding(mut self, files: Vec<Kept>) -> Self {
        self.holding = files;
        self
    }
}
