//! Whether a plan may be carried out, and what it would change.

use super::change::{Change, ChangeKind};
use super::compare;
use super::library::{self, Head};
use super::outcome::{ChangedPath, UndoError, UndoMode};
use super::plan::Plan;
use super::session::Session;
use super::undo::store_error;
use std::collections::HashSet;
use std::path::PathBuf;

impl Plan {
    /// Refuses what cannot be done completely.
    pub(super) fn check(
        &self,
        session: &Session,
        heads: &[Head],
        selected: &[u64],
        how: UndoMode,
    ) -> Result<(), UndoError> {
        if !self.conflicts.is_empty() && how != UndoMode::Force {
            return Err(self.refuse(session, heads, selected));
        }
        if !self.not_kept.is_empty() {
            let entries = self
                .not_kept
                .iter()
                .filter_map(|at| self.picture.entry(*at));
            let mut paths: Vec<PathBuf> = entries
                .map(|entry| self.picture.original_path(entry))
                .collect();
            paths.sort();
            return Err(UndoError::NotKept { paths });
        }
        Ok(())
    }

    fn refuse(&self, session: &Session, heads: &[Head], selected: &[u64]) -> UndoError {
        let undone = library::undone(heads);
        let first = selected.first().copied().unwrap_or_default();
        let mut calls = Vec::new();
        let mut paths = HashSet::new();
        for head in heads {
            let is_undone = undone
                .get(&head.number)
                .is_some_and(|undone| undone.iter().any(Vec::is_empty));
            if head.number <= first
                || selected.contains(&head.number)
                || !head.header.undoes.is_empty()
                || is_undone
            {
                continue;
            }
            let later = match library::picture(session, head) {
                Ok(Some(later)) => later,
                Ok(None) => continue,
                Err(error) => return store_error(session)(error),
            };
            let touched: Vec<PathBuf> = compare::changes(&later)
                .into_iter()
                .flat_map(|change| match change.kind {
                    ChangeKind::Renamed { from } => vec![change.path, from],
                    _ => vec![change.path],
                })
                .collect();
            let mut is_involved = false;
            for conflict in &self.conflicts {
                if touched.iter().any(|path| conflict.path.starts_with(path)) {
                    paths.insert(conflict.path.clone());
                    is_involved = true;
                }
            }
            if is_involved {
                calls.push(head.header.call_id.clone());
            }
        }
        if calls.is_empty() {
            let mut paths: Vec<ChangedPath> = self
                .conflicts
                .iter()
                .map(|conflict| ChangedPath {
                    path: conflict.path.clone(),
                    what: conflict.what.to_owned(),
                })
                .collect();
            paths.sort_by(|one, other| one.path.cmp(&other.path));
            return UndoError::Changed { paths };
        }
        let mut paths: Vec<PathBuf> = paths.into_iter().collect();
        paths.sort();
        UndoError::LaterCalls { calls, paths }
    }

    /// The changes that restoring makes.
    pub(super) fn preview(&self) -> Vec<Change> {
        let changes = compare::numbered_changes(&self.picture);
        let mut changes: Vec<Change> = changes
            .into_iter()
            .filter(|(at, _)| self.todo.contains(at))
            .map(|(_, change)| inverse(change))
            .collect();
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        changes
    }
}

fn inverse(change: Change) -> Change {
    let (path, kind) = match change.kind {
        ChangeKind::Created => (change.path, ChangeKind::Deleted),
        ChangeKind::Deleted => (change.path, ChangeKind::Created),
        ChangeKind::Renamed { from } => (from, ChangeKind::Renamed { from: change.path }),
        kind => (change.path, kind),
    };
    let entry = change.before.as_ref().or(change.after.as_ref());
    Change {
        path,
        kind,
        entry: entry.map_or(change.entry, |side| side.entry),
        before: change.after,
        after: change.before,
        kept: true,
    }
}
