//! What is never written: the person's list, and what would let a repository
//! run code or configure haft.

use super::Root;
use super::links::{self, Last};
use super::rules::Reading;
use rustix::fs::{AtFlags, CWD, FileType, statat};
use std::ffi::OsStr;
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
        entries.extend(roots.iter().map(|root| root.path().join("haft.yaml")));
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

/// `.git/hooks` and `.git/config` run code when git runs, and so does a `.git`
/// file that points elsewhere. In any folder, in any case: git on a file system
/// that ignores case would take `.GIT` too.
fn is_git_control(real: &Path) -> bool {
    let parts: Vec<&OsStr> = real.iter().collect();
    let is = |part: &OsStr, name: &str| part.eq_ignore_ascii_case(name);
    if parts.last().is_some_and(|last| is(last, ".git")) {
        return true;
    }
    parts.iter().enumerate().any(|(at, part)| {
        is(part, ".git")
            && parts
                .get(at + 1..)
                .unwrap_or_default()
                .iter()
                .enumerate()
                .any(|(depth, inner)| {
                    // `.git/hooks`, and `.git/modules/NAME/hooks` of a submodule.
                    let below_modules = depth > 0
                        && parts
                            .get(at + 1)
                            .is_some_and(|part| is(part, "modules") || is(part, "worktrees"));
                    (depth == 0 || below_modules)
                        && (is(inner, "hooks")
                            || is(inner, "config")
                            || is(inner, "config.worktree"))
                })
    })
}

/// The hooks and config of a repository whose `.git` is a file (a worktree, or
/// `--separate-git-dir`), wherever they really are.
#[expect(
    clippy::disallowed_methods,
    reason = "read once when the scope is made, before there is a backend"
)]
fn linked_git_folders(root: &Path) -> Vec<PathBuf> {
    let pointer = root.join(".git");
    // Only a regular file: a FIFO of that name would wait for ever.
    if !statat(CWD, &pointer, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file() && stat.st_size < 4096)
    {
        return Vec::new();
    }
    let Ok(text) = std::fs::read_to_string(&pointer) else {
        return Vec::new();
    };
    let Some(folder) = text.strip_prefix("gitdir:") else {
        return Vec::new();
    };
    let folder = root.join(folder.trim());
    let common = match std::fs::read_to_string(folder.join("commondir")) {
        Ok(common) => folder.join(common.trim()),
        Err(_) => folder.clone(),
    };
    let mut places = Vec::new();
    for folder in [folder, common] {
        for name in ["hooks", "config", "config.worktree"] {
            places.extend(links::real_path(
                &folder.join(name),
                Last::Follow,
                Reading::Anywhere,
            ));
        }
    }
    places
}
