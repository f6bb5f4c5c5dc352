//! Deleting sessions.

use super::{outputs, told};
use crate::ask;
use crate::exit::{Exit, Failure};
use crate::output;
use haft::ops::text::decode::visible;
use haft_store::sessions::Sessions;
use std::path::Path;

/// Deletes sessions: all that were named, or none where one of them is not known.
pub(super) fn run(
    sessions: &Sessions,
    state: &Path,
    given: &[String],
    yes: bool,
) -> Result<Exit, Failure> {
    let mut found: Vec<String> = Vec::new();
    for given in given {
        let id = sessions.find(given).map_err(told)?;
        if !found.contains(&id) {
            found.push(id);
        }
    }
    if !yes && !agreed(sessions, &found)? {
        output::note("nothing was deleted");
        return Ok(Exit::Failed);
    }
    for id in found {
        let deleted = match sessions.delete(&id) {
            Ok(deleted) => deleted,
            // Gone with the one before, whose agent's it was.
            Err(haft_store::sessions::Error::Unknown { .. }) => continue,
            Err(error) => return Err(told(error)),
        };
        outputs::remove(state, &deleted);
        for id in &deleted.sessions {
            output::text(&format!("deleted {id}"))?;
        }
    }
    Ok(Exit::Done)
}

/// Asks the person at this terminal.
fn agreed(sessions: &Sessions, found: &[String]) -> Result<bool, Failure> {
    if !output::can_ask() {
        return Err(Failure::usage("cannot prompt without a terminal")
            .hint("pass `--yes` to delete without asking"));
    }
    for id in found {
        let title = sessions.look(id).map_err(told)?.info.title;
        let title = visible(title.as_deref().unwrap_or_default()).replace('\n', " ");
        output::note(&format!("{id}  {title}"));
    }
    ask::yes("Delete for good? [y/N] ")
}
