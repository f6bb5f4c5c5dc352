//! The folders that the rules name, and what is found in them.

use crate::git::{self, Controls};
use crate::scope::rules::SECRET;
#[cfg(target_os = "linux")]
pub(super) use crate::scope::rules::SYSTEM;
use crate::scope::shut_folder;
#[cfg(target_os = "linux")]
pub(super) use crate::scope::temp::SHARED as TEMP;
use std::path::{Path, PathBuf};

/// Where the sockets of services and sessions live.
pub(super) const SOCKETS: [&str; 2] = ["/run", "/var/run"];

/// Where the system keeps the programs and libraries without which nothing starts.
const PROGRAMS: [&str; 8] = [
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/usr/bin",
    "/usr/lib",
    "/usr/lib64",
    "/nix/store",
];

/// Whether a folder is or holds one of those.
pub(super) fn holds_programs(folder: &Path) -> bool {
    PROGRAMS
        .iter()
        .any(|programs| real(Path::new(programs)).starts_with(folder))
}

/// What of a path is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File,
    Link,
    /// Unknown, because this user owns the folder around it and may not search it.
    Shut,
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
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            match shut_folder(path) {
                Some(_) => Kind::Shut,
                None => Kind::Nothing,
            }
        }
        Err(_) => Kind::Nothing,
    }
}

/// How many links the kernel follows in one path.
const LINKS: usize = 40;

/// The path without links. What does not exist keeps its name below the real
/// folder that it would be in, and a link to it leads there. Only one that leads in
/// a circle stays.
pub(super) fn real(path: &Path) -> PathBuf {
    follow(path, LINKS)
}

#[expect(
    clippy::disallowed_methods,
    reason = "mounts and rules are made for real paths; the scope that checks a caller's path is another thing"
)]
fn follow(path: &Path, links: usize) -> PathBuf {
    if let Ok(found) = std::fs::canonicalize(path) {
        return found;
    }
    let Some(parent) = path.parent() else {
        return path.to_owned();
    };
    let mut folder = follow(parent, links);
    let Some(name) = path.file_name() else {
        // It ends in `..`, in a folder that is not there.
        folder.pop();
        return folder;
    };
    let place = folder.join(name);
    match (std::fs::read_link(&place), links.checked_sub(1)) {
        (Ok(target), Some(left)) => follow(&folder.join(target), left),
        _ => place,
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
#[must_use]
pub fn secrets(homes: &[PathBuf]) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = homes.iter().map(|home| real(home)).collect();
    all.push(PathBuf::from("/root"));
    all.extend(names(Path::new("/home")));
    all.sort();
    all.dedup();
    all.iter()
        .flat_map(|home| SECRET.iter().map(move |secret| home.join(secret)))
        // Most do not exist, and following their names costs more than asking.
        .map(|path| match kind(&path) {
            Kind::Nothing | Kind::Shut => path,
            Kind::Folder | Kind::File | Kind::Link => real(&path),
        })
        .collect()
}

/// What lets a repository run code or configure haft, in a root. Of what is not
/// there, the names are told that would matter.
pub(super) fn always_protected(root: &Path, home: Option<&Path>) -> Controls {
    let mut found = git::in_folder(root, home);
    found.add(root.join("haft.yaml"));
    found
}
