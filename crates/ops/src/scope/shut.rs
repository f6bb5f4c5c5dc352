//! Looks into folders that this user owns but cannot list or search.
//!
//! A command can take away the permissions of a folder, and give them back later. Whatever
//! is in the folder counts as if it were open, so haft adds the missing permissions for the
//! moment of looking and then restores them.

use super::links::{self, Last};
use super::mode::Reading;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, chmodat, fstat, openat, statat};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of attempts. Another process may shut the folder again each time.
const ATTEMPTS: usize = 200;

/// Maximum number of attempts if the folder was never seen shut.
const UNKNOWN_ATTEMPTS: usize = 20;

/// Number of looks that failed although this user owns the folder.
static FAILED: AtomicUsize = AtomicUsize::new(0);

/// Returns how often a folder of this user could not be looked into, because another
/// process kept shutting it. If the number grows while a command is being prepared, too
/// little may be protected.
pub(crate) fn failed_looks() -> usize {
    FAILED.load(Ordering::SeqCst)
}

/// An error that may be due to missing permissions.
pub(crate) trait Denied {
    fn is_denied(&self) -> bool;
}

impl Denied for Errno {
    fn is_denied(&self) -> bool {
        *self == Self::ACCESS
    }
}

impl Denied for std::io::Error {
    fn is_denied(&self) -> bool {
        self.kind() == std::io::ErrorKind::PermissionDenied
    }
}

/// Looks at a path that may contain links. If permissions are missing, those of the folders
/// on the way and of the folder itself are added while looking.
///
/// # Errors
/// What `look` returns.
pub(crate) fn look<T, E: Denied>(path: &Path, look: impl Fn() -> Result<T, E>) -> Result<T, E> {
    let found = look();
    if !found.as_ref().is_err_and(E::is_denied) {
        return found;
    }
    let real = |last| links::real_path(path, last, Reading::Anywhere);
    let mut all: Vec<PathBuf> = [Last::Keep, Last::Follow]
        .into_iter()
        .filter_map(|last| real(last).ok())
        .collect();
    all.dedup();
    look_opened(&all, look)
}

/// Like [`look`], for a path whose folder is real.
///
/// # Errors
/// What `look` returns.
pub(super) fn look_at<T, E: Denied>(path: &Path, look: impl Fn() -> Result<T, E>) -> Result<T, E> {
    let found = look();
    if !found.as_ref().is_err_and(E::is_denied) {
        return found;
    }
    look_opened(&[path.to_owned()], look)
}

/// Looks with the ways to these paths opened.
fn look_opened<T, E: Denied>(paths: &[PathBuf], look: impl Fn() -> Result<T, E>) -> Result<T, E> {
    let mut was_shut = false;
    let mut attempt = 0;
    loop {
        attempt += 1;
        // The name does not matter: the folder itself is on the way to anything in it.
        let opened: Vec<_> = paths.iter().map(|path| open_way(&path.join("x"))).collect();
        let found = look();
        if !found.as_ref().is_err_and(E::is_denied) {
            return found;
        }
        match paths.iter().map(|path| obstacle(path)).max() {
            Some(Obstacle::Shut) => was_shut = true,
            Some(Obstacle::Unknown) if was_shut || attempt < UNKNOWN_ATTEMPTS => {}
            _ => return found,
        }
        drop(opened);
        if attempt == ATTEMPTS {
            FAILED.fetch_add(1, Ordering::SeqCst);
            return found;
        }
    }
}

/// Reason why a path could not be looked at after its folders were opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Obstacle {
    /// A folder of another user, or nothing is there.
    Foreign,
    /// The permissions are there: another process shut the folder for a moment, or something
    /// else than permissions is missing, as in a sandbox around haft.
    Unknown,
    /// A folder of this user was shut again.
    Shut,
}

