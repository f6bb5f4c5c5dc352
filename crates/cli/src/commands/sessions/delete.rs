//! Deletes sessions with their outputs and sub-agents.

use super::{failure, outputs};
use crate::agent::plan::PlanFile;
use crate::ask;
use crate::exit::{Exit, Failure};
use crate::output;
use haft::ops::effects::{Clean, Store};
use haft::ops::text::decode::visible;
use haft_store::sessions::{Error, Sessions};
use std::path::Path;

/// Deletes the given sessions. If one of them is unknown, none is deleted.
pub(super) fn run(
    sessions: &Sessions,
    store: Option<&Store>,
    state: &Path,
    given: &[String],
    yes: bool,
) -> Result<Exit, Failure> {
    let mut found: Vec<String> = Vec::new();
    for given in given {
        let id = sessions.find(given).map_err(failure)?;
        if !found.contains(&id) {
            found.push(id);
        }
    }
    if !yes && !confirm(sessions, &found)? {
        output::note("nothing was deleted");
        return Ok(Exit::Failed);
    }
    for id in found {
        let deleted = match delete(sessions, store, state, &id) {
            Ok(deleted) => deleted,
            // Already deleted as a sub-agent of an earlier one.
            Err(Error::Unknown { .. }) => continue,
            Err(error) => return Err(failure(error)),
        };
        for id in &deleted {
            output::text(&format!("deleted {id}"))?;
        }
    }
    Ok(Exit::Done)
}

/// Deletes a session with its outputs, recorded changes, plan and sub-agents. Returns the ids of all
/// deleted sessions.
pub(in crate::commands) fn delete(
    sessions: &Sessions,
    store: Option<&Store>,
    state: &Path,
    id: &str,
) -> Result<Vec<String>, Error> {
    let deleted = sessions.delete(id)?;
    outputs::remove(state, &deleted);
    for id in &deleted.sessions {
        PlanFile::remove(state, id);
        if let Some(Err(error)) = store.map(|store| store.clean(&Clean::Session(id.clone()))) {
            output::note(&format!("cannot remove what is kept of {id}: {error}"));
        }
    }
    Ok(deleted.sessions)
}

/// Asks the user.
fn confirm(sessions: &Sessions, found: &[String]) -> Result<bool, Failure> {
    if !output::can_ask() {
        return Err(Failure::usage("cannot prompt without a terminal")
            .hint("pass `--yes` to delete without asking"));
    }
    for id in found {
        let title = sessions.load(id).map_err(failure)?.info.title;
        let title = visible(title.as_deref().unwrap_or_default()).replace('\n', " ");
        output::note(&format!("{id}  {title}"));
    }
    ask::confirm("Delete permanently? [y/N] ")
}
