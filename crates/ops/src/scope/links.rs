//! Resolves links step by step, so that every step is known and links to open objects in
//! `/proc` are refused.

use super::mode::Reading;
use super::shut::look_at;
use rustix::fs::{AtFlags, CWD, FileType, readlinkat, statat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
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

/// What to do about a folder of this user that cannot be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shut {
    LookInto,
    Leave,
}

impl Shut {
    fn look<T>(self, path: &Path, look: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
        match self {
            Self::LookInto => look_at(path, look),
            Self::Leave => look(),
        }
    }
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
/// that files can be created. Links in folders that this user has shut are followed too.
pub(super) fn real_path(path: &Path, last: Last, reading: Reading) -> Result<PathBuf, Problem> {
    let top = Path::new("/");
    let real = follow(top, path, last, reading, Shut::LookInto, &mut Vec::new());
    real.map(|real| real.path)
}

/// Resolves a path below a folder that is already real, for a tool that has no more
/// permissions than the user.
pub(super) fn real_below(
    folder: &Path,
    path: &Path,
    last: Last,
    reading: Reading,
) -> Result<Real, Problem> {
    follow(folder, path, last, reading, Shut::Leave, &mut Vec::new())
}

/// Resolves a path, and records each link that is followed and each folder that is left by
/// `..`, even if the path contains a cycle.
fn follow(
    folder: &Path,
    path: &Path,
    last: Last,
    reading: Reading,
    shut: Shut,
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
        let Ok(stat) = shut.look(&next, || statat(CWD, &next, AtFlags::SYMLINK_NOFOLLOW)) else {
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
        let Ok(target) = shut.look(&next, || readlinkat(CWD, &next, Vec::new())) else {
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
        Shut::LookInto,
        &mut steps,
    );
    steps.sort();
    steps.dedup();
    steps
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
