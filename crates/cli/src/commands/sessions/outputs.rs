//! The whole output of a call, and what becomes of it with its session.

#![expect(
    clippy::disallowed_methods,
    reason = "outputs are haft's own files, in its state folder"
)]

use super::pieces::reply_text;
use super::told;
use crate::exit::Failure;
use crate::output;
use haft_store::sessions::{Deleted, Error, Filter, Kind, RecordedCall, Sessions};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path};

/// The folder of outputs in a state folder.
const FOLDER: &str = "outputs";

/// Prints the whole output of a call.
pub(super) fn show(
    sessions: &Sessions,
    (state, work_dir): (&Path, &Path),
    call_id: &str,
    session: Option<&str>,
) -> Result<(), Failure> {
    let (id, call) = find(sessions, work_dir, call_id, session)?;
    let Some(reply) = &call.reply else {
        return Err(Failure::failed(format!(
            "call {call_id} of session {id} has no outcome: it is under way, or it was interrupted"
        )));
    };
    let Some(file) = call.output.as_deref().map(Path::new) else {
        return output::text(&reply_text(reply));
    };
    let gone = |reason: String| {
        Failure::failed(format!(
            "the output {} cannot be read: {reason}",
            file.display()
        ))
        .hint("the part that the model saw is in `haft sessions show`")
    };
    if !is_ours(state, file) {
        return Err(gone("it is not in the folder of outputs".to_owned()));
    }
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(file);
    output::bytes(opened.map_err(|error| gone(error.to_string()))?)
}

/// The call: of the session that is named, of the newest of this folder that has one of
/// this id, or the only one there is. One that a person or a client made is also known by its number, `1` or
/// `call-1`, in the session that is named or in the newest of this folder.
fn find(
    sessions: &Sessions,
    work_dir: &Path,
    call_id: &str,
    session: Option<&str>,
) -> Result<(String, RecordedCall), Failure> {
    // Ids of providers begin anew in each session: the newest of this folder is meant.
    let here = match session {
        Some(_) => None,
        None => sessions.with_call(work_dir, call_id).map_err(told)?,
    };
    let unknown = match sessions.call(session.or(here.as_deref()), call_id) {
        Err(unknown @ Error::UnknownCall { .. }) => unknown,
        other => return other.map_err(told),
    };
    let number: Option<u64> = call_id.trim_start_matches("call-").parse().ok();
    let newest = || -> Result<Option<String>, Error> {
        let found = sessions.list(&Filter {
            work_dir: Some(work_dir.to_owned()),
            kinds: vec![Kind::Call, Kind::Mcp],
            most: Some(1),
            ..Filter::default()
        })?;
        Ok(found.into_iter().next().map(|summary| summary.id))
    };
    let id = match session {
        Some(given) => Some(sessions.find(given).map_err(told)?),
        None => newest().map_err(told)?,
    };
    match (id, number) {
        (Some(id), Some(number)) => sessions
            .call(Some(&id), &format!("{id}-{number}"))
            .map_err(|_| told(unknown)),
        _ => Err(told(unknown)),
    }
}

/// Removes the outputs of sessions that were deleted. What is gone already is no matter.
pub(super) fn remove(state: &Path, deleted: &Deleted) {
    for file in deleted.outputs.iter().filter(|file| is_ours(state, file)) {
        let _ = std::fs::remove_file(file);
    }
    let whole = deleted
        .sessions
        .iter()
        .filter(|id| !deleted.still_needed.contains(id));
    let folders: Vec<_> = std::fs::read_dir(state.join(FOLDER))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    for id in whole {
        for folder in &folders {
            let _ = std::fs::remove_dir_all(folder.join(id));
        }
    }
}

/// Whether a path is below the folder of outputs: the record says where they are, and
/// a record can be damaged.
fn is_ours(state: &Path, file: &Path) -> bool {
    let below = file.strip_prefix(state.join(FOLDER));
    below.is_ok_and(|below| {
        below.components().count() > 1
            && below
                .components()
                .all(|part| matches!(part, Component::Normal(_)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_outputs_are_ours() {
        let state = Path::new("/state");
        assert!(is_ours(state, Path::new("/state/outputs/f/id/call-1")));
        for other in [
            "/etc/passwd",
            "/state/outputs/../sessions.db",
            "/state/outputs",
            "/state/outputs/f",
            "outputs/f/x",
        ] {
            assert!(!is_ours(state, Path::new(other)), "{other}");
        }
    }
}
