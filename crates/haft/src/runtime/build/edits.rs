//! Settings of the tools that edit files.

use super::Builder;
use haft_ops::edit::Repairs;

impl Builder {
    /// Sets whether edits repair a text that is not in the file exactly; they do by default.
    #[must_use]
    pub fn edit_repairs(mut self, repairs: Repairs) -> Self {
        self.edit_repairs = repairs;
        self
    }
}
