//! The state folder's sessions.

use super::{Bounds, Session};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The sets of all sessions, in one folder. Clones share it.
#[derive(Debug, Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    bounds: Bounds,
}

/// A session that has sets.
#[derive(Debug, Clone)]
pub struct SessionInfo {
    /// Id of the session.
    pub id: String,
    /// Its work folder.
    pub work_dir: PathBuf,
    /// Its other roots.
    pub roots: Vec<PathBuf>,
    /// Time of the last set.
    pub time: SystemTime,
    /// Number of sets.
    pub sets: u64,
}

/// What the store holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of sessions.
    pub sessions: u64,
    /// Number of sets.
    pub sets: u64,
    /// Space on disk, in bytes.
    pub bytes: u64,
}

/// What to remove from the store. Sessions that another process records are left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clean {
    /// Every session.
    All,
    /// Sessions older than [`Bounds::keep`].
    Expired,
    /// One session, by id.
    Session(String),
}

impl Store {
    /// A store in `folder`, which need not exist. Touches no disk.
    #[must_use]
    pub fn new(folder: PathBuf, bounds: Bounds) -> Self {
        Self {
            shared: Arc::new(Shared { folder, bounds }),
        }
    }

    /// The folder of the store.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// The limits.
    #[must_use]
    pub fn bounds(&self) -> &Bounds {
        &self.shared.bounds
    }

    /// A session, new or not. Touches no disk until its first record.
    #[must_use]
    pub fn session(&self, id: &str, work_dir: &Path, roots: &[PathBuf]) -> Session {
        Session::new(self.clone(), id, work_dir, roots)
    }

    /// A session that has sets, by its id.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn find(&self, id: &str) -> io::Result<Option<Session>> {
        let found = self.sessions(None)?.into_iter().find(|info| info.id == id);
        Ok(found.map(|info| self.session(&info.id, &info.work_dir, &info.roots)))
    }

    /// Sessions that have sets, newest first; with a folder, only those that worked in it.
    /// Completes an undo that was killed.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn sessions(&self, _work_dir: Option<&Path>) -> io::Result<Vec<SessionInfo>> {
        Ok(Vec::new())
    }

    /// What the store holds.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn size(&self) -> io::Result<Usage> {
        Ok(Usage::default())
    }

    /// Removes sessions. Returns what was removed.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn clean(&self, _which: &Clean) -> io::Result<Usage> {
        Ok(Usage::default())
    }
}
