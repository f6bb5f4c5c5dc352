//! The folders that the rules name, and what is found in them.

use crate::scope::rules::SECRET;
#[cfg(target_os = "linux")]
pub(super) use crate::scope::rules::SYSTEM;
#[cfg(target_os = "linux")]
pub(super) use crate::scope::temp::SHARED as TEMP;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Where the sockets of services and sessions live.
pub(super) const SOCKETS: [&str; 2] = ["/run", "/var/run"];

/// A nested repository deeper than this is found by nobody's walk but its
/// owner's.
const NESTED_DEPTH: usize = 4;

/// Enough for the folders of a large project above its nested repositories.
const NESTED_FOLDERS: usize = 5_000;

/// What of a path is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File,
    Link,
    /// Nothing, or nothing that this user can reach.
    Nothing,
}

/// The kind of what has that name; a link is not followed.
#[expect(
    clippy::disallowed_methods,
    reason = "looks at what is to be confined; no content is read"
)]
pub(super) fn kind(path: &Path) -> Kind {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Kind::Folder,
        Ok(found) if found.is_symlink() => Kind::Link,
        Ok(_) => Kind::File,
        Err(_) => Kind::Nothing,
    }
}

/// The path without links. What does not exist keeps its name below the real
/// folder that it would be in.
#[expect(
    clippy::disallowed_methods,
    reason = "mounts and rules are made for real paths; the scope that checks a caller's path is another thing"
)]
pub(super) fn real(path: &Path) -> PathBuf {
    if let Ok(found) = std::fs::canonicalize(path) {
        return found;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    }
}

/// The names in a folder; none where it cannot be listed.
#[expect(
    clippy::disallowed_methods,
    reason = "lists homes, repositories and the top of the disk to plan around them"
)]
pub(super) fn names(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The secret places of the homes given and of every other home that can be
/// entered, as real paths whether they exist or not.
pub(super) fn secrets(homes: &[PathBuf]) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = homes.iter().map(|home| real(home)).collect();
    all.push(PathBuf::from("/root"));
    all.extend(names(Path::new("/home")));
    all.sort();
    all.dedup();
    all.iter()
        .flat_map(|home| SECRET.iter().map(move |secret| home.join(secret)))
        // Most do not exist, and following their names costs more than asking.
        .map(|path| match kind(&path) {
            Kind::Nothing => path,
            _ => real(&path),
        })
        .collect()
}

/// What lets a repository run code or configure haft, in its folder. Of what is
/// not there, the names are told that would matter.
pub(super) fn always_protected(folder: &Path) -> Vec<PathBuf> {
    let git = folder.join(".git");
    let mut found = vec![folder.join("haft.yaml")];
    match kind(&git) {
        Kind::Folder => found.extend(controls(&git)),
        Kind::File => {
            found.extend(behind_pointer(folder, &git));
            found.push(git);
        }
        Kind::Link => {
            found.extend(controls(&real(&git)));
            found.push(git);
        }
        Kind::Nothing => found.push(git),
    }
    found
}

/// The folders in and below `root` that are repositories of their own. It walks,
/// near folders first and not for ever: for the start of a session, not for
/// each command.
#[expect(
    clippy::disallowed_methods,
    reason = "finds what to protect; a scope would refuse to look into some of it"
)]
#[must_use]
pub fn repositories(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = VecDeque::from([(real(root), 0)]);
    let mut visited = 0;
    while let Some((folder, depth)) = folders.pop_front() {
        visited += 1;
        if visited > NESTED_FOLDERS {
            break;
        }
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            if entry.file_name() == ".git" {
                found.push(folder.clone());
            } else if depth < NESTED_DEPTH && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push_back((entry.path(), depth + 1));
            }
        }
    }
    found
}

/// The control files of a git folder, of its submodules and its worktrees.
fn controls(git: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["hooks", "config"]
        .iter()
        .map(|name| git.join(name))
        .collect();
    let worktree = git.join("config.worktree");
    if kind(&worktree) != Kind::Nothing {
        found.push(worktree);
    }
    for kept in ["modules", "worktrees"] {
        for inner in names(&git.join(kept)) {
            found.extend(
                ["hooks", "config", "config.worktree"]
                    .iter()
                    .map(|name| inner.join(name))
                    .filter(|path| kind(path) != Kind::Nothing),
            );
        }
    }
    found
}

/// The hooks and config of a repository whose `.git` is a file.
#[expect(
    clippy::disallowed_methods,
    reason = "two small pointer files of git, read while the plan is made"
)]
fn behind_pointer(folder: &Path, pointer: &Path) -> Vec<PathBuf> {
    // Of a regular file only, and not of a large one: a FIFO would wait.
    if !std::fs::symlink_metadata(pointer).is_ok_and(|found| found.is_file() && found.len() < 4096)
    {
        return Vec::new();
    }
    let Ok(text) = std::fs::read_to_string(pointer) else {
        return Vec::new();
    };
    let Some(target) = text.strip_prefix("gitdir:") else {
        return Vec::new();
    };
    let target = folder.join(target.trim());
    let common = target.join("commondir");
    let shared = if std::fs::symlink_metadata(&common)
        .is_ok_and(|found| found.is_file() && found.len() < 4096)
    {
        std::fs::read_to_string(&common)
            .map_or_else(|_| target.clone(), |text| target.join(text.trim()))
    } else {
        target.clone()
    };
    [target, shared]
        .iter()
        .flat_map(|git| controls(git))
        .collect()
}
