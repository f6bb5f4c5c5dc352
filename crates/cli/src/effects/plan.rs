//! Choosing calls to undo, and undoing them. Calls of sub-agents are recorded in sessions of
//! their own, so one undo may have several steps.

use super::words::call_name;
use super::{Changed, changed_paths, is_within, recorded, unreadable};
use crate::exit::Failure;
use crate::text::on_one_line;
use haft::effects::{UNDO_TOOLS, printed_path, stands};
use haft::ops::effects::{
    Calls, Change, Selection, Session, SetState, SetSummary, UndoError, UndoMode, Undone,
};
use haft::ops::text::decode::visible;
use haft_config::Settings;
use std::path::{Path, PathBuf};

/// Calls to undo, newest first.
pub(crate) struct Plan {
    steps: Vec<Step>,
    /// Selected calls of which something was not recorded.
    unrecorded: Vec<SetSummary>,
}

/// Calls of one session.
struct Step {
    session: Session,
    calls: Vec<String>,
    /// Absolute paths to which the undo is limited; empty for all.
    paths: Vec<PathBuf>,
}

/// Result of an undo that did nothing yet.
#[derive(Default)]
pub(crate) struct Preview {
    pub(crate) undone: Vec<(Session, Undone)>,
    /// Calls whose undo depends on the steps before, so that its files are not known yet.
    pub(crate) after: Vec<String>,
    /// Calls of which something was not recorded and will stay.
    pub(crate) unrecorded: Vec<SetSummary>,
}

