//! The paths that decide what git runs.

use super::kind;
use crate::scope::links_on;
use rustix::fs::FileType;
use std::path::{Path, PathBuf};

/// Paths that make git run a program, and the symbolic links that lead to them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Controls {
    /// Files and folders that git obeys, whether they exist or not.
    pub paths: Vec<PathBuf>,
    /// Links that git follows to reach one of them and folders that a `..` on the way
    /// leaves, each in its real folder. Only the name itself is protected, because other
    /// things may be reached through it as well.
    pub links: Vec<PathBuf>,
    /// Those of the paths that are configurations of repositories. Commands may change
    /// harmless variables in them.
    pub configs: Vec<PathBuf>,
}

impl Controls {
    /// Adds a path that may contain links anywhere.
    pub(crate) fn add(&mut self, path: PathBuf) {
        self.follow(&path);
        self.paths.push(path);
    }

    /// Adds a path whose folder contains no links. This saves looking at each folder above.
    pub(super) fn add_in_real_folder(&mut self, path: PathBuf) {
        if kind(&path) == Some(FileType::Symlink) {
            self.follow(&path);
        }
        self.paths.push(path);
    }

    /// Adds only the links on the way to a path.
    pub(super) fn follow(&mut self, path: &Path) {
        self.links.extend(links_on(path));
    }

    /// Adds everything in `other`.
    pub(crate) fn extend(&mut self, other: Self) {
        self.paths.extend(other.paths);
        self.links.extend(other.links);
        self.configs.extend(other.configs);
    }

    /// Leaves out everything outside a folder.
    pub(super) fn retain_below(&mut self, folder: &Path) {
        self.paths.retain(|path| path.starts_with(folder));
        self.links.retain(|link| link.starts_with(folder));
        self.configs.retain(|config| config.starts_with(folder));
    }

    /// Sorts the lists and removes duplicates.
    pub(super) fn sort(&mut self) {
        for list in [&mut self.paths, &mut self.links, &mut self.configs] {
            list.sort();
            list.dedup();
        }
    }
}
