//! The files that a session holds in memory, for whoever keeps them with it.

use super::Runtime;
use crate::{Access, Error};
use haft_ops::backend::{Expect, Kept, Memory};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The files of a session that are in memory ([`super::Backing::State`]), wherever in its
/// tree that is. Sessions within it hold the same ones.
#[derive(Debug, Clone, Default)]
pub struct HeldFiles {
    places: Vec<(PathBuf, Arc<Memory>)>,
}

/// How far somebody has followed their changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mark(Vec<u64>);

impl HeldFiles {
    /// Whether none are in memory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// What changed since, by its path in the tree without a `/` at its beginning.
    #[must_use]
    pub fn since(&self, mark: &Mark) -> (Mark, Vec<Kept>) {
        let mut all = Vec::new();
        let mut now = Vec::new();
        for (number, (at, memory)) in self.places.iter().enumerate() {
            let seen = mark.0.get(number).copied().unwrap_or(0);
            let (change, changed) = memory.changed_since(seen);
            now.push(change);
            all.extend(changed.into_iter().map(|kept| Kept {
                path: at.join(kept.path),
                ..kept
            }));
        }
        (Mark(now), all)
    }

    /// A new place for files below a path of the tree.
    pub(super) fn place(&mut self, at: &str, most: u64) -> Arc<Memory> {
        let memory = Arc::new(Memory::bounded(most));
        self.places
            .push((below(Path::new(at)), Arc::clone(&memory)));
        memory
    }

    /// Puts files back. Those that have no place any more are left out.
    pub(super) fn restore(&self, files: Vec<Kept>) {
        for kept in files {
            let path = below(&kept.path);
            let fits = self.places.iter().filter(|(at, _)| path.starts_with(at));
            let place = fits.max_by_key(|(at, _)| at.components().count());
            let Some((at, memory)) = place else { continue };
            if let Ok(path) = path.strip_prefix(at) {
                let path = path.to_owned();
                memory.restore(Kept { path, ..kept });
            }
        }
    }
}

/// The plain parts of a path, from the root.
fn below(path: &Path) -> PathBuf {
    let parts = path.components();
    parts
        .filter(|part| matches!(part, Component::Normal(_)))
        .collect()
}

impl Runtime {
    /// The files that the session holds in memory.
    #[must_use]
    pub fn held_files(&self) -> &HeldFiles {
        &self.session.held
    }

    /// Writes new files into the memory of the session, as if a tool had: they are recorded
    /// with the session. A path is one of the tree.
    ///
    /// # Errors
    /// When a path does not lead into the memory, something is there already, or there is
    /// no room for it.
    pub async fn seed_files(&self, files: Vec<(String, Vec<u8>)>) -> Result<(), Error> {
        let session = &self.session;
        for (given, bytes) in files {
            let path = session
                .paths
                .resolve(&session.scope, &given, Access::Write)?;
            let parts = session.scope.parts().into_iter();
            let fitting = parts.filter(|(at, _)| path.place().starts_with(at));
            let part = fitting.max_by_key(|(at, _)| at.components().count());
            let is_held = part.is_some_and(|(at, _)| {
                let at = below(&at);
                session.held.places.iter().any(|(place, _)| *place == at)
            });
            if !is_held {
                let kept = session.held.places.iter();
                let kept: Vec<_> = kept
                    .map(|(place, _)| format!("/{}/", place.display()))
                    .collect();
                return Err(Error::failed(format!(
                    "{given} is not below a folder that the session keeps: {}",
                    kept.join(", ")
                )));
            }
            let written = session.backend.write(&path, bytes, Expect::Absent);
            written.await?;
        }
        Ok(())
    }
}
