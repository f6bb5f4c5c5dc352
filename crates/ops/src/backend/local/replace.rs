//! Atomic replacement: at every instant a file is either the old one or the new one.
//!
//! The steps: lock the folder (also against other processes); write a temporary file beside
//! the target (`O_EXCL`, random name); copy owner, attributes and mode; `fsync`; compare the
//! target with what the caller expects; `rename`; `fsync` the folder. If a process is killed,
//! the next write in that folder removes its temporary files, and so does the next start when
//! a state folder is known.
//!
//! An edit reads, splices and writes, expecting that the file still has the content it read.
//! If it does not, the edit starts again with the new content. So edits by two processes never
//! undo each other, and a change that an editor made elsewhere in the file survives.

use super::handle::{self, Parents};
use super::litter::{self, Litter};
use super::{describe, open_regular};
use crate::backend::{Expect, Kind, Written};
use crate::{Error, FilePath, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    Access, AtFlags, FlockOperation, Gid, Mode, OFlags, RenameFlags, Uid, XattrFlags, accessat,
    fchmod, fchown, fgetxattr, flistxattr, flock, fremovexattr, fsetxattr, fstat, fsync, openat,
    renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time to wait for another process that writes in the same folder.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Maximum size of a folder to search for stale temporary files, because reading hundreds
/// of thousands of names to delete one is not worth it.
const SWEEP_LIMIT: i64 = 1 << 20;

/// Number of bytes to compare at a time.
const CHUNK: usize = 256 << 10;

pub(super) fn replace(
    path: &FilePath,
    bytes: &[u8],
    expect: &Expect,
    litter: Option<&Litter>,
    swept: &Swept,
) -> Result<Written> {
    let fail = |errno: Errno| Error::io("write", path.given(), errno.into());
    let (folder, name) = handle::open_parent(path, Parents::Create)?;
    let _lock = lock(path, &folder)?;
    sweep_once(&folder, swept);

    let old = match statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(old) => Some(old),
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(fail(errno)),
    };
    if let Some(old) = &old {
        may_replace(path, &folder, &name, old)?;
    }
    check(path, old.is_some(), expect)?;

    let temporary = random_name();
    let noted = litter.map(|litter| litter.note(&path.real().with_file_name(&temporary)));
    if let Some(Err(source)) = &noted {
        tracing::warn!(%source, "temporary file not recorded; it would remain if haft were killed now");
    }
    let written = fill(
        path,
        &folder,
        OsStr::new(&temporary),
        bytes,
        old.as_ref(),
        &name,
    )
    .and_then(|()| swap(path, &folder, &temporary, &name, old.as_ref(), expect));
    if written.is_err() {
        match unlinkat(&folder, temporary.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            // The record stays, so that a later start tries again.
            Err(_) => std::mem::forget(noted),
        }
    }
    written?;
    fsync(&folder).map_err(fail)?;
    #[allow(
        clippy::useless_conversion,
        reason = "the type differs between machines"
    )]
    let links_broken = old
        .as_ref()
        .map_or(0, |old| u64::from(old.st_nlink).saturating_sub(1));
    Ok(Written {
        created: old.is_none(),
        links_broken,
    })
}

/// Writes the temporary file, with the metadata of the old one.
fn fill(
    path: &FilePath,
    folder: &OwnedFd,
    temporary: &OsStr,
    bytes: &[u8],
    old: Option<&rustix::fs::Stat>,
    name: &OsStr,
) -> Result<()> {
    let fail = |errno: Errno| Error::io("write", path.given(), errno.into());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // A replacement is not readable by others until it has the old mode.
    let mode = if old.is_some() { 0o600 } else { 0o666 };
    let file = openat(folder, temporary, flags, Mode::from_raw_mode(mode)).map_err(fail)?;
    let mut file = std::fs::File::from(file);
    file.write_all(bytes)
        .map_err(|source| Error::io("write", path.given(), source))?;
    if let Some(old) = old {
        keep_metadata(path, folder, &file, old, name)?;
    }
    fsync(&file).map_err(fail)
}

