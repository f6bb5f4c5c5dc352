//! Whether a plan may be carried out, and what it would change.

use super::change::{Change, ChangeKind};
use super::compare;
use super::library::{self, Head};
use super::outcome::{ChangedPath, UndoError, UndoMode};
use super::plan::Plan;
use super::session::Session;
use super::summaries;
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
        let touched: Vec<PathBuf> = self.touched().collect();
        if !touched.is_empty() && how != UndoMode::Force {
            let later = self.later_calls(session, heads, selected, &touched)?;
            if !later.0.is_empty() {
                return Err(UndoError::LaterCalls {
                    calls: later.0,
                    paths: later.1,
                });
            }
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
        let paths: Vec<PathBuf> = self.conflicts.iter().map(|one| one.path.clone()).collect();
        let (calls, paths) = match self.later_calls(session, heads, selected, &paths) {
            Ok(later) => later,
            Err(error) => return error,
        };
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
        UndoError::LaterCalls { calls, paths }
    }

    /// Finds calls that changed some of these paths after the selected ones or while these
    /// ran, and the paths.
    fn later_calls(
        &self,
        session: &Session,
        heads: &[Head],
        selected: &[u64],
        wanted: &[PathBuf],
    ) -> Result<(Vec<String>, Vec<PathBuf>), UndoError> {
        let undone = summaries::undone(heads);
        let begun = heads
            .iter()
            .filter(|head| selected.contains(&head.number))
            .map(|head| head.header.time)
            .min();
        let first = selected.first().copied().unwrap_or_default();
        let mut calls = Vec::new();
        let mut paths = HashSet::new();
        for head in heads {
            let is_undone = undone
                .get(&head.number)
                .is_some_and(|undone| undone.iter().any(Vec::is_empty));
            // It had ended before the first of them began.
            let is_earlier = head.number < first
                && head.finished.as_ref().is_some_and(|finished| {
                    finished
                        .time
                        .zip(begun)
                        .is_none_or(|(ended, begun)| ended < begun)
                });
            if is_earlier
                || selected.contains(&head.number)
                || !head.header.undoes.is_empty()
                || is_undone
            {
                continue;
            }
            let later =
                library::picture(session, head).map_err(|error| store_error(session)(error))?;
            let Some(later) = later else { continue };
            let touched: Vec<PathBuf> = compare::changes(&later)
                .into_iter()
                .flat_map(|change| match change.kind {
                    ChangeKind::Renamed { from } => vec![change.path, from],
                    _ => vec![change.path],
                })
                .collect();
            let involved: Vec<&PathBuf> = wanted
                .iter()
                .filter(|path| touched.iter().any(|touched| path.starts_with(touched)))
                .collect();
            if !involved.is_empty() {
                calls.push(head.header.call_id.clone());
                paths.extend(involved.into_iter().cloned());
            }
        }
        let mut paths: Vec<PathBuf> = paths.into_iter().collect();
        paths.sort();
        Ok((calls, paths))
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
