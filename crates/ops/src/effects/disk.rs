//! Reading folders on disk.

use super::folders::{open_folder, open_root};
use super::metadata::by_handle;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, chmodat, openat};
use rustix::io::Errno;
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
    let entries = looked_into(folder, || {
        Dir::read_from(openat(folder, ".", flags, Mode::empty())?)
    })?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}

/// Looks into a folder. If its user has shut it, it is open for that moment.
pub(super) fn looked_into<T>(
    folder: impl AsFd,
    look: impl Fn() -> rustix::io::Result<T>,
) -> rustix::io::Result<T> {
    match look() {
        Err(Errno::ACCESS) => {}
        looked => return looked,
    }
    let mode = super::state::of(&folder)?.mode;
    let path = by_handle(&folder);
    chmodat(
        CWD,
        &path,
        Mode::from_raw_mode(mode | 0o700),
        AtFlags::empty(),
    )?;
    let looked = look();
    chmodat(CWD, &path, Mode::from_raw_mode(mode), AtFlags::empty())?;
    looked
}
