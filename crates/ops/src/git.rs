//! Git repositories: where they are, and which files in them make git run a program.
//!
//! Three parts of haft use this knowledge: the scope refuses writes to such files, the sandbox
//! protects them, and the check after a command reports what appeared. A `Registry` remembers
//! the repositories below a root and is shared by everything in the process that works in that
//! root. A folder that was once seen as a repository stays one for as long as the root is in
//! use, even if its files are removed.

mod config;
mod config_gate;
mod control_files;
mod controls;
mod hard_links;
mod harmless;
mod judgement;
mod publish;
mod rebase;
mod registry;
mod shape;
#[cfg(test)]
mod tests;
mod variables;
mod walk;

pub(crate) use config_gate::Created;
pub use config_gate::{ConfigGate, RefusedConfig};
pub(crate) use control_files::{Control, control_of, in_folder};
pub use controls::Controls;
pub(crate) use hard_links::{Sought, same_files, with_other_names};
pub use judgement::Objection;
pub(crate) use publish::{prepared, present, set_mode};
pub(crate) use rebase::{AddedCommands, UnfinishedRebase, unfinished_rebases};
pub(crate) use registry::{BusyGuard, Registry, RegistryRecord, Since};

use crate::scope::shut::look;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Entries of a git folder that make git run programs, or that point to other files that
/// do.
pub(crate) const CONTROL: [&str; 5] = ["hooks", "config", "config.worktree", "commondir", "gitdir"];

/// Folders with the state of unfinished operations, which may name commands to run.
pub(crate) const UNFINISHED: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

/// Whether two names are equal on a file system that may ignore case.
fn is(name: &OsStr, other: &str) -> bool {
    name.eq_ignore_ascii_case(other)
}

/// Returns everything that controls git in and below `root`, found by walking it once.
#[must_use]
pub fn repositories(root: &Path) -> Controls {
    let registry = Registry::new(root);
    registry.look(Since::Start);
    registry.guarded(None)
}

/// Whether git would obey something at this path in a complete repository, and nothing is
/// there.
pub(crate) fn is_missing_control(path: &Path) -> bool {
    let is_control = |name: &OsStr| CONTROL.iter().any(|control| name == *control);
    path.file_name().is_some_and(is_control)
        && kind(path).is_none()
        && path.parent().is_some_and(shape::is_whole)
}

/// Returns the type of file at a path, without following links.
fn kind(path: &Path) -> Option<FileType> {
    let stat = look(path, || statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)).ok()?;
    Some(FileType::from_raw_mode(stat.st_mode))
}

/// Whether the folder that contains a path cannot be searched.
fn is_out_of_reach(path: &Path) -> bool {
    statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).err() == Some(Errno::ACCESS)
}

/// Resolves all links in a path. Parts that do not exist are kept.
fn real(path: &Path) -> PathBuf {
    crate::scope::real(path).unwrap_or_else(|| path.to_owned())
}

/// Returns the entries of a folder, if it can be listed.
#[expect(
    clippy::disallowed_methods,
    reason = "finds what to protect; a scope would refuse to look into some of it"
)]
fn list(folder: &Path) -> Option<Vec<std::fs::DirEntry>> {
    let list = || Ok::<_, std::io::Error>(std::fs::read_dir(folder)?.flatten().collect());
    look(folder, list).ok()
}

/// Returns the entries of a folder; empty if it cannot be listed.
fn names(folder: &Path) -> Vec<std::fs::DirEntry> {
    list(folder).unwrap_or_default()
}

/// Returns the content of a small regular file without trailing line ends: the target of a
/// pointer. Names need not be UTF-8.
fn pointer(path: &Path) -> Option<Vec<u8>> {
    // Longer than any path.
    let mut bytes = Vec::new();
    open(path)?.take(16 << 10).read_to_end(&mut bytes).ok()?;
    while let Some(b'\n' | b'\r') = bytes.last() {
        bytes.pop();
    }
    Some(bytes)
}

/// Opens a regular file. A FIFO or device of that name would block or never end, so the
/// type is checked first and the file is opened without blocking.
fn open(path: &Path) -> Option<std::fs::File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let before = look(path, || statat(CWD, path, AtFlags::empty())).ok()?;
    if !FileType::from_raw_mode(before.st_mode).is_file() {
        return None;
    }
    let open = || match openat(CWD, path, flags, Mode::empty()) {
        // It is being published, which takes a moment.
        Err(Errno::AGAIN) => openat(CWD, path, flags - OFlags::NONBLOCK, Mode::empty()),
        opened => opened,
    };
    let file = look(path, open).ok()?;
    if !FileType::from_raw_mode(fstat(&file).ok()?.st_mode).is_file() {
        return None;
    }
    Some(std::fs::File::from(file))
}
