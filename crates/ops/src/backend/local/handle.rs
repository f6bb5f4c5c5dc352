//! Opening files below a handle, without following links.
//!
//! The scope has resolved all links, so a link found here appeared since then. The open
//! fails, and nothing outside the root can be reached.

use crate::{Error, FilePath, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// How to treat missing parents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parents {
    MustExist,
    Create,
}

/// Opens the file at `path`.
pub(super) fn open(path: &FilePath, flags: OFlags) -> Result<OwnedFd> {
    open_below(root_of(path)?, path.below(), flags).map_err(|source| error(path, "open", source))
}

/// Opens the parent of `path` as a directory that can be locked and synced. Also returns
/// the file name.
pub(super) fn open_parent(path: &FilePath, parents: Parents) -> Result<(OwnedFd, OsString)> {
    let root = root_of(path)?;
    let Some(name) = path.below().file_name() else {
        return Err(Error::IsDirectory {
            path: path.given().to_owned(),
        });
    };
    let parent = path.below().parent().unwrap_or(Path::new(""));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
    let opened = match open_below(root, parent, flags) {
        Err(source) if source.kind() == io::ErrorKind::NotFound && parents == Parents::Create => {
            create_folders(root, parent).and_then(|()| open_below(root, parent, flags))
        }
        opened => opened,
    };
    let opened = opened.map_err(|source| error(path, "open the folder of", source))?;
    Ok((opened, name.to_owned()))
}

fn create_folders(root: BorrowedFd<'_>, parent: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
    let mut folder = open_below(root, Path::new(""), flags)?;
    for part in parent.components() {
        let name = Path::new(part.as_os_str());
        folder = match open_below(folder.as_fd(), name, flags) {
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                match rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(errno.into()),
                }
                rustix::fs::fsync(&folder)?;
                open_below(folder.as_fd(), name, flags)?
            }
            opened => opened?,
        };
    }
    Ok(())
}

/// Opens `below` under `dir` without following links or leaving `dir`.
pub(crate) fn open_below(dir: BorrowedFd<'_>, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    let below = if below.as_os_str().is_empty() {
        Path::new(".")
    } else {
        below
    };
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        loop {
            match openat2(dir, below, flags, Mode::empty(), resolve) {
                // After a concurrent rename, the kernel asks to try again.
                Err(Errno::AGAIN) => {}
                // The system call does not exist, or a filter blocks it.
                Err(Errno::NOSYS | Errno::PERM) => break,
                opened => return Ok(opened?),
            }
        }
    }
    open_step_by_step(dir, below, flags)
}

/// Does the same component by component, for kernels without `openat2`.
pub(super) fn open_step_by_step(
    dir: BorrowedFd<'_>,
    below: &Path,
    flags: OFlags,
) -> io::Result<OwnedFd> {
    let step =
        OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut folder: Option<OwnedFd> = None;
    let mut parts = below.components().peekable();
    while let Some(part) = parts.next() {
        let at = folder.as_ref().map_or(dir, AsFd::as_fd);
        let (Component::Normal(_) | Component::CurDir) = part else {
            return Err(Errno::XDEV.into());
        };
        let flags = if parts.peek().is_some() {
            step
        } else {
            flags | OFlags::NOFOLLOW
        };
        folder = Some(openat(
            at,
            Path::new(part.as_os_str()),
            flags,
            Mode::empty(),
        )?);
    }
    folder.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
}

fn root_of(path: &FilePath) -> Result<BorrowedFd<'_>> {
    path.root()
        .dir()
        .ok_or_else(|| Error::Fault("a path of another backend reached the disk".to_owned()))
}

fn error(path: &FilePath, action: &'static str, source: io::Error) -> Error {
    let given = path.given();
    match Errno::from_io_error(&source) {
        // A link that did not exist when the path was checked.
        Some(Errno::LOOP | Errno::XDEV) => Error::NotAllowed {
            path: given.to_owned(),
            remedy: "it became a symbolic link while it was being opened; try again".to_owned(),
        },
        Some(Errno::NOENT) => Error::NotFound {
            path: given.to_owned(),
            similar: similar(path),
        },
        _ => Error::io(action, given, source),
    }
}

/// Returns similar names in the same folder.
fn similar(path: &FilePath) -> Vec<String> {
    let Some(wanted) = path.below().file_name().and_then(|name| name.to_str()) else {
        return Vec::new();
    };
    // Not through `open_parent`, whose error would look for similar names again.
    let parent = path.below().parent().unwrap_or(Path::new(""));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
    let Some(folder) = path
        .root()
        .dir()
        .and_then(|root| open_below(root, parent, flags).ok())
    else {
        return Vec::new();
    };
    let Ok(entries) = rustix::fs::Dir::read_from(&folder) else {
        return Vec::new();
    };
    let names = entries.flatten().take(5_000).filter_map(|entry| {
        let name = std::ffi::OsStr::from_bytes(entry.file_name().to_bytes())
            .to_str()
            .filter(|name| ![".", ".."].contains(name))?
            .to_owned();
        let is_told = !path.hides(&path.real().with_file_name(&name))
            && !path.excludes_sibling(std::ffi::OsStr::new(&name));
        is_told.then_some(name)
    });
    // Written as the caller wrote the path, so that it can be used as it is.
    let folder = path.given().rsplit_once('/').map(|(folder, _)| folder);
    crate::text::spelling::closest(wanted, names, 3)
        .into_iter()
        .map(|name| match folder {
            Some(folder) => format!("{folder}/{name}"),
            None => name,
        })
        .collect()
}
