//! What one process knew of the repositories of a root, for another.

use super::{Register, Since};
use crate::git::shape::is_whole;
use crate::git::{CONTROL, kind};
use rustix::fs::FileType;
use std::path::{Path, PathBuf};

/// What is known of the repositories of a root.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Remembered {
    /// Those that are or were whole, and whether a command made them.
    pub(crate) gits: Vec<(PathBuf, bool)>,
    /// Each `.git` that is a file or a link.
    pub(crate) pointers: Vec<PathBuf>,
    /// Whether all of the root was searched for them.
    pub(crate) is_complete: bool,
}

impl Register {
    /// What is known of the repositories, for whoever looks when this process is gone.
    pub(crate) fn remembered(&self) -> Remembered {
        let known = self.known();
        let gits = known.gits.iter().filter(|(_, git)| git.was_whole);
        Remembered {
            gits: gits
                .map(|(path, git)| (path.clone(), git.since == Since::Command))
                .collect(),
            pointers: known.pointers.keys().cloned().collect(),
            is_complete: known.is_walked && !known.is_cut_off,
        }
    }

    /// The guarded repositories that were whole in this session and no longer are, but for
    /// those in which git would find nothing to obey.
    pub(crate) fn incomplete(&self) -> Vec<PathBuf> {
        let known = self.known();
        let gits = known.gits.iter();
        gits.filter(|(_, git)| git.was_whole && git.since != Since::Command)
            .map(|(path, _)| path.clone())
            .filter(|path| is_remnant(path))
            .collect()
    }

    /// Takes over what another process knew: says which repositories are new since then
    /// and which are no longer whole, and guards those as before.
    pub(crate) fn recall(&self, earlier: &Remembered) -> (Vec<PathBuf>, Vec<PathBuf>) {
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
            known.settle(Since::Between, &mut new);
        }
        let mut lost = Vec::new();
        let guarded = earlier.gits.iter().filter(|(_, is_made)| !is_made);
        for (path, _) in guarded.filter(|(path, _)| path.starts_with(&self.root)) {
            if is_remnant(path) {
                known.remember(path.clone(), None, Since::Start);
                if let Some(git) = known.gits.get_mut(path) {
                    git.was_whole = true;
                }
                known.guarded = None;
                lost.push(path.clone());
            }
        }
        (new, lost)
    }
}

/// Whether this was a repository, and would obey somebody once it is one again.
fn is_remnant(path: &Path) -> bool {
    let mut names = CONTROL.iter();
    kind(path) == Some(FileType::Directory)
        && !is_whole(path)
        && names.any(|name| kind(&path.join(name)).is_some())
}
