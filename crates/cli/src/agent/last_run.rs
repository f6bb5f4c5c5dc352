//! Shows, undoes and redoes the changes of a chat's last run.

use crate::commands::changes::as_text;
use crate::effects::plan::{Plan, Preview, Wanted, last_undo, redo};
use crate::effects::words::{done_lines, failure, preview_lines};
use crate::effects::{Changed, is_within};
use crate::exit::Failure;
use crate::output::Paint;
use haft::effects::{self, Diff, stands};
use haft::ops::effects::{
    ChangeKind, ChangeSet, EntryKind, Session, SetSummary, UndoError, UndoMode,
};
use std::collections::BTreeSet;
use std::time::SystemTime;

/// Maximum number of lines of a preview.
const MAX_LINES: usize = 30;

/// Access to what the last run changed.
pub(super) struct LastRun {
    pub(super) changed: Changed,
    /// Session of the chat.
    pub(super) session: String,
    pub(super) started: Option<SystemTime>,
}

#[expect(clippy::needless_pass_by_value, reason = "passed to map_err")]
fn message(failure: Failure) -> String {
    let hints = failure.hints.iter().map(|hint| format!("\n{hint}"));
    format!("{}{}", failure.message, hints.collect::<String>())
}

impl LastRun {
    /// Returns the sets of the last run, oldest first; of the whole session before the first
    /// run.
    fn sets(&self) -> Result<Vec<(Session, ChangeSet)>, Failure> {
        let mut sets = Changed::sets(&self.changed.family(&self.session)?)?;
        sets.retain(|(_, set)| {
            let is_own = !effects::UNDO_TOOLS.contains(&set.summary.tool.as_str());
            is_own
                && self
                    .started
                    .is_none_or(|started| set.summary.time >= started)
        });
        Ok(sets)
    }

    /// Returns one line: `3 files changed, +12 −4 · /changes · /undo`.
    pub(super) fn summary(&self) -> Option<String> {
        let mut sets = self.sets().ok()?;
        sets.retain(|(_, set)| stands(&set.summary));
        summary(&sets)
    }

    /// Returns a diff: of the last run, or of what the words name.
    pub(super) fn shown(&self, words: &str) -> Result<String, String> {
        let (mut calls, mut paths) = (Vec::new(), Vec::new());
        for word in words.split_whitespace() {
            let found = self.changed.call(word).map_err(message)?;
            match found.is_empty() {
                true => paths.push(self.changed.path(word).map_err(message)?),
                false => calls.extend(found),
            }
        }
        let sets = match calls.is_empty() {
            true => self.sets(),
            false => Changed::sets_of(&calls),
        };
        let mut out = String::new();
        for (session, mut set) in sets.map_err(message)? {
            set.changes.retain(|change| is_within(change, &paths));
            if !set.changes.is_empty() || paths.is_empty() {
                out.push_str(&as_text(&session, &set, Paint::never(), false));
            }
        }
        match out.is_empty() {
            true => Err("nothing changed".to_owned()),
            false => Ok(out),
        }
    }

