//! A folder that was opened once, to which paths are anchored.

use crate::{Error, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, openat, statat};
use std::path::{Path, PathBuf};

/// The device and the inode number of a folder: what stays the same whatever the
/// folder is called.
pub(crate) type Identity = (u64, u64);

/// An open root. Renaming or replacing the folder later does not move it.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    dir: Option<OwnedFd>,
}

impl Root {
    /// Opens the folder at `path`, which must have been made real.
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

    /// The root of a backend that is not the disk.
    pub(super) fn detached() -> Self {
        Self {
            path: PathBuf::from("/"),
            dir: None,
        }
    }

    /// Makes sure that the folder still is where it was: commands find it by its name,
    /// and must find the same one.
    ///
    /// # Errors
    /// [`Error::Moved`].
    pub(super) fn check(&self) -> Result<()> {
        if self.dir.is_none() {
            return Ok(());
        }
        self.is_still(identity_of(&self.path))
    }

    /// Makes sure that what was found under its name is the folder that was opened.
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

    /// Where it was when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The handle, when the root is a folder on disk.
    #[must_use]
    pub fn dir(&self) -> Option<BorrowedFd<'_>> {
        self.dir.as_ref().map(AsFd::as_fd)
    }
}

/// That a folder is no longer the one that a session began with.
pub(crate) fn moved(path: &Path) -> Error {
    Error::Moved {
        folder: path.to_string_lossy().into_owned(),
    }
}

/// Which folder is open.
pub(crate) fn identity(dir: impl AsFd) -> Option<Identity> {
    fstat(dir).ok().map(|stat| (stat.st_dev, stat.st_ino))
}

/// Which folder has that name; a link in its place is none of them.
pub(crate) fn identity_of(path: &Path) -> Option<Identity> {
    let found = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok();
    found.map(|stat| (stat.st_dev, stat.st_ino))
}
