//! The state folder's sessions.

use super::{Bounds, Session, library, space};
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
    is_durable: bool,
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

/// Amount of what is stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of sessions.
    pub sessions: u64,
    /// Number of sets.
    pub sets: u64,
    /// Space on disk, in bytes.
    pub bytes: u64,
}

/// Sessions to remove from the store. Sessions that another process records are left alone.
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
            shared: Arc::new(Shared {
                folder,
                bounds,
                is_durable: true,
            }),
        }
    }

    /// A store whose undo does not wait for the disk, for tests with thousands of them.
    #[cfg(test)]
    pub(super) fn hasty(folder: PathBuf, bounds: Bounds) -> Self {
        Self {
            shared: Arc::new(Shared {
                folder,
                bounds,
                is_durable: false,
            }),
        }
    }

    /// Whether an undo waits until it is on disk.
    pub(super) fn is_durable(&self) -> bool {
        self.shared.is_durable
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
    pub fn sessions(&self, work_dir: Option<&Path>) -> io::Result<Vec<SessionInfo>> {
        let mut sessions = Vec::new();
        for name in library::names(self.folder())? {
            let folder = self.folder().join(&name);
            let Some((id, dir, roots)) = library::description(&folder) else {
                continue;
            };
            if work_dir.is_some_and(|wanted| wanted != dir) {
                continue;
            }
            let session = self.session(&id, &dir, &roots);
            let summaries = session.summaries()?;
            let Some(last) = summaries.last() else {
                continue;
            };
            sessions.push(SessionInfo {
                id,
                work_dir: dir,
                roots,
                time: last.time,
                sets: summaries.len() as u64,
            });
        }
        sessions.sort_by_key(|session| std::cmp::Reverse(session.time));
        Ok(sessions)
    }

    /// Sum of all sessions.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn size(&self) -> io::Result<Usage> {
        let mut usage = Usage::default();
        for name in library::names(self.folder())? {
            usage.add(&of_session(&self.folder().join(name))?);
        }
        Ok(usage)
    }

    /// Removes sessions. Returns what was removed.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn clean(&self, which: &Clean) -> io::Result<Usage> {
        let mut removed = Usage::default();
        for name in library::names(self.folder())? {
            let folder = self.folder().join(&name);
            let is_meant = match which {
                Clean::All => true,
                Clean::Session(id) => name == library::folder_name(id),
                Clean::Expired => is_older(&folder, self.bounds().keep)?,
            };
            if !is_meant || space::is_in_use(&folder)? {
                continue;
            }
            let usage = of_session(&folder)?;
            library::remove_tree(&folder)?;
            removed.add(&usage);
        }
        Ok(removed)
    }
}

impl Usage {
    fn add(&mut self, other: &Self) {
        self.sessions += other.sessions;
        self.sets += other.sets;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

fn of_session(folder: &Path) -> io::Result<Usage> {
    Ok(Usage {
        sessions: 1,
        sets: library::numbers(folder)?.len() as u64,
        bytes: space::usage(folder)?,
    })
}

/// Whether nothing was recorded in a session for this long.
fn is_older(folder: &Path, age: std::time::Duration) -> io::Result<bool> {
    let last = library::numbers(folder)?.last().copied();
    let file = match last {
        Some(number) => folder.join(format!("{number:06}.set")),
        None => folder.to_owned(),
    };
    let modified = file.symlink_metadata()?.modified()?;
    let now = SystemTime::now();
    Ok(now.duration_since(modified).is_ok_and(|since| since > age))
}
