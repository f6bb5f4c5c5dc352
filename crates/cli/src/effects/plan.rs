//! Choosing calls to undo, and undoing them. Calls of sub-agents are recorded in sessions of
//! their own, so one undo may have several steps.

use super::{Changed, recorded, unreadable};
use crate::exit::Failure;
use haft::effects::{shown_path, stands};
use haft::ops::effects::{
    Calls, Change, ChangeKind, Selection, Session, SetSummary, UndoError, UndoMode, Undone,
};
use haft_config::Settings;
use std::path::{Path, PathBuf};

/// Calls to undo, newest first.
pub(crate) struct Plan {
    steps: Vec<Step>,
    /// Absolute paths to which the undo is limited; empty for all.
    paths: Vec<PathBuf>,
}

/// Calls of one session.
struct Step {
    session: Session,
    calls: Vec<String>,
}

/// Calls that an undo is about, before they are looked up.
pub(crate) enum Wanted<'a> {
    /// Words of the command line: calls and paths.
    Given(&'a [String]),
    /// A whole session; `None` for the newest one.
    Session(Option<&'a str>),
    /// These sets, newest first.
    Sets(Vec<(Session, SetSummary)>),
}

impl Plan {
    /// Looks up the calls. `paths` limit the undo.
    pub(crate) fn new(
        changed: &Changed,
        wanted: Wanted<'_>,
        paths: &[String],
    ) -> Result<Self, Failure> {
        let mut paths: Vec<PathBuf> = paths.iter().map(|path| absolute(changed, path)).collect();
        let mut sets: Vec<(Session, SetSummary)> = match wanted {
            Wanted::Sets(sets) => sets,
            Wanted::Session(id) => {
                let id = match id {
                    Some(given) => changed.session(given)?,
                    None => changed.last_standing()?.map(|(_, set)| set.session),
                };
                let family = id.map(|id| changed.family(&id)).transpose()?;
                standing(&family.unwrap_or_default())?
            }
            Wanted::Given(words) => {
                let mut sets = Vec::new();
                for word in words {
                    match changed.call(word)? {
                        Some(found) => sets.push(found),
                        None => paths.push(absolute(changed, word)),
                    }
                }
                match (sets.is_empty(), paths.is_empty()) {
                    (true, true) => sets.extend(changed.last_standing()?),
                    (true, false) => sets.extend(last_of(changed, &paths)?),
                    _ => {}
                }
                sets
            }
        };
        sets.sort_by(|(_, one), (_, other)| {
            (other.time, other.number).cmp(&(one.time, one.number))
        });
        let mut steps: Vec<Step> = Vec::new();
        for (session, set) in sets {
            match steps.last_mut() {
                Some(step) if step.session.id() == session.id() => step.calls.push(set.call_id),
                _ => steps.push(Step {
                    session,
                    calls: vec![set.call_id],
                }),
            }
        }
        Ok(Self { steps, paths })
    }

    /// Returns what would be done.
    pub(crate) fn preview(&self) -> Result<Vec<(Session, Undone)>, UndoError> {
        let mut all = Vec::new();
        for (number, step) in self.steps.iter().enumerate() {
            match step.undo(&self.paths, UndoMode::DryRun) {
                Ok(undone) => all.push((step.session.clone(), undone)),
                // An earlier step changes what a later one finds.
                Err(UndoError::Changed { .. }) if number > 0 => {}
                Err(error) => return Err(error),
            }
        }
        match all.is_empty() {
            true => Err(UndoError::Nothing),
            false => Ok(all),
        }
    }

    /// Undoes the calls. If a step fails, the steps before it are taken back.
    pub(crate) fn run(&self, how: UndoMode) -> Result<Vec<(Session, Undone)>, UndoError> {
        let mut all: Vec<(Session, Undone)> = Vec::new();
        for step in &self.steps {
            match step.undo(&self.paths, how) {
                Ok(undone) => all.push((step.session.clone(), undone)),
                Err(error) => {
                    for (session, _) in all.iter().rev() {
                        if let Err(error) = session.redo(UndoMode::Careful) {
                            tracing::error!(%error, "a part of the undo could not be taken back");
                        }
                    }
                    return Err(error);
                }
            }
        }
        match all.is_empty() {
            true => Err(UndoError::Nothing),
            false => Ok(all),
        }
    }
}

impl Step {
    fn undo(&self, paths: &[PathBuf], how: UndoMode) -> Result<Undone, UndoError> {
        let selection = Selection {
            calls: Calls::Ids(self.calls.clone()),
            paths: paths.to_vec(),
        };
        self.session.undo(&selection, how)
    }
}

/// Returns the absolute form of a path, without `.` and `..`.
pub(crate) fn absolute(changed: &Changed, path: &str) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in changed.work_dir().join(path).components() {
        match part {
            std::path::Component::ParentDir => _ = whole.pop(),
            std::path::Component::CurDir => {}
            part => whole.push(part),
        }
    }
    whole
}

