//! The private temp folder, which commands and file tools see as `/tmp`.

use super::Root;
use crate::private::{self, FolderLock};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The shared folders that it replaces.
pub const SHARED: [&str; 2] = ["/tmp", "/var/tmp"];

/// A private temp folder.
#[derive(Debug, Clone)]
pub struct PrivateTemp {
    /// Its real path. Need not exist yet.
    pub folder: PathBuf,
    /// Whether commands see it in place of the shared folders.
    pub replaces_shared: ReplacesShared,
}

/// Whether commands see the private temp folder in place of the shared ones.
#[derive(Clone)]
pub enum ReplacesShared {
    /// They do, or there are no commands.
    Always,
    /// Asked when a shared folder is first named, because finding out takes a while.
    Ask(Arc<dyn Fn() -> bool + Send + Sync>),
}

impl std::fmt::Debug for ReplacesShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Always => "Always",
            Self::Ask(_) => "Ask",
        })
    }
}

#[derive(Debug)]
pub(super) struct Temp {
    folder: PathBuf,
    replaces_shared: ReplacesShared,
    /// Lock that keeps other sessions from removing the folder; `None` if locking failed.
    held: OnceLock<Option<FolderLock>>,
}

impl Temp {
    pub(super) fn new(folder: PathBuf, replaces_shared: ReplacesShared) -> Self {
        Self {
            folder,
            replaces_shared,
            held: OnceLock::new(),
        }
    }

    fn replaces_shared(&self) -> bool {
        match &self.replaces_shared {
            ReplacesShared::Always => true,
            ReplacesShared::Ask(ask) => ask(),
        }
    }

    pub(super) fn contains(&self, real: &Path) -> bool {
        real.starts_with(&self.folder)
    }

    /// Returns the real path of something in a shared temp folder.
    pub(super) fn place_of(&self, path: &Path) -> Option<PathBuf> {
        SHARED
            .iter()
            .find_map(|shared| path.strip_prefix(shared).ok())
            // A `..` out of the folder leads through the machine's own folder.
            .filter(|below| {
                below
                    .components()
                    .all(|part| part != std::path::Component::ParentDir)
            })
            .filter(|_| self.replaces_shared())
            .map(|below| self.folder.join(below))
    }

    /// Returns the path by which a command would name something in it.
    pub(super) fn visible_path(&self, real: &Path) -> Option<PathBuf> {
        let below = real.strip_prefix(&self.folder).ok()?;
        self.replaces_shared()
            .then(|| Path::new("/tmp").join(below))
    }

    /// Opens the folder, and creates it if it does not exist.
    pub(super) fn open(&self) -> crate::Result<Root> {
        private::folder(&self.folder)
            .map_err(|source| crate::Error::io("make the private temp folder", "/tmp", source))?;
        self.held.get_or_init(|| FolderLock::new(&self.folder).ok());
        Root::open(self.folder.clone())
    }
}
