//! A folder that stays open as the anchor of paths.

use crate::{Error, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, openat, statat};
use std::path::{Path, PathBuf};

/// Device and inode number of a folder, which stay the same if it is renamed.
pub(crate) type Identity = (u64, u64);

/// An open root. Renaming or replacing the folder later does not affect it.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    dir: Option<OwnedFd>,
}

impl Root {
    /// Opens the folder at `path`, which must be a real path.
    pub(crate) fn open(path: PathBuf) -> Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        #[cfg(target_os = "linux")]
        let flags = flags | OFlags::PATH;
        let dir = openat(CWD, &path, flags, Mode::empty())
            .map_err(|errno| Error::io("open", path.to_string_lossy(), errno.into()))?;
        Ok(Self {
            path,
            dir: Some(dir),
        })
    }

    /// Creates the root of a backend that is not the disk.
    pub(super) fn detached() -> Self {
        Self {
            path: PathBuf::from("/"),
            dir: None,
        }
    }

    /// Checks that the folder is still at its path: commands find it by its name, and must
    /// find the same one.
    ///
    /// # Errors
    /// [`Error::Moved`].
    pub(super) fn check(&self) -> Result<()> {
        if self.dir.is_none() {
            return Ok(());
        }
        self.is_still(identity_of(&self.path))
    }

    /// Checks that the folder found at its path is the one that was opened.
    ///
    /// # Errors
    /// [`Error::Moved`].
    pub(crate) fn is_still(&self, found: Option<Identity>) -> Result<()> {
        let opened = self.dir.as_ref().and_then(identity);
        if opened.is_some() && opened == found {
            return Ok(());
        }
        Err(moved(&self.path))
    }

    /// Returns the path at which it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the handle, if the root is a folder on disk.
    #[must_use]
    pub fn dir(&self) -> Option<BorrowedFd<'_>> {
        self.dir.as_ref().map(AsFd::as_fd)
    }
}

/// Returns the error for a folder that is no longer the one that the session opened.
pub(crate) fn moved(path: &Path) -> Error {
    Error::Moved {
        folder: path.to_string_lossy().into_owned(),
    }
}

/// Returns the identity of an open folder.
pub(crate) fn identity(dir: impl AsFd) -> Option<Identity> {
    fstat(dir).ok().map(|stat| (stat.st_dev, stat.st_ino))
}

/// Returns the identity of the folder at a path, without following links.
pub(crate) fn identity_of(path: &Path) -> Option<Identity> {
    let found = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok();
    found.map(|stat| (stat.st_dev, stat.st_ino))
}
