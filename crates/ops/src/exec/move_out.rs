//! Moves files that appeared at a protected path into haft's own folder, or copies them if
//! they cannot be renamed.

use super::state::place;
use crate::scope::shut::{Opened, set_mode};
use crate::{private, scope};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, fchmod, fstat, mkdirat, openat,
    readlinkat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Number of numbered names to try, and of random names to try after those.
const NUMBERED: u32 = 200;
const RANDOM: u32 = 20;

/// Maximum length in bytes of the part of the old name that the new one contains.
const MAX_NAME: usize = 150;

/// Limits for copying: entries, bytes, nesting depth.
const MAX_ENTRIES: usize = 20_000;
const MAX_BYTES: u64 = 256 << 20;
const MAX_DEPTH: usize = 100;

/// Attempts to empty a folder that another process keeps filling.
const MAX_ATTEMPTS: usize = 10;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Moves something to a free name in haft's own folder, and returns its new path. `roots`
/// are the folders that commands may write.
///
/// # Errors
/// It could not be moved and is still at `path`.
pub(super) fn move_out(path: &Path, out: &Path, roots: &[PathBuf]) -> io::Result<PathBuf> {
    private::folder(out)?;
    // A process may have its working directory in a moved folder. If that were below a
    // root, it could walk up from there into haft's own files, underneath the mounts that
    // hide them.
    let real = scope::real(out).unwrap_or_else(|| out.to_owned());
    match roots.iter().any(|root| real.starts_with(root)) {
        true => moved(path, out, Way::CopyFolders),
        false => moved(path, out, Way::Rename),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Rename,
    CopyFolders,
    #[cfg(test)]
    Copy,
}

/// Takes the path that is used if haft's own folder is on another file system.
#[cfg(test)]
pub(super) fn move_out_by_copying(path: &Path, out: &Path) -> io::Result<PathBuf> {
    moved(path, out, Way::Copy)
}

fn moved(path: &Path, out: &Path, way: Way) -> io::Result<PathBuf> {
    private::folder(out)?;
    let (folder, name) = place(path)?;
    // A command can remove permissions that the move needs; they are restored later.
    let _parent = Opened::new(&folder);
    let stat = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_folder = FileType::from_raw_mode(stat.st_mode).is_dir();
    let itself = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let itself = openat(&folder, name, itself, Mode::empty())?;
    let _itself = is_folder.then(|| Opened::new(&itself));
    let copies = match way {
        Way::Rename => false,
        Way::CopyFolders => is_folder,
        #[cfg(test)]
        Way::Copy => true,
    };
    for to in names(out, name) {
        let moved = match copies {
            true => Err(Errno::XDEV),
            false => renameat_with(&folder, name, CWD, &to, RenameFlags::NOREPLACE),
        };
        match moved {
            Ok(()) => return Ok(to),
            Err(Errno::EXIST) => {}
            // Another file system, or one that does not support `NOREPLACE`.
            Err(Errno::XDEV | Errno::INVAL) => match copy_out(&folder, name, &to) {
                Ok(()) => return Ok(to),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            },
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(io::Error::other("no free name in haft's own folder"))
}

/// Returns names for the moved file, the most readable first.
fn names(out: &Path, name: &OsStr) -> impl Iterator<Item = PathBuf> {
    let name = name.to_string_lossy();
    let end = name.floor_char_boundary(MAX_NAME);
    let name = name.get(..end).unwrap_or_default().to_owned();
    let random = RandomState::new();
    let numbered = (1..=NUMBERED).map(|number| number.to_string());
    let others = (0..RANDOM).map(move |number| format!("{:016x}", random.hash_one(number)));
    let out = out.to_owned();
    let names = numbered.chain(others);
    names.map(move |number| out.join(format!("moved-{number}-{name}")))
}

/// Remaining limits for copying.
struct Room {
    entries: usize,
    bytes: u64,
}

fn too_much() -> io::Error {
    io::Error::other("too large to copy to another file system")
}

/// Copies to another file system, by handles and without following links. The original is
/// removed only after everything was copied.
fn copy_out(folder: &OwnedFd, name: &OsStr, to: &Path) -> io::Result<()> {
    let (Some(parent), Some(new)) = (to.parent(), to.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let out = openat(CWD, parent, FOLDER, Mode::empty())?;
    let mut room = Room {
        entries: MAX_ENTRIES,
        bytes: MAX_BYTES,
    };
    if statat(&out, new, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    if let Err(error) = copy(folder, name, &out, new, &mut room, MAX_DEPTH) {
        // A partial copy is useless.
        let _ = remove(&out, new, MAX_DEPTH + 1);
        return Err(error);
    }
    remove(folder, name, MAX_DEPTH)
}

fn copy(
    from: &OwnedFd,
    name: &OsStr,
    to: &OwnedFd,
    new: &OsStr,
    room: &mut Room,
    depth: usize,
) -> io::Result<()> {
    room.entries = room.entries.checked_sub(1).ok_or_else(too_much)?;
    let stat = statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let mode = Mode::from_raw_mode(stat.st_mode & 0o777);
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => {
            let target = readlinkat(from, name, Vec::new())?;
            Ok(symlinkat(target, to, new)?)
        }
        FileType::RegularFile => {
            let content = open_readable(from, name, OFlags::empty())?;
            if !FileType::from_raw_mode(fstat(&content)?.st_mode).is_file() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let made = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let mut made = File::from(openat(to, new, made, Mode::RUSR | Mode::WUSR)?);
            let mut content = File::from(content).take(room.bytes + 1);
            let copied = io::copy(&mut content, &mut made)?;
            room.bytes = room.bytes.checked_sub(copied).ok_or_else(too_much)?;
            Ok(fchmod(&made, mode)?)
        }
        FileType::Directory => {
            let depth = depth.checked_sub(1).ok_or_else(too_much)?;
            let inside = open_readable(from, name, OFlags::DIRECTORY)?;
            mkdirat(to, new, Mode::RWXU)?;
            let made = openat(to, new, FOLDER, Mode::empty())?;
            for entry in &entries(&inside)? {
                let entry = OsStr::from_bytes(entry.as_bytes());
                copy(&inside, entry, &made, entry, room, depth)?;
            }
            // The folder must stay accessible for cleaning up.
            Ok(fchmod(&made, mode | Mode::RWXU)?)
        }
        // Pipes, sockets and devices have no content to keep.
        _ => Ok(()),
    }
}

/// Opens something for reading, and adds missing permissions first if this user owns it.
fn open_readable(folder: &OwnedFd, name: &OsStr, more: OFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | more;
    match openat(folder, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {}
        opened => return Ok(opened?),
    }
    let handle = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(folder, name, handle, Mode::empty())?;
    let mode = fstat(&handle)?.st_mode & 0o7777;
    set_mode(&handle, Mode::from_raw_mode(mode) | Mode::RWXU)?;
    Ok(openat(folder, name, flags, Mode::empty())?)
}

fn entries(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_owned();
        if name.as_bytes() != b"." && name.as_bytes() != b".." {
            names.push(name);
        }
        if names.len() > MAX_ENTRIES {
            return Err(too_much());
        }
    }
    Ok(names)
}

/// Removes something with everything in it, without following links.
fn remove(folder: &OwnedFd, name: &OsStr, depth: usize) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        removed => return Ok(removed?),
    }
    let depth = depth.checked_sub(1).ok_or_else(too_much)?;
    for _ in 0..MAX_ATTEMPTS {
        let inside = open_readable(folder, name, OFlags::DIRECTORY)?;
        // Permissions need not be restored, because the folder is removed.
        let _opened = Opened::new(&inside);
        for entry in &entries(&inside)? {
            let entry = OsStr::from_bytes(entry.as_bytes());
            match remove(&inside, entry, depth) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        match unlinkat(folder, name, AtFlags::REMOVEDIR) {
            // A process has added something meanwhile.
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            removed => return Ok(removed?),
        }
    }
    Err(io::Error::other("another process keeps adding files to it"))
}