    /// Undoes the last run, or what the words name; or returns what that would do.
    pub(super) fn undo(&self, words: &str, how: UndoMode) -> Result<String, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let wanted = if words.is_empty() {
            let sets = self.sets().map_err(message)?;
            let sets = sets.into_iter().filter(|(_, set)| stands(&set.summary));
            let sets: Vec<_> = sets.map(|(session, set)| (session, set.summary)).collect();
            match sets.is_empty() {
                // A second /undo goes further back, call by call.
                true => Wanted::Sets(self.last_of_session().map_err(message)?),
                false => Wanted::Sets(sets),
            }
        } else {
            Wanted::Given(&words)
        };
        let work_dir = self.changed.work_dir();
        let plan = Plan::new(&self.changed, wanted, &[]).map_err(message)?;
        let lines = match how {
            UndoMode::DryRun => plan
                .preview()
                .map(|preview| preview_lines(work_dir, "undo", &preview, MAX_LINES)),
            how => plan
                .run(how)
                .map(|undone| done_lines(work_dir, "undid", &undone, plan.unrecorded())),
        };
        let lines = lines.map_err(|error| self.failed(error))?;
        Ok(lines.join("\n"))
    }

    /// Undoes everything since `started`, or returns what that would do. Returns `None` if
    /// there is nothing to undo.
    pub(super) fn undo_all(&self, how: UndoMode) -> Result<Option<String>, String> {
        let sets = self.sets().map_err(message)?;
        match sets.iter().any(|(_, set)| stands(&set.summary)) {
            true => self.undo("", how).map(Some),
            false => Ok(None),
        }
    }

    /// Returns the last call of this session whose changes stand.
    fn last_of_session(&self) -> Result<Vec<(Session, SetSummary)>, Failure> {
        let mut sets = Changed::sets(&self.changed.family(&self.session)?)?;
        sets.retain(|(_, set)| stands(&set.summary));
        let last = sets.pop().map(|(session, set)| (session, set.summary));
        Ok(last.into_iter().collect())
    }

    /// Takes the last undo back, or returns what that would do.
    pub(super) fn redo(&self, how: UndoMode) -> Result<String, String> {
        let parts = last_undo(&self.changed).map_err(message)?;
        if parts.is_empty() {
            return Err("nothing to redo".to_owned());
        }
        let undone = redo(&parts, how).map_err(|error| self.failed(error))?;
        let work_dir = self.changed.work_dir();
        let lines = match how {
            UndoMode::DryRun => {
                let preview = Preview {
                    undone,
                    ..Preview::default()
                };
                preview_lines(work_dir, "redo", &preview, MAX_LINES)
            }
            _ => done_lines(work_dir, "redid", &undone, &[]),
        };
        Ok(lines.join("\n"))
    }

    fn failed(&self, error: UndoError) -> String {
        match error {
            UndoError::Nothing => "nothing to undo".to_owned(),
            error => message(failure(self.changed.work_dir(), error)),
        }
    }
}

/// Counts files and lines: `3 files changed, 1 deleted, +12 −4 · /changes · /undo`.
fn summary(sets: &[(Session, ChangeSet)]) -> Option<String> {
    let (mut files, mut folders) = (BTreeSet::new(), BTreeSet::new());
    let mut deleted = BTreeSet::new();
    let (mut added, mut removed) = (0, 0);
    for (session, set) in sets {
        for change in &set.changes {
            match change.entry {
                EntryKind::Dir => folders.insert(&change.path),
                _ => files.insert(&change.path),
            };
            match change.kind {
                ChangeKind::Deleted if change.entry != EntryKind::Dir => {
                    deleted.insert(&change.path);
                }
                _ => _ = deleted.remove(&change.path),
            }
            if let Diff::Lines {
                added: more,
                removed: fewer,
                ..
            } = effects::diff(session, &set.summary, change)
            {
                added += more;
                removed += fewer;
            }
        }
    }
    let counted = |count: usize, noun: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {noun}{plural} changed")
    };
    let mut words = match (files.len(), folders.len()) {
        (0, 0) => Vec::new(),
        (0, folders) => vec![counted(folders, "folder")],
        (files, _) => vec![counted(files, "file")],
    };
    if !deleted.is_empty() {
        words.push(format!("{} deleted", deleted.len()));
    }
    if !files.is_empty() {
        words.push(format!("+{added} −{removed}"));
    }
    let mut gaps = sets
        .iter()
        .filter_map(|(_, set)| effects::gap(&set.summary.counts));
    match (words.is_empty(), gaps.next()) {
        (true, None) => None,
        (true, Some(gap)) => Some(gap),
        (false, gap) => {
            let gap = gap.map(|gap| format!(" · {gap}")).unwrap_or_default();
            Some(format!("{} · /changes · /undo{gap}", words.join(", ")))
        }
    }
}
