//! Passes what one process knew of the repositories of a root to another.

use super::{Registry, Since};
use crate::git::shape::is_whole;
use crate::git::{CONTROL, kind};
use crate::scope::shut::shut_above;
use rustix::fs::FileType;
use std::path::{Path, PathBuf};

/// Repositories found below a root, as stored between sessions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RegistryRecord {
    /// Repositories that are or were complete, and whether a command created them.
    pub(crate) gits: Vec<(PathBuf, bool)>,
    /// Each `.git` that is a file or a link.
    pub(crate) pointers: Vec<PathBuf>,
    /// Whether the whole root was searched.
    pub(crate) is_complete: bool,
}

impl Registry {
    /// Returns what is known of the repositories, for a later process.
    pub(crate) fn record(&self) -> RegistryRecord {
        let known = self.known();
        let gits = known.gits.iter().filter(|(_, git)| git.was_whole);
        RegistryRecord {
            gits: gits
                .map(|(path, git)| (path.clone(), git.since == Since::Command))
                .collect(),
            pointers: known.pointers.keys().cloned().collect(),
            is_complete: known.is_walked && !known.is_cut_off,
        }
    }

    /// Returns the guarded repositories that were complete in this session and no longer
    /// are, except those in which git would find nothing to obey.
    pub(crate) fn incomplete(&self) -> Vec<PathBuf> {
        let known = self.known();
        let gits = known.gits.iter();
        gits.filter(|(_, git)| git.was_whole && git.since != Since::Command)
            .map(|(path, _)| path.clone())
            .filter(|path| is_remnant(path))
            .collect()
    }

    /// Takes over what another process knew. Returns which repositories are new since then
    /// and which are no longer complete, and guards the latter as before.
    pub(crate) fn recall(&self, earlier: &RegistryRecord) -> (Vec<PathBuf>, Vec<PathBuf>) {
        self.look(Since::Start);
        let mut known = self.known();
        let mut new = Vec::new();
        if earlier.is_complete {
            let gits = known.gits.iter().filter(|(_, git)| git.is_whole);
            let gits = gits.map(|(path, _)| path);
            let gits = gits.filter(|path| !earlier.gits.iter().any(|(git, _)| git == *path));
            let pointers = known.pointers.keys();
            let pointers = pointers.filter(|path| !earlier.pointers.contains(path));
            new.extend(gits.chain(pointers).cloned());
            known.settle(&mut new);
        }
        let mut lost = Vec::new();
        let guarded = earlier.gits.iter().filter(|(_, is_made)| !is_made);
        for (path, _) in guarded.filter(|(path, _)| path.starts_with(&self.root)) {
            let is_remnant = is_remnant(path);
            // In a folder that a command of this user can make searchable again.
            let is_out_of_reach = shut_above(path).is_some();
            if is_remnant || is_out_of_reach {
                known.remember(path.clone(), None, Since::Start);
                if let Some(git) = known.gits.get_mut(path) {
                    git.was_whole = true;
                }
                known.guarded = None;
            }
            if is_remnant {
                lost.push(path.clone());
            }
        }
        (new, lost)
    }
}

/// Whether this was a repository, and contains something that git would obey once it is one
/// again.
fn is_remnant(path: &Path) -> bool {
    let mut names = CONTROL.iter();
    kind(path) == Some(FileType::Directory)
        && !is_whole(path)
        && names.any(|name| kind(&path.join(name)).is_some())
}