fn keep_metadata(
    path: &FilePath,
    folder: &OwnedFd,
    file: &std::fs::File,
    old: &rustix::fs::Stat,
    name: &OsStr,
) -> Result<()> {
    let fail = |errno: Errno| Error::io("write", path.given(), errno.into());
    let new = fstat(file).map_err(fail)?;
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid) {
        let owner = Some(Uid::from_raw(old.st_uid));
        let group = Some(Gid::from_raw(old.st_gid));
        fchown(file, owner, group).map_err(|_| Error::CannotKeep {
            path: path.given().to_owned(),
            reason: format!(
                "its owner (user {}, group {}) cannot be preserved",
                old.st_uid, old.st_gid
            ),
        })?;
    }
    copy_attributes(folder, name, file).map_err(|errno| Error::CannotKeep {
        path: path.given().to_owned(),
        reason: format!("its extended attributes cannot be preserved: {errno}"),
    })?;
    // Last, because changing the owner clears the set-id bits.
    fchmod(file, Mode::from_raw_mode(old.st_mode & 0o7777)).map_err(fail)
}

/// Copies extended attributes including access control lists, and removes those that the
/// old file did not have, because a folder may have a default list for new files.
/// Attributes of security modules that haft may not set are set by the kernel itself; of
/// these, only a program's capabilities would be a loss.
fn copy_attributes(folder: &OwnedFd, name: &OsStr, new: &std::fs::File) -> rustix::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let old = openat(folder, name, flags, Mode::empty())?;
    let kept = attributes(&old)?;
    for name in attributes(new)?.iter().filter(|name| !kept.contains(name)) {
        match fremovexattr(new, name.as_slice()) {
            Err(_) if name.starts_with(b"security.") => {}
            other => other?,
        }
    }
    for name in &kept {
        let mut value = vec![0; 64 << 10];
        let length = fgetxattr(&old, name.as_slice(), &mut value)?;
        let value = value.get(..length).unwrap_or_default();
        let by_the_kernel = name.starts_with(b"security.") || name.starts_with(b"trusted.");
        match fsetxattr(new, name.as_slice(), value, XattrFlags::empty()) {
            Err(_) if by_the_kernel && name != b"security.capability" => {}
            other => other?,
        }
    }
    Ok(())
}

fn attributes(file: &impl AsFd) -> rustix::io::Result<Vec<Vec<u8>>> {
    let mut names = vec![0; 64 << 10];
    let length = match flistxattr(file, &mut names) {
        Ok(length) => length,
        Err(Errno::NOTSUP) => 0,
        Err(errno) => return Err(errno),
    };
    let names = names
        .get(..length)
        .unwrap_or_default()
        .split(|byte| *byte == 0);
    Ok(names
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect())
}

/// Renames the temporary file over the target, unless the target has changed: an editor
/// that does not know haft's lock may have saved it.
fn swap(
    path: &FilePath,
    folder: &OwnedFd,
    temporary: &str,
    name: &OsStr,
    old: Option<&rustix::fs::Stat>,
    expect: &Expect,
) -> Result<()> {
    let fail = |errno: Errno| Error::io("write", path.given(), errno.into());
    if matches!(expect, Expect::Absent) {
        return match renameat_with(folder, temporary, folder, name, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => Err(Error::AlreadyExists {
                path: path.given().to_owned(),
            }),
            // File systems without this flag: the folder is locked, so no other haft
            // process has changed it since the check.
            Err(Errno::INVAL | Errno::NOSYS) => {
                renameat(folder, temporary, folder, name).map_err(fail)
            }
            renamed => renamed.map_err(fail),
        };
    }
    let identity = |stat: &rustix::fs::Stat| {
        (
            stat.st_dev,
            stat.st_ino,
            stat.st_size,
            stat.st_mtime,
            stat.st_mtime_nsec,
        )
    };
    let now = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    if matches!(expect, Expect::Exactly(_)) && now.as_ref().map(identity) != old.map(identity) {
        return Err(Error::Contended {
            path: path.given().to_owned(),
        });
    }
    renameat(folder, temporary, folder, name).map_err(fail)
}

fn may_replace(
    path: &FilePath,
    folder: &OwnedFd,
    name: &OsStr,
    old: &rustix::fs::Stat,
) -> Result<()> {
    let given = || path.given().to_owned();
    match describe(old).kind {
        Kind::File => {}
        Kind::Directory => return Err(Error::IsDirectory { path: given() }),
        Kind::Link => return Err(Error::Contended { path: given() }),
        Kind::Other(kind) => {
            return Err(Error::NotRegular {
                path: given(),
                kind,
            });
        }
    }
    // Renaming does not need write permission for the file, but its owner has forbidden
    // changes.
    if old.st_mode & 0o222 == 0
        || accessat(folder, name, Access::WRITE_OK, AtFlags::EACCESS).is_err()
    {
        let mode = old.st_mode & 0o7777;
        return Err(Error::CannotKeep {
            path: given(),
            reason: format!("it is read-only (mode {mode:04o})"),
        });
    }
    Ok(())
}

