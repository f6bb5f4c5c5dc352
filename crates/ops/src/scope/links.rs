//! Resolves links step by step, so that every step is known and links to open objects in
//! `/proc` are refused.

use super::mode::Reading;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, chmodat, fstat, openat, readlinkat, statat,
};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// The kernel's limit.
pub(super) const MAX_LINKS: usize = 40;

/// Whether the last component is followed if it is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Follow,
    Keep,
}

/// A resolved path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Real {
    /// The absolute path with every link resolved.
    pub(super) path: PathBuf,
    /// The type of file at the path; `None` if nothing exists there.
    pub(super) met: Option<FileType>,
    /// The intermediate names, one for each link that was followed. Rules for such a name
    /// also apply to its target.
    pub(super) aliases: Vec<PathBuf>,
}

/// Reason why a path cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Problem {
    /// It contains a link in `/proc` that leads to an object instead of a path.
    Magic,
    /// It contains a cycle of links, which was detected at this path.
    Loop(PathBuf),
}

/// Removes `.` and `..` textually, for backends without links.
pub(super) fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    clean
}

/// Resolves every link in a path as the kernel would. Parts that do not exist are kept, so
/// that files can be created.
pub(super) fn real_path(path: &Path, last: Last, reading: Reading) -> Result<PathBuf, Problem> {
    real_below(Path::new("/"), path, last, reading).map(|real| real.path)
}

/// Resolves a path below a folder that is already real.
pub(super) fn real_below(
    folder: &Path,
    path: &Path,
    last: Last,
    reading: Reading,
) -> Result<Real, Problem> {
    follow(folder, path, last, reading, &mut Vec::new())
}

/// Resolves a path, and records each link that is followed and each folder that is left by
/// `..`, even if the path contains a cycle.
fn follow(
    folder: &Path,
    path: &Path,
    last: Last,
    reading: Reading,
    steps: &mut Vec<PathBuf>,
) -> Result<Real, Problem> {
    let mut real = folder.to_owned();
    let mut met = None;
    let mut aliases = Vec::new();
    let mut rest: VecDeque<OsString> = parts(path).collect();
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            steps.push(real.clone());
            real.pop();
            continue;
        }
        let keep = last == Last::Keep && rest.is_empty();
        met = None;
        let mut next = real.join(&name);
        let Ok(stat) = statat(CWD, &next, AtFlags::SYMLINK_NOFOLLOW) else {
            if let Some(found) = undo_replacement(&real, &name) {
                next = real.join(&found);
                if statat(CWD, &next, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                    rest.push_front(found);
                    continue;
                }
            }
            real = next;
            continue;
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::Symlink || keep {
            met = Some(kind);
            real = next;
            continue;
        }
        links += 1;
        steps.push(next.clone());
        if links > MAX_LINKS {
            return Err(Problem::Loop(next));
        }
        if reading != Reading::Anywhere && is_magic(&next) {
            return Err(Problem::Magic);
        }
        let Ok(target) = readlinkat(CWD, &next, Vec::new()) else {
            real = next;
            continue;
        };
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        aliases.push(rest.iter().fold(next, |path, part| path.join(part)));
        if target.is_absolute() {
            real = PathBuf::from("/");
        }
        for part in parts(&target).rev() {
            rest.push_front(part);
        }
    }
    Ok(Real {
        path: real,
        met,
        aliases,
    })
}

/// Returns the names that decide where a path leads, each in its real folder: the links on
/// the way, and the folders that a `..` leaves. If such a folder became a link, `..` would
/// lead elsewhere.
#[must_use]
pub fn links_on(path: &Path) -> Vec<PathBuf> {
    let mut steps = Vec::new();
    // A path with a cycle cannot be resolved, but its links still count.
    let _ = follow(
        Path::new("/"),
        path,
        Last::Follow,
        Reading::Anywhere,
        &mut steps,
    );
    steps.sort();
    steps.dedup();
    steps
}

/// Returns the folder that makes a path unreachable, if this user owns it and cannot search
/// it. Nothing is known about paths in it, but a command of this user can make it
/// searchable.
#[must_use]
pub fn shut_above(path: &Path) -> Option<PathBuf> {
    let found = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
    (found.err() == Some(Errno::ACCESS)).then(|| shut_folder(path))?
}

/// Like [`shut_above`], for a path that was already found to be unreachable. Another process
/// may open and shut folders meanwhile, so each one is asked only once.
#[must_use]
pub fn shut_folder(path: &Path) -> Option<PathBuf> {
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

/// Returns the components that matter: names and `..`.
fn parts(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + '_ {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    })
}

/// Whether a link leads to an open object, whatever text it shows: those below `/proc/PID`.
/// The ordinary ones (`/proc/self`, `/proc/mounts`) are directly in `/proc`.
fn is_magic(link: &Path) -> bool {
    link.starts_with("/proc") && link.parent() != Some(Path::new("/proc"))
}

/// Finds the file that a name with replacement characters means. Models see those for names
/// that are not UTF-8. Returns a name only if exactly one in the folder matches.
#[expect(
    clippy::disallowed_methods,
    reason = "a look at names, before there is a path to give to a backend"
)]
fn undo_replacement(folder: &Path, name: &OsStr) -> Option<OsString> {
    let wanted = name.to_str().filter(|name| name.contains('\u{fffd}'))?;
    let mut found = None;
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let entry = entry.file_name();
        if entry.as_bytes() != wanted.as_bytes()
            && entry.to_string_lossy() == wanted
            && found.replace(entry).is_some()
        {
            return None;
        }
    }
    found
}
