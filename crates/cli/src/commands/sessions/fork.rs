//! Copies a session up to some point, and the work folder as it was then.

use super::failure;
use crate::effects::{unreadable, words};
use crate::exit::Failure;
use crate::output;
use haft::ops::effects::Store;
use haft_store::sessions::{Loaded, Sessions};
use serde_json::Value;
use std::path::Path;

/// Copies the session. `at` is the number of a message, or the id of a call.
pub(super) fn run(
    sessions: &Sessions,
    store: Option<&Store>,
    session: &str,
    at: Option<&str>,
    files: Option<&Path>,
) -> Result<(), Failure> {
    let found = sessions.find(session).map_err(failure)?;
    let loaded = sessions.load(&found).map_err(failure)?;
    let message = match at {
        None => None,
        Some(at) => Some(match at.parse::<i64>() {
            Ok(message) if results(&loaded, at).is_none() => message,
            _ => results(&loaded, at).ok_or_else(|| {
                Failure::usage(format!("session {found} has no result of a call {at}"))
                    .hint("`haft sessions show` prints the messages; `haft changes` the calls")
            })?,
        }),
    };
    let Some(folder) = files else {
        return output::text(&sessions.fork(&found, message).map_err(failure)?);
    };
    let copied = match store.map(|store| store.find(&found)) {
        Some(effects) => effects.map_err(unreadable)?,
        None => None,
    };
    let copied = copied.ok_or_else(|| {
        Failure::failed(format!("no changes of session {found} are kept"))
            .hint("copy the work folder itself")
    })?;
    let call = last_with_changes(&loaded, &copied, message)?.ok_or_else(|| {
        let up_to = at.map(|at| format!(" up to {at}")).unwrap_or_default();
        Failure::failed(format!("no call{up_to} has changed anything"))
            .hint("choose a call that `haft changes` lists")
    })?;
    let tree = copied
        .tree_at(&call, folder)
        .map_err(|error| words::failure(copied.work_dir(), error))?;
    let id = sessions.fork(&found, message).map_err(failure)?;
    output::text(&id)?;
    output::note(&format!(
        "copied {} files and folders to {}; continue there with: haft resume {id} --dir {}",
        tree.entries,
        folder.display(),
        crate::text::shell_word(&folder.to_string_lossy()),
    ));
    Ok(())
}

/// Returns the message with the result of a call.
fn results(loaded: &Loaded, call: &str) -> Option<i64> {
    let mut messages = loaded.messages.iter();
    let message = messages.find(|message| calls(&message.body).iter().any(|id| id == call))?;
    Some(message.id)
}

/// Returns the calls whose results a message has.
fn calls(body: &str) -> Vec<String> {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let results = body["results"].as_array().cloned().unwrap_or_default();
    let ids = results
        .iter()
        .filter_map(|result| result["call_id"].as_str());
    ids.map(str::to_owned).collect()
}

/// Returns the last call up to a message, or the last of all, that changed something.
fn last_with_changes(
    loaded: &Loaded,
    effects: &haft::ops::effects::Session,
    message: Option<i64>,
) -> Result<Option<String>, Failure> {
    let sets = effects.summaries().map_err(unreadable)?;
    let messages = loaded.messages.iter();
    let before = messages.take_while(|one| message.is_none_or(|message| one.id <= message));
    let known: Vec<String> = before.flat_map(|one| calls(&one.body)).collect();
    let mut sets = sets.into_iter().rev();
    Ok(sets
        .find(|set| known.contains(&set.call_id))
        .map(|set| set.call_id))
}
