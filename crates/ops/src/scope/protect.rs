//! What is never written: the person's list, and what would let a repository
//! run code or configure haft.

use super::Root;
use super::links::{self, Last};
use super::mode::Reading;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, statat};
use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The protected places of a scope.
#[derive(Debug)]
pub(super) struct Protect {
    /// Real paths: each entry, and what it points to when it is a link.
    entries: Vec<PathBuf>,
    detached: bool,
}

impl Protect {
    pub(super) fn nothing() -> Self {
        Self {
            entries: Vec::new(),
            detached: true,
        }
    }

    pub(super) fn build(roots: &[Arc<Root>], own: &[PathBuf], listed: Vec<PathBuf>) -> Self {
        let mut entries = Vec::new();
        let work_dir = roots.first().map_or(Path::new("/"), |root| root.path());
        for entry in listed.iter().filter(|entry| !entry.as_os_str().is_empty()) {
            let entry = work_dir.join(entry);
            // A link protects its target, and itself: replacing the link would
            // otherwise put something else in its place.
            for last in [Last::Keep, Last::Follow] {
                entries.extend(links::real_path(&entry, last, Reading::Anywhere));
            }
        }
        for root in roots {
            let config = root.path().join("haft.yaml");
            entries.extend(links::real_path(&config, Last::Follow, Reading::Anywhere));
            entries.push(config);
        }
        entries.extend(own.iter().cloned());
        for root in roots {
            entries.extend(linked_git_folders(root.path()));
        }
        entries.sort();
        entries.dedup();
        Self {
            entries,
            detached: false,
        }
    }

    /// Whether the real path is, or lies in, a protected place.
    pub(super) fn covers(&self, real: &Path) -> bool {
        !self.detached
            && (self.entries.iter().any(|entry| real.starts_with(entry))
                || is_git_control(real)
                || self.covers_by_identity(real))
    }

    /// On a file system that ignores case, `.GIT` is `.git`: names differ but
    /// the folder is the same one, so the folders themselves are compared.
    fn covers_by_identity(&self, real: &Path) -> bool {
        let identity = |path: &Path| {
            statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
                .ok()
                .map(|stat| (stat.st_dev, stat.st_ino))
        };
        let protected: Vec<_> = self
            .entries
            .iter()
            .filter_map(|entry| identity(entry))
            .collect();
        // The file itself is left out: writing replaces its name, so a hard
        // link to a protected file is broken, not written through.
        real.ancestors()
            .skip(1)
            .filter_map(identity)
            .any(|ancestor| protected.contains(&ancestor))
    }
}

/// What in a repository's folder makes git run something, or look elsewhere for
/// what does.
pub(crate) const CONTROL: [&str; 5] = ["hooks", "config", "config.worktree", "commondir", "gitdir"];

/// Whether a path is what git obeys. In any folder, in any case: git on a file
/// system that ignores case would take `.GIT` too. A file named `.git` points to
/// a repository, so nobody may write one; and a folder that looks like a
/// repository is one, whatever its name, since a `.git` file or link somewhere
/// may lead to it.
fn is_git_control(real: &Path) -> bool {
    let parts: Vec<&OsStr> = real.iter().collect();
    let is = |part: &OsStr, name: &str| part.eq_ignore_ascii_case(name);
    if parts.last().is_some_and(|last| is(last, ".git")) {
        return true;
    }
    parts.iter().enumerate().skip(1).any(|(at, part)| {
        CONTROL.iter().any(|name| is(part, name)) && {
            let above = parts.get(..at).unwrap_or_default();
            let named = above.last().is_some_and(|folder| is(folder, ".git"));
            // `.git/modules/NAME/hooks` and `.git/worktrees/NAME/gitdir`.
            let inner = above.iter().zip(above.iter().skip(1)).any(|(git, kind)| {
                is(git, ".git") && (is(kind, "modules") || is(kind, "worktrees"))
            });
            named || inner || is_repository(&above.iter().collect::<PathBuf>())
        }
    })
}

/// Whether a folder is a repository, bare or not, by what git itself looks for.
fn is_repository(folder: &Path) -> bool {
    let there = |name: &str| statat(CWD, folder.join(name), AtFlags::SYMLINK_NOFOLLOW).is_ok();
    there("HEAD") && (there("objects") || there("commondir"))
}

/// The real places of what git obeys in a root, when `.git` is a file or a link,
/// or when parts of it are links.
fn linked_git_folders(root: &Path) -> Vec<PathBuf> {
    let real = |path: &Path| links::real_path(path, Last::Follow, Reading::Anywhere).ok();
    let dot_git = root.join(".git");
    let mut folders = vec![dot_git.clone()];
    if let Some(text) = small_text(&dot_git)
        && let Some(folder) = text.strip_prefix("gitdir:")
    {
        folders.push(
            real(&dot_git)
                .and_then(|file| file.parent().map(Path::to_owned))
                .unwrap_or_else(|| root.to_owned())
                .join(folder.trim()),
        );
    }
    let common: Vec<PathBuf> = folders
        .iter()
        .filter_map(|folder| Some(folder.join(small_text(&folder.join("commondir"))?.trim())))
        .collect();
    folders.extend(common);
    let mut places: Vec<PathBuf> = real(&dot_git)
        .into_iter()
        .filter(|place| *place != dot_git && !place.is_dir())
        .collect();
    for folder in folders {
        places.extend(CONTROL.iter().filter_map(|name| real(&folder.join(name))));
        places.extend(
            hooks(&folder.join("hooks"))
                .iter()
                .filter_map(|hook| real(hook)),
        );
    }
    places
}

/// The hooks that are links: what they lead to runs as well.
#[expect(
    clippy::disallowed_methods,
    reason = "read once when the scope is made, before there is a backend"
)]
fn hooks(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let links = entries
        .flatten()
        .take(1000)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    links.map(|entry| entry.path()).collect()
}

/// The text of a small regular file. A FIFO or a device of that name would wait
/// or go on for ever, so it is opened without waiting and looked at first.
pub(crate) fn small_text(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let before = statat(CWD, path, AtFlags::empty()).ok()?;
    if !FileType::from_raw_mode(before.st_mode).is_file() {
        return None;
    }
    let file = openat(CWD, path, flags, Mode::empty()).ok()?;
    if !FileType::from_raw_mode(fstat(&file).ok()?.st_mode).is_file() {
        return None;
    }
    let mut text = String::new();
    std::fs::File::from(file)
        .take(4096)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}
