//! Git repositories: where they are, and which files in them make git run a program.
//!
//! Three parts of haft use this knowledge: the scope refuses writes to such files, the sandbox
//! covers them, and the check after a command reports what appeared. A `Register` remembers
//! the repositories below a root and is shared by everything in the process that works in that
//! root. A folder that was once seen as a repository stays one for as long as the root is in
//! use, even if its files are removed.

mod config;
mod controls;
mod obeyed;
mod register;
mod same;
mod shape;
#[cfg(test)]
mod tests;
mod unfinished;
mod walk;

pub use controls::Controls;
pub(crate) use obeyed::{Control, control_of, in_folder};
pub(crate) use register::{Register, Remembered, Running, Since};
pub(crate) use same::{Sought, same_files, with_other_names};
pub(crate) use unfinished::{Added, Left, left_open};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What in a repository's folder makes git run something, or look elsewhere for
/// what does.
pub(crate) const CONTROL: [&str; 5] = ["hooks", "config", "config.worktree", "commondir", "gitdir"];

/// What git goes on with when it is told to continue: it may name commands.
pub(crate) const UNFINISHED: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

/// Whether a name is this one on a file system that may ignore case.
fn is(name: &OsStr, other: &str) -> bool {
    name.eq_ignore_ascii_case(other)
}

/// Everything that git obeys in `root` and below, found by walking it once.
#[must_use]
pub fn repositories(root: &Path) -> Controls {
    let register = Register::new(root);
    register.look(Since::Start);
    register.guarded(None)
}

/// Which kind of thing has that name; a link is not followed.
fn kind(path: &Path) -> Option<FileType> {
    let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// Whether the folder around a path cannot be searched.
fn is_out_of_reach(path: &Path) -> bool {
    statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).err() == Some(Errno::ACCESS)
}

/// The path without links; what does not exist keeps its name.
fn real(path: &Path) -> PathBuf {
    crate::scope::real(path).unwrap_or_else(|| path.to_owned())
}

/// The names in a folder that can be listed.
#[expect(
    clippy::disallowed_methods,
    reason = "finds what to protect; a scope would refuse to look into some of it"
)]
fn list(folder: &Path) -> Option<Vec<std::fs::DirEntry>> {
    Some(std::fs::read_dir(folder).ok()?.flatten().collect())
}

/// The names in a folder; none where it cannot be listed.
fn names(folder: &Path) -> Vec<std::fs::DirEntry> {
    list(folder).unwrap_or_default()
}

/// What a small regular file holds, without the ends of lines behind it: where a pointer
/// leads. Names need not be text.
fn pointer(path: &Path) -> Option<Vec<u8>> {
    // More than the longest path.
    let mut bytes = Vec::new();
    open(path)?.take(16 << 10).read_to_end(&mut bytes).ok()?;
    while let Some(b'\n' | b'\r') = bytes.last() {
        bytes.pop();
    }
    Some(bytes)
}

/// Opens a regular file. A FIFO or a device of that name would wait or go on for ever,
/// so it is looked at first and opened without waiting.
fn open(path: &Path) -> Option<std::fs::File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let before = statat(CWD, path, AtFlags::empty()).ok()?;
    if !FileType::from_raw_mode(before.st_mode).is_file() {
        return None;
    }
    let file = openat(CWD, path, flags, Mode::empty()).ok()?;
    if !FileType::from_raw_mode(fstat(&file).ok()?.st_mode).is_file() {
        return None;
    }
    Some(std::fs::File::from(file))
}