fn obstacle(path: &Path) -> Obstacle {
    let is_ours = match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => {
            let is_folder = FileType::from_raw_mode(stat.st_mode).is_dir();
            if !is_folder || stat.st_mode & 0o500 == 0o500 {
                return Obstacle::Unknown;
            }
            can_set_mode(path).unwrap_or(false)
        }
        Err(error) => error == Errno::ACCESS && shut_folder(path).is_some(),
    };
    if is_ours {
        Obstacle::Shut
    } else {
        Obstacle::Foreign
    }
}

/// Returns the folder that makes a path unreachable, if this user owns it and cannot search
/// it. Nothing is known about paths in it, but a command of this user can make it
/// searchable.
#[must_use]
pub(crate) fn shut_above(path: &Path) -> Option<PathBuf> {
    let found = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
    (found.err() == Some(Errno::ACCESS)).then(|| shut_folder(path))?
}

/// Like [`shut_above`], for a path that was already found to be unreachable. Another process
/// may open and shut folders meanwhile, so each one is asked only once.
#[must_use]
pub(crate) fn shut_folder(path: &Path) -> Option<PathBuf> {
    let mut above = path.ancestors().skip(1);
    let (folder, can_open) = above.find_map(|folder| Some((folder, can_set_mode(folder).ok()?)))?;
    can_open.then(|| folder.to_owned())
}

/// Whether this user may change the mode of a folder. The owner is not enough to tell: in a
/// user namespace all unmapped owners look the same. So this sets the mode to its current
/// value.
///
/// # Errors
/// When the folder cannot be reached.
fn can_set_mode(folder: &Path) -> rustix::io::Result<bool> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(CWD, folder, flags, Mode::empty())?;
    let stat = fstat(&handle)?;
    let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
    let name = format!("/proc/self/fd/{}", handle.as_raw_fd());
    Ok(stat.st_uid == rustix::process::geteuid().as_raw()
        && chmodat(CWD, name, mode, AtFlags::empty()).is_ok())
}

/// Makes a folder of this user searchable and writable, and restores its permissions when
/// dropped.
#[derive(Debug)]
pub(crate) struct Opened {
    folder: OwnedFd,
    mode: Mode,
}

impl Opened {
    /// Adds the owner's permissions if this user owns the folder and some are missing.
    /// Works on the handle, so the folder cannot be swapped.
    pub(crate) fn new(folder: &OwnedFd) -> Option<Self> {
        let stat = fstat(folder).ok()?;
        let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
        let is_folder = FileType::from_raw_mode(stat.st_mode).is_dir();
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
        if !is_ours || !is_folder || mode.contains(Mode::RWXU) {
            return None;
        }
        let folder = folder.try_clone().ok()?;
        set_mode(&folder, mode | Mode::RWXU).ok()?;
        Some(Self { folder, mode })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // Fails if the folder was removed, which is fine.
        let _ = set_mode(&self.folder, self.mode);
    }
}

/// Sets the permissions of the object behind a handle, which may be an `O_PATH` handle.
pub(crate) fn set_mode(handle: &OwnedFd, mode: Mode) -> Result<(), Errno> {
    let name = format!("/proc/self/fd/{}", handle.as_raw_fd());
    chmodat(CWD, name, mode, AtFlags::empty())
}

/// Makes the folders on the way to a path searchable, and the last one listable, without
/// following links.
pub(crate) fn open_way(path: &Path) -> Vec<Opened> {
    let mut opened = Vec::new();
    let Some(parent) = path.parent() else {
        return opened;
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(mut folder) = openat(CWD, "/", flags, Mode::empty()) else {
        return opened;
    };
    for part in parent.components() {
        let Component::Normal(name) = part else {
            continue;
        };
        let mut next = openat(&folder, name, flags, Mode::empty());
        if next.as_ref().is_err_and(|errno| *errno == Errno::ACCESS) {
            opened.extend(Opened::new(&folder));
            next = openat(&folder, name, flags, Mode::empty());
        }
        let Ok(next) = next else {
            return opened;
        };
        folder = next;
    }
    if fstat(&folder).is_ok_and(|stat| stat.st_mode & 0o500 != 0o500) {
        opened.extend(Opened::new(&folder));
    }
    opened
}
