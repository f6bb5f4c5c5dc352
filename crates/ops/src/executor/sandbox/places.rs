//! The folders that the rules name, and what is found in them.

use crate::scope::protect::{CONTROL, small_text};
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
const NESTED_DEPTH: usize = 8;

/// Submodules and worktrees of one repository, and the folders on the way.
const INNER: usize = 500;

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
    if ["HEAD", "objects", "refs"]
        .iter()
        .all(|name| kind(&folder.join(name)) != Kind::Nothing)
    {
        // A repository without a work tree.
        found.extend(controls(folder));
        return found;
    }
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
        let mut bare = 0;
        for entry in entries.flatten() {
            let name = entry.file_name();
            bare += usize::from(name == "HEAD" || name == "objects" || name == "refs");
            if name == ".git" {
                found.push(folder.clone());
            } else if depth < NESTED_DEPTH && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push_back((entry.path(), depth + 1));
            }
        }
        if bare == 3 {
            found.push(folder);
        }
    }
    found
}

/// What git obeys in a git folder, in those of its submodules and its worktrees.
/// In the folder itself also what is not there yet; what hooks lead to, where
/// they are links.
fn controls(git: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = CONTROL
        .iter()
        // Where the folder itself is; that of a worktree is below.
        .filter(|name| **name != "gitdir")
        .map(|name| git.join(name))
        .collect();
    for hook in names(&git.join("hooks")) {
        if kind(&hook) == Kind::Link {
            found.push(real(&hook));
        }
    }
    let mut inner: VecDeque<PathBuf> = ["modules", "worktrees"]
        .iter()
        .flat_map(|kept| names(&git.join(kept)))
        .collect();
    // The name of a submodule may have slashes in it.
    for _ in 0..INNER {
        let Some(folder) = inner.pop_front() else {
            break;
        };
        if kind(&folder.join("HEAD")) == Kind::Nothing {
            let below = names(&folder).into_iter();
            inner.extend(below.filter(|path| kind(path) == Kind::Folder));
        }
        let there = CONTROL.iter().map(|name| folder.join(name));
        found.extend(there.filter(|path| kind(path) != Kind::Nothing));
        inner.extend(names(&folder.join("modules")));
    }
    found
}

/// The hooks and config of a repository whose `.git` is a file.
fn behind_pointer(folder: &Path, pointer: &Path) -> Vec<PathBuf> {
    // Not waited for: a FIFO may be put there at any moment.
    let Some(text) = small_text(pointer) else {
        return Vec::new();
    };
    let Some(target) = text.strip_prefix("gitdir:") else {
        return Vec::new();
    };
    let target = folder.join(target.trim());
    let shared = small_text(&target.join("commondir"))
        .map_or_else(|| target.clone(), |text| target.join(text.trim()));
    [target, shared]
        .iter()
        .flat_map(|git| controls(git))
        .collect()
}