fn check(path: &FilePath, exists: bool, expect: &Expect) -> Result<()> {
    match expect {
        Expect::Anything => Ok(()),
        Expect::Absent if exists => Err(Error::AlreadyExists {
            path: path.given().to_owned(),
        }),
        Expect::Absent => Ok(()),
        Expect::Exactly(wanted) => {
            let mut content = match open_regular(path) {
                Err(Error::NotFound { .. }) => {
                    return Err(Error::Contended {
                        path: path.given().to_owned(),
                    });
                }
                content => content?,
            };
            let same = is_same(&mut content.reader, wanted)
                .map_err(|source| Error::io("read", path.given(), source))?;
            if same {
                Ok(())
            } else {
                Err(Error::Contended {
                    path: path.given().to_owned(),
                })
            }
        }
    }
}

/// Whether a reader returns exactly these bytes. Does not store them, because a large file
/// is in memory twice already during an edit.
fn is_same(reader: &mut dyn Read, wanted: &[u8]) -> std::io::Result<bool> {
    let mut chunk = vec![0; CHUNK.min(wanted.len() + 1)];
    let mut rest = wanted;
    loop {
        let read = match reader.read(&mut chunk) {
            Ok(0) => return Ok(rest.is_empty()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        match rest.split_at_checked(read) {
            Some((same, behind)) if chunk.get(..read) == Some(same) => rest = behind,
            _ => return Ok(false),
        }
    }
}

/// Locks the folder. Locking the file itself would not work: the rename puts another file
/// under that name, and other programs may hold locks on it for any length of time.
fn lock<'a>(path: &FilePath, folder: &'a OwnedFd) -> Result<Locked<'a>> {
    let begun = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        match flock(folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                return Ok(Locked {
                    folder: folder.as_fd(),
                });
            }
            // File systems without locks: only the comparison before the rename protects
            // the file.
            Err(Errno::NOTSUP | Errno::NOLCK | Errno::INVAL) => {
                return Ok(Locked {
                    folder: folder.as_fd(),
                });
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) if begun.elapsed() < LOCK_WAIT => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(5));
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => {
                return Err(Error::Locked {
                    path: path.given().to_owned(),
                });
            }
            Err(errno) => return Err(Error::io("lock the folder of", path.given(), errno.into())),
        }
    }
}

struct Locked<'a> {
    folder: BorrowedFd<'a>,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let _ = flock(self.folder, FlockOperation::Unlock);
    }
}

/// Removes temporary files of killed processes from this folder, once per folder. haft
/// holds the folder's lock, so none of them is in use.
fn sweep_once(folder: &OwnedFd, swept: &Swept) {
    let Ok(stat) = fstat(folder) else { return };
    if stat.st_size > SWEEP_LIMIT || !swept.is_first(stat.st_dev, stat.st_ino) {
        return;
    }
    let Ok(entries) = rustix::fs::Dir::read_from(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if litter::is_temporary(entry.file_name().to_bytes()) {
            let _ = unlinkat(folder, entry.file_name(), AtFlags::empty());
        }
    }
}

/// Folders that were already searched for stale files.
#[derive(Debug, Default)]
pub(super) struct Swept(Mutex<HashSet<(u64, u64)>>);

impl Swept {
    fn is_first(&self, device: u64, inode: u64) -> bool {
        let mut swept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Bounded: a process that writes in very many folders checks some again.
        if swept.len() > 10_000 {
            swept.clear();
        }
        swept.insert((device, inode))
    }
}

/// Returns an unpredictable name, so that no other program can have prepared it.
pub(super) fn random_name() -> String {
    use std::hash::{BuildHasher, RandomState};
    // The hasher of the standard library is keyed by the system's random source.
    let random = RandomState::new().hash_one((
        std::process::id(),
        std::thread::current().id(),
        Instant::now(),
    ));
    format!("{}{random:016x}{}", litter::PREFIX, litter::SUFFIX)
}
