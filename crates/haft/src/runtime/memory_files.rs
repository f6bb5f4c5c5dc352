//! The files that a session keeps in memory, for saving them with the session.

use super::Runtime;
use crate::{Access, Error};
use haft_ops::backend::{Expect, Kept, Memory};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The files of a session that are in memory ([`super::Backing::State`]), anywhere in its
/// tree. Sessions inside it share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryFiles {
    places: Vec<(PathBuf, Arc<Memory>)>,
}

/// A point in the history of changes to the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryMark(Vec<u64>);

impl MemoryFiles {
    /// Whether no part of the tree is in memory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the files changed since `mark`, by their path in the tree without the
    /// leading `/`, and the new mark.
    #[must_use]
    pub fn since(&self, mark: &MemoryMark) -> (MemoryMark, Vec<Kept>) {
        let mut all = Vec::new();
        let mut now = Vec::new();
        for (number, (at, memory)) in self.places.iter().enumerate() {
            let seen = mark.0.get(number).copied().unwrap_or(0);
            let (change, changed) = memory.changed_since(seen);
            now.push(change);
            all.extend(changed.into_iter().map(|folders| Kept {
                path: at.join(folders.path),
                ..folders
            }));
        }
        (MemoryMark(now), all)
    }

    /// Adds a part of the tree that is in memory.
    pub(super) fn place(&mut self, at: &str, most: u64) -> Arc<Memory> {
        let memory = Arc::new(Memory::bounded(most));
        self.places
            .push((below(Path::new(at)), Arc::clone(&memory)));
        memory
    }

    /// Restores files. Those whose part of the tree no longer exists are skipped.
    pub(super) fn restore(&self, files: Vec<Kept>) {
        for folders in files {
            let path = below(&folders.path);
            let fits = self.places.iter().filter(|(at, _)| path.starts_with(at));
            let place = fits.max_by_key(|(at, _)| at.components().count());
            let Some((at, memory)) = place else { continue };
            if let Ok(path) = path.strip_prefix(at) {
                let path = path.to_owned();
                memory.restore(Kept { path, ..folders });
            }
        }
    }
}

/// Returns the path relative to the root, without `.` and `..`.
fn below(path: &Path) -> PathBuf {
    let parts = path.components();
    parts
        .filter(|part| matches!(part, Component::Normal(_)))
        .collect()
}

impl Runtime {
    /// Returns the files that the session keeps in memory.
    #[must_use]
    pub fn memory_files(&self) -> &MemoryFiles {
        &self.session.memory_files
    }

    /// Creates files in the session's memory, as if a tool had written them: they are
    /// recorded with the session. Paths are paths in the tree.
    ///
    /// # Errors
    /// When a path is not in memory, the file exists, or there is not enough room.
    pub async fn seed_files(&self, files: Vec<(String, Vec<u8>)>) -> Result<(), Error> {
        let session = &self.session;
        for (given, bytes) in files {
            let path =
                session
                    .shared
                    .toolset
                    .paths
                    .resolve(&session.scope, &given, Access::Write)?;
            let parts = session.scope.parts().into_iter();
            let fitting = parts.filter(|(at, _)| path.virtual_path().starts_with(at));
            let part = fitting.max_by_key(|(at, _)| at.components().count());
            let is_in_memory = part.is_some_and(|(at, _)| {
                let at = below(&at);
                session
                    .memory_files
                    .places
                    .iter()
                    .any(|(place, _)| *place == at)
            });
            if !is_in_memory {
                let folders = session.memory_files.places.iter();
                let folders: Vec<_> = folders
                    .map(|(place, _)| format!("/{}/", place.display()))
                    .collect();
                return Err(Error::failed(format!(
                    "{given} is not in a folder that is saved with the session: {}",
                    folders.join(", ")
                )));
            }
            let written = session.backend.write(&path, bytes, Expect::Absent);
            written.await?;
        }
        Ok(())
    }
}
