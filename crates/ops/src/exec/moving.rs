//! Taking away what appeared at a protected place: it is moved into a folder of haft's
//! own, and copied there where it cannot be moved.

use super::state::{Opened, place, set_mode};
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

/// How many names with a number are tried, and then how many nobody can have guessed.
const NUMBERED: u32 = 200;
const RANDOM: u32 = 20;

/// How many bytes of the old name the new one has.
const NAME: usize = 150;

/// The most that is copied: entries, bytes, and folders within folders.
const ENTRIES: usize = 20_000;
const BYTES: u64 = 256 << 20;
const DEPTH: usize = 100;

/// How often a folder is emptied that somebody fills again meanwhile.
const TURNS: usize = 10;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Moves something to a free name below a folder of ours, and says where it is now. `roots`
/// are the folders that commands may write.
///
/// # Errors
/// When it stays where it is.
pub(super) fn move_out(path: &Path, out: &Path, roots: &[PathBuf]) -> io::Result<PathBuf> {
    private::folder(out)?;
    // A process may still be in a folder. Below a root it would walk up from there into
    // haft's own files, beneath what covers them.
    let real = scope::real(out).unwrap_or_else(|| out.to_owned());
    match roots.iter().any(|root| real.starts_with(root)) {
        true => moved(path, out, Way::CopyFolders),
        false => moved(path, out, Way::Rename),
    }
}

/// How something gets elsewhere.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Rename,
    CopyFolders,
    #[cfg(test)]
    Copy,
}

/// What happens where the folder of ours is on another file system.
#[cfg(test)]
pub(super) fn move_out_by_copying(path: &Path, out: &Path) -> io::Result<PathBuf> {
    moved(path, out, Way::Copy)
}

fn moved(path: &Path, out: &Path, way: Way) -> io::Result<PathBuf> {
    private::folder(out)?;
    let (folder, name) = place(path)?;
    // A command can take away the permissions that this needs; they are put back.
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
            // Another file system, or one that cannot do without replacing.
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

/// Names for what is moved, the nicest first.
fn names(out: &Path, name: &OsStr) -> impl Iterator<Item = PathBuf> {
    let name = name.to_string_lossy();
    let end = name.floor_char_boundary(NAME);
    let name = name.get(..end).unwrap_or_default().to_owned();
    let random = RandomState::new();
    let numbered = (1..=NUMBERED).map(|number| number.to_string());
    let others = (0..RANDOM).map(move |number| format!("{:016x}", random.hash_one(number)));
    let out = out.to_owned();
    let names = numbered.chain(others);
    names.map(move |number| out.join(format!("moved-{number}-{name}")))
}

/// What may still be copied.
struct Room {
    entries: usize,
    bytes: u64,
}

fn too_much() -> io::Error {
    io::Error::other("it is too large to be copied to another file system")
}

/// To another file system, by handles and with no link followed. What was copied is
/// removed only once all of it was.
fn copy_out(folder: &OwnedFd, name: &OsStr, to: &Path) -> io::Result<()> {
    let (Some(parent), Some(new)) = (to.parent(), to.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let out = openat(CWD, parent, FOLDER, Mode::empty())?;
    let mut room = Room {
        entries: ENTRIES,
        bytes: BYTES,
    };
    if statat(&out, new, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    if let Err(error) = copy(folder, name, &out, new, &mut room, DEPTH) {
        // Half of it is of no use to anybody.
        let _ = remove(&out, new, DEPTH + 1);
        return Err(error);
    }
    remove(folder, name, DEPTH)
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
            // Whoever clears up has to get in.
            Ok(fchmod(&made, mode | Mode::RWXU)?)
        }
        // Pipes, sockets and devices have nothing to keep.
        _ => Ok(()),
    }
}

/// Opens something to read it, also where its owner may not until they say so.
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
        if names.len() > ENTRIES {
            return Err(too_much());
        }
    }
    Ok(names)
}

/// Removes something and all that is in it, with no link followed.
fn remove(folder: &OwnedFd, name: &OsStr, depth: usize) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        removed => return Ok(removed?),
    }
    let depth = depth.checked_sub(1).ok_or_else(too_much)?;
    for _ in 0..TURNS {
        let inside = open_readable(folder, name, OFlags::DIRECTORY)?;
        // Nobody misses what it allowed.
        let _opened = Opened::new(&inside);
        for entry in &entries(&inside)? {
            let entry = OsStr::from_bytes(entry.as_bytes());
            match remove(&inside, entry, depth) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        match unlinkat(folder, name, AtFlags::REMOVEDIR) {
            // A process has put something there meanwhile.
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            removed => return Ok(removed?),
        }
    }
    Err(io::Error::other("something fills it again and again"))
}
