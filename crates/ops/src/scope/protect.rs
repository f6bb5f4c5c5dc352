//! Paths that are never written: the user's list, and files that let a repository run code
//! or that configure haft.

use super::Root;
use super::links::{self, Last};
use super::mode::Reading;
use crate::git::{self, Registry};
use rustix::fs::{AtFlags, CWD, statat};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The protected paths of a scope.
#[derive(Debug)]
pub(super) struct Protect {
    /// Real paths of each entry, and of its target if it is a link.
    entries: Vec<PathBuf>,
    /// Links on the way to an entry or to one of haft's own folders. Only the link itself
    /// is protected, because it may lead to other things as well.
    links: Vec<PathBuf>,
    /// The repositories of each root.
    registries: Vec<Arc<Registry>>,
    home: Option<PathBuf>,
    detached: bool,
}

impl Protect {
    pub(super) fn nothing() -> Self {
        Self {
            entries: Vec::new(),
            links: Vec::new(),
            registries: Vec::new(),
            home: None,
            detached: true,
        }
    }

    pub(super) fn build(
        roots: &[Arc<Root>],
        own: &[PathBuf],
        own_links: Vec<PathBuf>,
        home: Option<&Path>,
        git_configs: &[PathBuf],
        listed: Vec<PathBuf>,
    ) -> Self {
        let mut entries = Vec::new();
        let mut on_the_way = own_links;
        let work_dir = roots.first().map_or(Path::new("/"), |root| root.path());
        for entry in listed.iter().filter(|entry| !entry.as_os_str().is_empty()) {
            let entry = work_dir.join(entry);
            on_the_way.extend(super::links_on(&entry));
            // A link is protected together with its target, because it could otherwise be
            // replaced by something else.
            for last in [Last::Keep, Last::Follow] {
                entries.extend(links::real_path(&entry, last, Reading::Anywhere));
            }
        }
        for root in roots {
            let config = root.path().join("haft.yaml");
            on_the_way.extend(super::links_on(&config));
            entries.extend(links::real_path(&config, Last::Follow, Reading::Anywhere));
            entries.push(config);
        }
        entries.extend(own.iter().cloned());
        // Repositories below are found at the first write.
        for root in roots {
            let controls = git::in_folder(root.path(), home);
            on_the_way.extend(controls.links);
            for place in controls.paths {
                entries.extend(links::real_path(&place, Last::Follow, Reading::Anywhere));
                entries.push(place);
            }
        }
        entries.sort();
        entries.dedup();
        let registries: Vec<_> = roots.iter().map(|root| Registry::of(root.path())).collect();
        for registry in &registries {
            registry.reads(git_configs);
        }
        Self {
            entries,
            links: on_the_way,
            registries,
            home: home.map(Path::to_owned),
            detached: false,
        }
    }

    /// Whether a real path is protected or inside something protected.
    pub(super) fn covers(&self, real: &Path) -> bool {
        !self.detached
            && (self.entries.iter().any(|entry| real.starts_with(entry))
                || self.links.iter().any(|link| real == link)
                || git::control_of(real).is_some()
                || self
                    .registries
                    .iter()
                    .any(|registry| registry.covers(real, self.home.as_deref()))
                || self.covers_by_identity(real))
    }

    /// Explains why a path is protected if that is not obvious: its folder looks like a git
    /// repository.
    pub(super) fn why(given: &str, real: &Path) -> Option<String> {
        let Some(git::Control::Alike(folder)) = git::control_of(real) else {
            return None;
        };
        // The folder as the caller would name it.
        let below = real.strip_prefix(&folder).ok()?.to_str()?;
        let folder = match given.strip_suffix(below).map(|at| at.trim_end_matches('/')) {
            Some("" | ".") => "the work folder".to_owned(),
            Some(named) => format!("the folder {named}"),
            None => "its folder".to_owned(),
        };
        Some(format!(
            "{folder} looks like a git repository to haft, because of the names in it (such as \
             HEAD, objects, refs, hooks or config), and git would obey this file; if it is not a \
             repository, rename one of them, or make this change yourself"
        ))
    }

    /// Compares folders by identity. On a file system that ignores case, `.GIT` is `.git`:
    /// the names differ but the folder is the same.
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
        // Not the file itself: writing replaces the name, so a hard link to a protected
        // file is broken, not written through.
        real.ancestors()
            .skip(1)
            .filter_map(identity)
            .any(|ancestor| protected.contains(&ancestor))
    }
}
