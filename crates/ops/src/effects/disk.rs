//! Reading folders on disk.

use super::folders::{open_folder, open_root};
use rustix::fd::OwnedFd;
use rustix::fs::{Dir, Mode, OFlags, openat};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Names in a folder, without following links in its path.
pub(super) fn names(path: &Path) -> io::Result<Vec<OsString>> {
    names_in(&open_folder(&open_root()?, path)?)
}

/// Names in an open folder.
pub(super) fn names_in(folder: &OwnedFd) -> io::Result<Vec<OsString>> {
    // The folder may be open only as a place.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let folder = openat(folder, ".", flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}
