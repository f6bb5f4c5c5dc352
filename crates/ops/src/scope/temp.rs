//! The private temp folder: what commands see as `/tmp`, and so do file tools.

use super::Root;
use crate::private;
use std::path::{Path, PathBuf};

/// The shared folders that it stands for.
pub(crate) const SHARED: [&str; 2] = ["/tmp", "/var/tmp"];

/// A temp folder of one's own.
#[derive(Debug)]
pub(super) struct Temp {
    /// Where it really is. It need not be there yet.
    folder: PathBuf,
}

impl Temp {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
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
            .map(|below| self.folder.join(below))
    }

    /// What a command would call a place in it.
    pub(super) fn seen(&self, real: &Path) -> Option<PathBuf> {
        let below = real.strip_prefix(&self.folder).ok()?;
        Some(Path::new("/tmp").join(below))
    }

    /// The folder, made if it is not there.
    pub(super) fn open(&self) -> crate::Result<Root> {
        private::folder(&self.folder)
            .map_err(|source| crate::Error::io("make the private temp folder", "/tmp", source))?;
        Root::open(self.folder.clone())
    }
}
