//! Shows, undoes and redoes the changes of a chat's last run.

use crate::effects::plan::{Plan, Wanted, absolute, failure, undo_line};
use crate::effects::{Changed, unreadable};
use crate::exit::Failure;
use haft::effects::{self, Diff, stands};
use haft::ops::effects::{ChangeSet, EntryKind, Session, SetState, UndoMode, Undone};
use std::collections::BTreeSet;
use std::path::PathBuf;
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
        let sets = self.sets().ok()?;
        let mut paths: BTreeSet<PathBuf> = BTreeSet::new();
        let (mut added, mut removed) = (0, 0);
        for (session, set) in &sets {
            if !stands(&set.summary) && set.summary.state != SetState::Running {
                continue;
            }
            for change in &set.changes {
                if change.entry != EntryKind::Dir {
                    paths.insert(change.path.clone());
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
        let count = paths.len();
        let plural = if count == 1 { "" } else { "s" };
        (count > 0).then(|| {
            format!("{count} file{plural} changed, +{added} −{removed} · /changes · /undo")
        })
    }

    /// Returns a diff: of the last run, or of what the words name.
    pub(super) fn shown(&self, words: &str) -> Result<String, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let mut sets = self.sets().map_err(message)?;
        let mut paths: Vec<PathBuf> = Vec::new();
        for word in &words {
            match self.changed.call(word).map_err(message)? {
                Some((session, wanted)) => {
                    let all = session.sets().map_err(unreadable).map_err(message)?;
                    let found = all
                        .into_iter()
                        .find(|set| set.summary.number == wanted.number);
                    sets = found.map(|set| (session, set)).into_iter().collect();
                }
                None => paths.push(absolute(&self.changed, word)),
            }
        }
        let mut out = String::new();
        for (session, set) in &sets {
            let changes = effects::in_order(&set.changes).into_iter();
            let changes: Vec<_> = changes
                .filter(|change| {
                    paths.is_empty() || paths.iter().any(|path| change.path.starts_with(path))
                })
                .collect();
            if changes.is_empty() {
                continue;
            }
            let counts = effects::counts_words(&set.summary.counts);
            out.push_str(&format!(
                "{} {}: {counts}\n",
                set.summary.call_id, set.summary.tool
            ));
            for change in changes {
                let line = effects::change_line(session.work_dir(), change);
                out.push_str(&format!("  {line}\n"));
                match effects::diff(session, &set.summary, change) {
                    Diff::Lines { text, .. } => {
                        let rows = text.lines().map(|row| format!("    {row}\n"));
                        out.extend(rows);
                    }
                    Diff::Opaque(why) => out.push_str(&format!("    {why}\n")),
                    Diff::Same => {}
                }
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
                // The run before: a second /undo goes further back.
                true => Wanted::Sets(self.last_of_session().map_err(message)?),
                false => Wanted::Sets(sets),
            }
        } else {
            Wanted::Given(&words)
        };
        let plan = Plan::new(&self.changed, wanted, &[]).map_err(message)?;
        let undone = match how {
            UndoMode::DryRun => plan.preview(),
            how => plan.run(how),
        };
        let undone = undone.map_err(|error| message(failure(self.changed.work_dir(), error)))?;
        Ok(self.described("undid", &undone, how))
    }

    /// Returns the last call of this session whose changes stand.
    fn last_of_session(&self) -> Result<Vec<(Session, haft::ops::effects::SetSummary)>, Failure> {
        let mut sets = Changed::sets(&self.changed.family(&self.session)?)?;
        sets.retain(|(_, set)| stands(&set.summary));
        let last = sets.pop().map(|(session, set)| (session, set.summary));
        Ok(last.into_iter().collect())
    }

    /// Takes the last undo back, or returns what that would do.
    pub(super) fn redo(&self, how: UndoMode) -> Result<String, String> {
        let last = self
            .changed
            .last(|set| set.tool == "undo" && set.state != SetState::Undone);
        let (session, _) = last.map_err(message)?.ok_or("nothing to redo")?;
        let undone = session
            .redo(how)
            .map_err(|error| message(failure(self.changed.work_dir(), error)))?;
        Ok(self.described("redid", &[(session, undone)], how))
    }

    fn described(&self, did: &str, undone: &[(Session, Undone)], how: UndoMode) -> String {
        if how != UndoMode::DryRun {
            let lines = undone.iter().map(|(_, one)| {
                let files = effects::files(&one.changes);
                format!("{did} {}: {files}", one.calls.join(", "))
            });
            return lines.collect::<Vec<_>>().join("\n");
        }
        let changes: Vec<_> = undone.iter().flat_map(|(_, one)| &one.changes).collect();
        let lines = changes.iter().take(MAX_LINES);
        let mut lines: Vec<String> = lines
            .map(|change| undo_line(self.changed.work_dir(), change))
            .collect();
        if changes.len() > MAX_LINES {
            lines.push(format!("… and {} more", changes.len() - MAX_LINES));
        }
        lines.join("\n")
    }
}