/// Returns the calls of sessions whose changes still stand.
fn standing(sessions: &[Session]) -> Result<Vec<(Session, SetSummary)>, Failure> {
    let mut all = Vec::new();
    for session in sessions {
        let sets = session.summaries().map_err(unreadable)?;
        let sets = sets.into_iter().filter(stands);
        all.extend(sets.map(|set| (session.clone(), set)));
    }
    Ok(all)
}

/// Returns the last call that changed one of the paths.
fn last_of(changed: &Changed, paths: &[PathBuf]) -> Result<Option<(Session, SetSummary)>, Failure> {
    let is_meant = |path: &Path| paths.iter().any(|wanted| path.starts_with(wanted));
    let about = |change: &Change| {
        is_meant(&change.path)
            || matches!(&change.kind, ChangeKind::Renamed { from } if is_meant(from))
    };
    for session in changed.sessions(false)? {
        let sets = session.sets().map_err(unreadable)?;
        let found = sets
            .into_iter()
            .rev()
            .find(|set| stands(&set.summary) && set.changes.iter().any(about));
        if let Some(set) = found {
            return Ok(Some((session, set.summary)));
        }
    }
    Ok(None)
}

/// Returns the calls of the turn that the last standing call belongs to.
pub(crate) fn turn(
    settings: &Settings,
    changed: &Changed,
) -> Result<Vec<(Session, SetSummary)>, Failure> {
    let Some((session, last)) = changed.last_standing()? else {
        return Ok(Vec::new());
    };
    let (outermost, call) = changed.outermost_call(session.id(), &last.call_id);
    let Some(calls) = calls_of_turn(settings, outermost, call) else {
        return Ok(vec![(session.clone(), last)]);
    };
    let mut sets = standing(&changed.family(outermost)?)?;
    sets.retain(|(session, set)| {
        let (_, call) = changed.outermost_call(session.id(), &set.call_id);
        calls.iter().any(|known| known == call)
    });
    Ok(sets)
}

/// Returns the calls of the answer that made a call; `None` if it is not in the record.
fn calls_of_turn(settings: &Settings, session: &str, call: &str) -> Option<Vec<String>> {
    let sessions = recorded(settings)?.ok()?;
    let loaded = sessions.load(session).ok()?;
    let answers = loaded.messages.iter().filter(|one| one.role == "assistant");
    let mut calls = answers.map(|answer| {
        let body: serde_json::Value = serde_json::from_str(&answer.body).unwrap_or_default();
        let parts = body["parts"].as_array().cloned().unwrap_or_default();
        let calls = parts.iter().filter(|part| part["type"] == "call");
        let ids = calls.filter_map(|part| part["id"].as_str().map(str::to_owned));
        ids.collect::<Vec<String>>()
    });
    calls.find(|ids| ids.iter().any(|id| id == call))
}

/// Describes a change that an undo makes.
pub(crate) fn undo_line(work_dir: &Path, change: &Change) -> String {
    let name = |path: &Path| crate::text::on_one_line(&shown_path(work_dir, path));
    let path = name(&change.path);
    match &change.kind {
        ChangeKind::Created => format!("restore  {path}"),
        ChangeKind::Deleted => format!("remove   {path}"),
        ChangeKind::Modified => format!("restore  {path}"),
        ChangeKind::Renamed { from } => format!("rename   {} → {path}", name(from)),
        ChangeKind::Attributes => format!("restore  {path} (attributes)"),
    }
}

/// Converts the reason why nothing was undone.
pub(crate) fn failure(work_dir: &Path, error: UndoError) -> Failure {
    let name = |path: &PathBuf| crate::text::on_one_line(&shown_path(work_dir, path));
    let list = |paths: &[PathBuf]| paths.iter().map(name).collect::<Vec<_>>().join("\n  ");
    match error {
        UndoError::Changed { paths } => {
            let lines = paths
                .iter()
                .map(|one| format!("{}: {}", name(&one.path), one.what));
            let lines: Vec<String> = lines.collect();
            Failure::failed(format!(
                "nothing was changed, because these are not as the call left them:\n  {}",
                lines.join("\n  ")
            ))
            .hint("--force moves the present versions aside and says where")
        }
        UndoError::NotKept { paths } => Failure::failed(format!(
            "nothing was changed, because the content before was not kept:\n  {}",
            list(&paths)
        ))
        .hint("`haft undo PATH…` takes back the rest"),
        UndoError::LaterCalls { calls, paths } => Failure::failed(format!(
            "nothing was changed, because later calls changed the same files ({}):\n  {}",
            calls.join(", "),
            list(&paths)
        ))
        .hint(format!(
            "undo those too, by adding them: {}",
            calls.join(" ")
        )),
        UndoError::Running(call) => {
            Failure::failed(format!("call {call}, or a process it started, still runs"))
                .hint("wait until it has ended, or stop it")
        }
        error => Failure::failed(error.to_string()),
    }
}
