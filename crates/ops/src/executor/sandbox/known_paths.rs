//! Folders that the rules name, and what is found in them.

use crate::git::{self, Controls};
#[cfg(target_os = "linux")]
pub(super) use crate::scope::rules::SYSTEM;

use crate::scope::secret::{HOST_KEYS, SECRET, SYSTEM_SECRET, is_host_key};
use crate::scope::shut::look;
use crate::scope::shut::shut_folder;
#[cfg(target_os = "linux")]
pub(super) use crate::scope::temp::SHARED as TEMP;
use rustix::fs::{Access, access};
use std::path::{Path, PathBuf};

/// Folders with the sockets of services and sessions.
pub(super) const SOCKETS: [&str; 2] = ["/run", "/var/run"];

/// Folders with the system's programs and libraries, without which nothing starts.
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

/// Whether a folder is or contains one of those.
pub(super) fn holds_programs(folder: &Path) -> bool {
    PROGRAMS
        .iter()
        .any(|programs| real(Path::new(programs)).starts_with(folder))
}

/// Kind of file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File,
    Link,
    /// Unknown, because this user owns the folder around it and cannot search it.
    Shut,
    /// Nothing, or nothing that this user can reach.
    Nothing,
}

/// Returns the kind of a path, without following links.
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

/// Maximum number of links that the kernel follows in one path.
const LINKS: usize = 40;

/// Resolves all links in a path, also those in folders that this user has shut. Parts that
/// do not exist are kept, below the real folder they would be in. A link in a cycle is kept
/// as it is.
pub(crate) fn real(path: &Path) -> PathBuf {
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
        // It ends with `..` in a folder that does not exist.
        folder.pop();
        return folder;
    };
    let place = folder.join(name);
    let target = look(&place, || std::fs::read_link(&place));
    match (target, links.checked_sub(1)) {
        (Ok(target), Some(left)) => follow(&folder.join(target), left),
        _ => place,
    }
}

/// Returns the entries of a folder; empty if it cannot be listed.
#[expect(
    clippy::disallowed_methods,
    reason = "lists homes, repositories and the top of the disk to plan around them"
)]
pub(crate) fn names(folder: &Path) -> Vec<PathBuf> {
    let list = || Ok::<_, std::io::Error>(std::fs::read_dir(folder)?.flatten().collect());
    let entries: Vec<std::fs::DirEntry> = look(folder, list).unwrap_or_default();
    let mut paths: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
    paths.sort();
    paths
}

/// Returns the secret paths of the given homes and of every other home that can be entered,
/// as real paths, whether they exist or not; and those of the machine that this user can read.
#[must_use]
pub fn secrets(homes: &[PathBuf]) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = homes.iter().map(|home| real(home)).collect();
    all.push(PathBuf::from("/root"));
    all.extend(names(Path::new("/home")));
    all.sort();
    all.dedup();
    all.iter()
        .flat_map(|home| SECRET.iter().map(move |secret| home.join(secret)))
        // Most do not exist, and resolving links costs more than checking that.
        .map(|path| match kind(&path) {
            Kind::Nothing | Kind::Shut => path,
            Kind::Folder | Kind::File | Kind::Link => real(&path),
        })
        .chain(system_secrets())
        .collect()
}

/// Returns the secret paths of the machine, as real paths. Each hidden path costs a mount, so
/// those that this user cannot read anyway are left out; for most users that is all of them.
fn system_secrets() -> Vec<PathBuf> {
    let keys = names(Path::new(HOST_KEYS)).into_iter();
    let keys = keys.filter(|path| path.file_name().is_some_and(is_host_key));
    SYSTEM_SECRET
        .iter()
        .map(PathBuf::from)
        .chain(keys)
        .filter(|path| access(path, Access::READ_OK).is_ok())
        .map(|path| real(&path))
        .collect()
}

/// Returns the paths in a root that let a repository run code or that configure haft,
/// whether they exist or not.
pub(super) fn always_protected(root: &Path, home: Option<&Path>) -> Controls {
    let mut found = git::in_folder(root, home);
    found.add(root.join("haft.yaml"));
    found
}
