//! The sets of one session.

use super::{
    Change, ChangeSet, Recorder, Selection, SetSummary, Store, TreeAt, UndoError, UndoMode, Undone,
    Version,
};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The sets of one session. Clones share it.
#[derive(Debug, Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Store,
    id: String,
    work_dir: PathBuf,
    roots: Vec<PathBuf>,
}

impl Session {
    pub(super) fn new(store: Store, id: &str, work_dir: &Path, roots: &[PathBuf]) -> Self {
        Self {
            shared: Arc::new(Shared {
                store,
                id: id.to_owned(),
                work_dir: work_dir.to_owned(),
                roots: roots.to_vec(),
            }),
        }
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.shared.id
    }

    /// Its work folder.
    #[must_use]
    pub fn work_dir(&self) -> &Path {
        &self.shared.work_dir
    }

    /// Its other roots.
    #[must_use]
    pub fn roots(&self) -> &[PathBuf] {
        &self.shared.roots
    }

    /// The store it belongs to.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Starts recording a call.
    #[must_use]
    pub fn begin(&self, _call_id: &str, _tool: &str) -> Recorder {
        Recorder::new()
    }

    /// All sets with changes, oldest first, those of undo included.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn sets(&self) -> io::Result<Vec<ChangeSet>> {
        Ok(Vec::new())
    }

    /// The same without the changes, which is cheap. A live session that looks here between two
    /// turns notices what another process undid.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn summaries(&self) -> io::Result<Vec<SetSummary>> {
        Ok(Vec::new())
    }

    /// Opens one version of a changed file, for a diff. `None` if it was not kept or changed
    /// since, or if that side is not a regular file.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn content(
        &self,
        _set: &SetSummary,
        _change: &Change,
        _version: Version,
    ) -> io::Result<Option<Box<dyn Read + Send>>> {
        Ok(None)
    }

    /// Takes back what calls changed. Nothing is changed unless everything selected can be
    /// taken back.
    ///
    /// # Errors
    /// If there is nothing to undo, something changed since, or something was not kept.
    pub fn undo(&self, _what: &Selection, _how: UndoMode) -> Result<Undone, UndoError> {
        Err(UndoError::Nothing)
    }

    /// Takes back the last undo.
    ///
    /// # Errors
    /// As [`Session::undo`].
    pub fn redo(&self, _how: UndoMode) -> Result<Undone, UndoError> {
        Err(UndoError::Nothing)
    }

    /// Copies the work folder as it was after a call into a new folder.
    ///
    /// # Errors
    /// If the call is unknown, something was not kept, or the folder exists and is not empty.
    pub fn tree_at(&self, call_id: &str, _into: &Path) -> Result<TreeAt, UndoError> {
        Err(UndoError::UnknownCall(call_id.to_owned()))
    }
}
