//! A folder that was opened once, to which paths are anchored.

use crate::{Error, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
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
