//! Full outputs of calls: printing them, and removing them with their session.

#![expect(
    clippy::disallowed_methods,
    reason = "outputs are haft's own files, in its state folder"
)]

use super::failure;
use super::transcript::reply_text;
use crate::exit::Failure;
use crate::output;
use haft_store::sessions::{Deleted, Error, Filter, RecordedCall, SessionKind, Sessions};
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path};

/// Folder of outputs in the state folder.
const FOLDER: &str = "outputs";

/// Prints the full output of a call.
pub(super) fn show(
    sessions: &Sessions,
    (state, work_dir): (&Path, &Path),
    call_id: &str,
    session: Option<&str>,
) -> Result<(), Failure> {
    let (id, call) = find(sessions, work_dir, call_id, session)?;
    let Some(reply) = &call.reply else {
        return Err(Failure::failed(format!(
            "call {call_id} of session {id} has no outcome: it is still running or was interrupted"
        )));
    };
    let Some(file) = call.output.as_deref().map(Path::new) else {
        return output::text(&reply_text(reply));
    };
    let unreadable = |reason: String| {
        Failure::failed(format!(
            "cannot read the output {}: {reason}",
            file.display()
        ))
        .hint("`haft sessions show` prints the part that the model saw")
    };
    if !is_output(state, file) {
        return Err(unreadable("it is outside the output folder".to_owned()));
    }
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(file);
    output::bytes(opened.map_err(|error| unreadable(error.to_string()))?)
}

/// Finds a call by id: in the named session, else in the latest session of this folder
/// that has such a call, else anywhere if it is unique. Calls made with `haft call` or
/// over MCP can also be given by number, `1` or `call-1`, in the named session or the
/// latest of this folder.
fn find(
    sessions: &Sessions,
    work_dir: &Path,
    call_id: &str,
    session: Option<&str>,
) -> Result<(String, RecordedCall), Failure> {
    // Providers may reuse ids in each session, so prefer the latest session of this
    // folder.
    let here = match session {
        Some(_) => None,
        None => sessions.with_call(work_dir, call_id).map_err(failure)?,
    };
    let unknown = match sessions.call(session.or(here.as_deref()), call_id) {
        Err(unknown @ Error::UnknownCall { .. }) => unknown,
        other => return other.map_err(failure),
    };
    let number: Option<u64> = call_id.trim_start_matches("call-").parse().ok();
    let newest = || -> Result<Option<String>, Error> {
        let found = sessions.list(&Filter {
            work_dir: Some(work_dir.to_owned()),
            kinds: vec![SessionKind::Call, SessionKind::Mcp],
            limit: Some(1),
            ..Filter::default()
        })?;
        Ok(found.into_iter().next().map(|summary| summary.id))
    };
    let id = match session {
        Some(given) => Some(sessions.find(given).map_err(failure)?),
        None => newest().map_err(failure)?,
    };
    match (id, number) {
        (Some(id), Some(number)) => sessions
            .call(Some(&id), &format!("{id}-{number}"))
            .map_err(|_| failure(unknown)),
        _ => Err(failure(unknown)),
    }
}

/// Removes the outputs of deleted sessions. Files that are already gone are ignored.
pub(super) fn remove(state: &Path, deleted: &Deleted) {
    for file in deleted.outputs.iter().filter(|file| is_output(state, file)) {
        let _ = std::fs::remove_file(file);
    }
    let unshared = deleted
        .sessions
        .iter()
        .filter(|id| !deleted.still_needed.contains(id));
    let folders: Vec<_> = std::fs::read_dir(state.join(FOLDER))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    for id in unshared {
        for folder in &folders {
            let _ = std::fs::remove_dir_all(folder.join(id));
        }
    }
}

/// Whether a path is below the output folder. The path comes from the record, which could
/// be damaged.
fn is_output(state: &Path, file: &Path) -> bool {
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
    fn only_paths_in_the_output_folder_are_outputs() {
        let state = Path::new("/state");
        assert!(is_output(state, Path::new("/state/outputs/f/id/call-1")));
        for other in [
            "/etc/passwd",
            "/state/outputs/../sessions.db",
            "/state/outputs",
            "/state/outputs/f",
            "outputs/f/x",
        ] {
            assert!(!is_output(state, Path::new(other)), "{other}");
        }
    }
}