/// Calls that an undo is about, before they are looked up.
pub(crate) enum Wanted<'a> {
    /// Words of the command line: calls and paths.
    Given(&'a [String]),
    /// A whole session; `None` for the newest one.
    Session(Option<&'a str>),
    /// Sets that are known already.
    Sets(Vec<(Session, SetSummary)>),
}

/// A set to undo, and the paths to which that is limited.
type Selected = (Session, SetSummary, Vec<PathBuf>);

impl Plan {
    /// Looks up the calls. `paths` limit the undo.
    pub(crate) fn new(
        changed: &Changed,
        wanted: Wanted<'_>,
        paths: &[String],
    ) -> Result<Self, Failure> {
        let paths = paths.iter().map(|path| changed.path(path));
        let paths: Vec<PathBuf> = paths.collect::<Result<_, _>>()?;
        let limited = |sets: Vec<(Session, SetSummary)>| -> Vec<Selected> {
            let sets = sets.into_iter();
            sets.map(|(session, set)| (session, set, paths.clone()))
                .collect()
        };
        let sets = match wanted {
            Wanted::Sets(sets) => limited(sets),
            Wanted::Session(id) => {
                let id = match id {
                    Some(given) => changed.session(given)?,
                    None => changed.last_call()?.map(|(_, set)| set.session),
                };
                let family = id.map(|id| changed.family(&id)).transpose()?;
                limited(calls_of(&family.unwrap_or_default())?)
            }
            Wanted::Given([]) => limited(changed.last_call()?.into_iter().collect()),
            Wanted::Given(words) => given(changed, words)?,
        };
        Self::of(sets)
    }

    /// Puts the sets in order, and those of one session together.
    fn of(mut sets: Vec<Selected>) -> Result<Self, Failure> {
        sets.sort_by(|(_, one, _), (_, other, _)| {
            (other.time, other.number).cmp(&(one.time, one.number))
        });
        let is_incomplete = |set: &&Selected| !set.1.counts.complete;
        let unrecorded = sets.iter().filter(is_incomplete);
        let unrecorded: Vec<SetSummary> = unrecorded.map(|(_, set, _)| set.clone()).collect();
        // The counts of a call that still runs are not known yet.
        sets.retain(|(_, set, _)| set.counts.total() > 0 || set.state == SetState::Running);
        if let (true, Some(set)) = (sets.is_empty(), unrecorded.first()) {
            return Err(Failure::failed(format!(
                "nothing was changed, because nothing that {} did was recorded: {}",
                call_name(&set.call_id),
                haft::effects::why(&set.counts)
            ))
            .hint("`haft undo CALL` undoes an earlier call; `haft changes` lists them"));
        }
        check_folders(&sets)?;
        let mut steps: Vec<Step> = Vec::new();
        for (session, set, paths) in sets {
            match steps.last_mut() {
                Some(step) if step.session.id() == session.id() && step.paths == paths => {
                    step.calls.push(set.call_id);
                }
                _ => steps.push(Step {
                    session,
                    calls: vec![set.call_id],
                    paths,
                }),
            }
        }
        Ok(Self { steps, unrecorded })
    }

    /// Returns what would be done.
    pub(crate) fn preview(&self) -> Result<Preview, UndoError> {
        let mut preview = Preview {
            unrecorded: self.unrecorded.clone(),
            ..Preview::default()
        };
        for step in &self.steps {
            match step.undo(UndoMode::DryRun) {
                // Its paths were restored before.
                Ok(undone) if undone.changes.is_empty() => {}
                Ok(undone) => preview.undone.push((step.session.clone(), undone)),
                // An earlier step changes what a later one finds.
                Err(UndoError::Changed { .. } | UndoError::LaterCalls { .. })
                    if !preview.undone.is_empty() =>
                {
                    preview.after.extend(step.calls.iter().cloned());
                }
                Err(error) => return Err(error),
            }
        }
        match preview.undone.is_empty() {
            true => Err(UndoError::Nothing),
            false => Ok(preview),
        }
    }

    /// Undoes the calls. If a step fails, the steps before it are taken back.
    pub(crate) fn run(&self, how: UndoMode) -> Result<Vec<(Session, Undone)>, UndoError> {
        let group = match self.is_single_step() {
            true => String::new(),
            false => group_name(),
        };
        let mut all: Vec<(Session, Undone)> = Vec::new();
        for step in &self.steps {
            match step.undo_as(how, &group) {
                // Its paths were restored before.
                Ok(undone) if undone.changes.is_empty() && undone.aside.is_empty() => {}
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

    /// Whether it is one undo of one session.
    pub(crate) fn is_single_step(&self) -> bool {
        self.steps.len() < 2
    }

    /// Whether the undo is limited to paths.
    pub(crate) fn is_limited(&self) -> bool {
        self.steps.iter().all(|step| !step.paths.is_empty())
    }

    /// Returns the selected calls of which something was not recorded.
    pub(crate) fn unrecorded(&self) -> &[SetSummary] {
        &self.unrecorded
    }
}

impl Step {
    fn undo(&self, how: UndoMode) -> Result<Undone, UndoError> {
        self.undo_as(how, "")
    }

    fn undo_as(&self, how: UndoMode, group: &str) -> Result<Undone, UndoError> {
        let selection = Selection {
            calls: Calls::Ids(self.calls.clone()),
            paths: self.paths.clone(),
        };
        self.session.undo_as_part(&selection, how, group)
    }
}

/// Name that tells the steps of one undo from those of others.
fn group_name() -> String {
    let now = std::time::SystemTime::now();
    let since = now
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    format!("{}-{}", std::process::id(), since.as_nanos())
}

/// Finds what a redo takes back: the last undo or, if that had several steps, all of them, the
/// last one first.
pub(crate) fn last_undo(changed: &Changed) -> Result<Vec<Session>, Failure> {
    let is_open = |set: &SetSummary| set.tool == "undo" && set.state != SetState::Undone;
    let Some((session, last)) = changed.last(is_open)? else {
        return Ok(Vec::new());
    };
    if last.group.is_empty() {
        return Ok(vec![session]);
    }
    let mut parts: Vec<(SetSummary, Session)> = Vec::new();
    for session in changed.sessions(true)? {
        let sets = session.summaries().map_err(unreadable)?;
        let parts_here = sets.into_iter().filter(is_open);
        let parts_here = parts_here.filter(|set| set.group == last.group);
        parts.extend(parts_here.map(|set| (set, session.clone())));
    }
    parts.sort_by_key(|(set, _)| std::cmp::Reverse(set.time));
    Ok(parts.into_iter().map(|(_, session)| session).collect())
}

/// Takes undos back, one after another. If one cannot be, those before it are undone again.
pub(crate) fn redo(
    sessions: &[Session],
    how: UndoMode,
) -> Result<Vec<(Session, Undone)>, UndoError> {
    let mut all: Vec<(Session, Undone)> = Vec::new();
    for session in sessions {
        match session.redo(how) {
            Ok(undone) => all.push((session.clone(), undone)),
            // An earlier step changes what this one finds.
            Err(UndoError::Changed { .. }) if how == UndoMode::DryRun && !all.is_empty() => {}
            Err(error) => {
                for (session, undone) in all.iter().rev().filter(|_| how != UndoMode::DryRun) {
                    let again = Selection {
                        calls: Calls::Ids(vec![undone.call_id.clone()]),
                        paths: Vec::new(),
                    };
                    if let Err(error) = session.undo(&again, UndoMode::Careful) {
                        tracing::error!(%error, "a part of the redo could not be taken back");
                    }
                }
                return Err(error);
            }
        }
    }
    Ok(all)
}

/// Refuses to undo in a work folder that is gone, for example because the user moved it,
/// unless one of the calls removed or moved it.
fn check_folders(sets: &[Selected]) -> Result<(), Failure> {
    for (session, _, _) in sets {
        let folder = session.work_dir();
        if folder.is_dir() {
            continue;
        }
        let own = sets
            .iter()
            .filter(|(other, _, _)| other.id() == session.id());
        let own: Vec<_> = own
            .map(|(session, set, _)| (session.clone(), set.clone()))
            .collect();
        let changes = Changed::sets_of(&own)?.into_iter();
        let mut changes = changes.flat_map(|(_, set)| set.changes);
        let is_it = |change: Change| changed_paths(&change).any(|path| folder.starts_with(path));
        if !changes.any(is_it) {
            let folder = printed_path(Path::new(""), folder);
            return Err(Failure::failed(format!(
                "nothing was changed, because the work folder is gone: {folder}"
            ))
            .hint("if you moved it, move it back first"));
        }
    }
    Ok(())
}

/// Looks up words of the command line: calls, then paths. Without calls, each path stands
/// for what the last call did to it.
fn given(changed: &Changed, words: &[String]) -> Result<Vec<Selected>, Failure> {
    let (mut calls, mut paths) = (Vec::new(), Vec::new());
    for word in words {
        let found = changed.call(word)?;
        if found.is_empty() {
            paths.push((word, changed.path(word)?));
            continue;
        }
        // The undos of a sub-agent's calls are in its session too.
        let is_open = |(_, set): &&(Session, SetSummary)| {
            set.state != SetState::Undone
                && (set.call_id == *word || !UNDO_TOOLS.contains(&set.tool.as_str()))
        };
        let open: Vec<_> = found.iter().filter(is_open).cloned().collect();
        if open.is_empty() {
            return Err(
                Failure::failed(format!("already undone: {}", call_name(word)))
                    .hint("`haft redo` takes the last undo back"),
            );
        }
        calls.extend(open);
    }
    if !calls.is_empty() {
        let paths: Vec<PathBuf> = paths.into_iter().map(|(_, path)| path).collect();
        let calls = calls.into_iter();
        return Ok(calls
            .map(|(session, set)| (session, set, paths.clone()))
            .collect());
    }
    let mut selected = Vec::new();
    for (word, path) in paths {
        let name = on_one_line(&visible(word));
        match last_of(changed, &path)? {
            Some((session, set)) => selected.push((session, set, vec![path])),
            None if path.symlink_metadata().is_ok() => {
                return Err(Failure::failed(format!(
                    "nothing to undo: no call whose changes stand has changed {name}"
                )));
            }
            None => {
                return Err(
                    Failure::usage(format!("no call or changed file: {name}")).hint(
                        "`haft changes --stat` lists the calls and files of the newest session",
                    ),
                );
            }
        }
    }
    Ok(selected)
}

/// Returns the calls of sessions that an undo can be about. All of them must be kept.
fn calls_of(sessions: &[Session]) -> Result<Vec<(Session, SetSummary)>, Failure> {
    let mut all = Vec::new();
    let mut gone = 0;
    for session in sessions {
        let sets = session.summaries().map_err(unreadable)?;
        gone += sets
            .iter()
            .filter(|set| set.state == SetState::NoLongerKept)
            .count();
        let sets = sets.into_iter().filter(stands);
        all.extend(sets.map(|set| (session.clone(), set)));
    }
    if gone > 0 {
        let calls = if gone == 1 { "call is" } else { "calls are" };
        return Err(Failure::failed(format!(
            "nothing was changed, because {gone} {calls} no longer kept"
        ))
        .hint(
            "`haft undo CALL…` takes back the others, which `haft changes` lists; \
             `effects.max_session` limits what is kept",
        ));
    }
    Ok(all)
}

/// Returns the last call that changed something at or below a path and stands.
fn last_of(changed: &Changed, path: &PathBuf) -> Result<Option<(Session, SetSummary)>, Failure> {
    let paths = std::slice::from_ref(path);
    let sets = Changed::sets(&changed.sessions(false)?)?;
    for (session, set) in sets.into_iter().rev() {
        let is_about = set.changes.iter().any(|change| is_within(change, paths));
        if !is_about || !stands(&set.summary) {
            continue;
        }
        let step = Step {
            session,
            calls: vec![set.summary.call_id.clone()],
            paths: paths.to_vec(),
        };
        // Of a set that stands, some paths may have been restored before.
        let is_restored = step
            .undo(UndoMode::DryRun)
            .is_ok_and(|undone| undone.changes.is_empty());
        if !is_restored {
            return Ok(Some((step.session, set.summary)));
        }
    }
    Ok(None)
}

/// Returns the calls of the turn that the last call belongs to.
pub(crate) fn turn(
    settings: &Settings,
    changed: &Changed,
) -> Result<Vec<(Session, SetSummary)>, Failure> {
    let Some((session, last)) = changed.last_call()? else {
        return Ok(Vec::new());
    };
    let (outermost, call) = changed.outermost_call(session.id(), &last.call_id);
    let Some(calls) = calls_of_turn(settings, outermost, call) else {
        return Ok(vec![(session.clone(), last)]);
    };
    let mut sets = calls_of(&changed.family(outermost)?)?;
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
