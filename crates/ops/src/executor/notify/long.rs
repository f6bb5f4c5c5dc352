//! Paths that are longer than the kernel accepts or tells.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, Dir, Mode, OFlags, ResolveFlags, Stat, openat, openat2, readlinkat, statat,
};
use rustix::io::Errno;
use std::ffi::{CString, OsStr};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Length of a path that the kernel resolves in one step.
const LONGEST: usize = 4000;

/// Maximum number of folders to climb until the kernel tells the rest of the path.
const MOST: usize = 4096;

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens a folder by its path below another one. No part of the path may be a link.
pub(super) fn open_folder(root: impl AsFd, below: &Path) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let open = |from: rustix::fd::BorrowedFd<'_>, part: &Path| {
        openat2(from, part, FOLDER, Mode::empty(), resolve)
    };
    let root = root.as_fd();
    if below.as_os_str().len() <= LONGEST {
        return open(root, below);
    }
    let mut dir: Option<OwnedFd> = None;
    let mut part = PathBuf::new();
    for name in below {
        if part.as_os_str().len() + name.len() >= LONGEST {
            dir = Some(open(dir.as_ref().map_or(root, AsFd::as_fd), &part)?);
            part = PathBuf::new();
        }
        part.push(name);
    }
    open(dir.as_ref().map_or(root, AsFd::as_fd), &part)
}

/// Returns what is known about an entry, without following a link at the end of its path.
pub(super) fn stat(root: impl AsFd, below: &Path) -> Result<Stat, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    if below.as_os_str().len() <= LONGEST {
        return statat(root, below, flags);
    }
    let (Some(folder), Some(name)) = (below.parent(), below.file_name()) else {
        return Err(Errno::INVAL);
    };
    statat(open_folder(root, folder)?, name, flags)
}

/// Reads a link.
pub(super) fn read_link(root: impl AsFd, below: &Path) -> Result<CString, Errno> {
    if below.as_os_str().len() <= LONGEST {
        return readlinkat(root, below, Vec::new());
    }
    let (Some(folder), Some(name)) = (below.parent(), below.file_name()) else {
        return Err(Errno::INVAL);
    };
    readlinkat(open_folder(root, folder)?, name, Vec::new())
}

/// Returns the path of a folder to which a link in `/proc` leads, by climbing from it until the
/// path is short enough for the kernel.
pub(super) fn path(proc: impl AsFd, link: &Path) -> Result<PathBuf, Errno> {
    let mut dir = openat(proc, link, FOLDER, Mode::empty())?;
    let mut names: Vec<Vec<u8>> = Vec::new();
    for _ in 0..MOST {
        let own = format!("/proc/self/fd/{}", dir.as_raw_fd());
        match readlinkat(CWD, own, Vec::new()) {
            Ok(text) => {
                let mut path = PathBuf::from(OsStr::from_bytes(text.as_bytes()));
                path.extend(names.iter().rev().map(|name| OsStr::from_bytes(name)));
                return Ok(path);
            }
            Err(Errno::NAMETOOLONG) => {}
            Err(errno) => return Err(errno),
        }
        let above = openat(&dir, "..", FOLDER, Mode::empty())?;
        names.push(name_in(&above, &dir)?);
        dir = above;
    }
    Err(Errno::NAMETOOLONG)
}

/// Finds the name of a folder in the one above it.
fn name_in(above: &OwnedFd, folder: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let wanted = rustix::fs::fstat(folder)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    for entry in Dir::new(openat(above, ".", flags, Mode::empty())?)? {
        let name = entry?.file_name().to_owned();
        let is_dots = matches!(name.to_bytes(), b"." | b"..");
        let is_it = |found: Stat| (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino);
        if !is_dots && statat(above, &name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(is_it) {
            return Ok(name.into_bytes());
        }
    }
    // It has been removed.
    Err(Errno::NOENT)
}
