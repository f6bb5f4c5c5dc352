//! A folder that was opened once, to which paths are anchored.

use crate::{Error, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, openat, statat};
use std::path::{Path, PathBuf};

/// An open root. Renaming or replacing the folder later does not move it.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    dir: Option<OwnedFd>,
}

impl Root {
    /// Opens the folder at `path`, which must have been made real.
    pub(super) fn open(path: PathBuf) -> Result<Self> {
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
        let Some(dir) = &self.dir else {
            return Ok(());
        };
        let identity = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
        let opened = fstat(dir).map(identity);
        let named = statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW).map(identity);
        if opened.is_ok() && opened == named {
            return Ok(());
        }
        Err(Error::Moved {
            folder: self.path.to_string_lossy().into_owned(),
        })
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
