//! The private temp folder: what commands see as `/tmp`, and so do file tools.

use super::Root;
use crate::private::{self, Held};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The shared folders that it stands for.
pub const SHARED: [&str; 2] = ["/tmp", "/var/tmp"];

/// A temp folder of one's own.
#[derive(Debug, Clone)]
pub struct PrivateTemp {
    /// Where it really is. It need not be there yet.
    pub folder: PathBuf,
    /// Whether commands see it in the place of the shared ones.
    pub stands: Stands,
}

/// Whether commands see the private temp folder in the place of the shared ones.
#[derive(Clone)]
pub enum Stands {
    /// They do, or there are none.
    ForShared,
    /// That has to be asked, and is when somebody names a shared one: to find out
    /// takes a while.
    Ask(Arc<dyn Fn() -> bool + Send + Sync>),
}

impl std::fmt::Debug for Stands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ForShared => "ForShared",
            Self::Ask(_) => "Ask",
        })
    }
}

#[derive(Debug)]
pub(super) struct Temp {
    folder: PathBuf,
    stands: Stands,
    /// So that nobody removes it. It stays unlocked where that is impossible.
    held: OnceLock<Option<Held>>,
}

impl Temp {
    pub(super) fn new(folder: PathBuf, stands: Stands) -> Self {
        Self {
            folder,
            stands,
            held: OnceLock::new(),
        }
    }

    fn stands(&self) -> bool {
        match &self.stands {
            Stands::ForShared => true,
            Stands::Ask(ask) => ask(),
        }
    }

    pub(super) fn contains(&self, real: &Path) -> bool {
        real.starts_with(&self.folder)
    }

    /// Where something in a shared temp folder really is.
    pub(super) fn place_of(&self, path: &Path) -> Option<PathBuf> {
        SHARED
            .iter()
            .find_map(|shared| path.strip_prefix(shared).ok())
            // A way out of the folder is a way through the machine's.
            .filter(|below| {
                below
                    .components()
                    .all(|part| part != std::path::Component::ParentDir)
            })
            .filter(|_| self.stands())
            .map(|below| self.folder.join(below))
    }

    /// What a command would call a place in it.
    pub(super) fn seen(&self, real: &Path) -> Option<PathBuf> {
        let below = real.strip_prefix(&self.folder).ok()?;
        self.stands().then(|| Path::new("/tmp").join(below))
    }

    /// The folder, made if it is not there.
    pub(super) fn open(&self) -> crate::Result<Root> {
        private::folder(&self.folder)
            .map_err(|source| crate::Error::io("make the private temp folder", "/tmp", source))?;
        self.held.get_or_init(|| Held::new(&self.folder).ok());
        Root::open(self.folder.clone())
    }
}
