//! `haft clean`: removes what is kept for undo.

use crate::args::Shared;
use crate::args::effects::Clean as Args;
use crate::effects::{store, unreadable};
use crate::exit::{Exit, Failure};
use crate::{ask, output, session};
use haft::ops::effects::{Clean, Usage};
use haft::truncate::format_size;

/// Says what is kept, and removes it.
pub(crate) fn run(shared: &Shared, args: &Args) -> Result<Exit, Failure> {
    let settings = session::settings(shared)?;
    let store = store(&settings)
        .ok_or_else(|| Failure::usage("changes are kept in the state folder: set HOME"))?;
    let usage = store.size().map_err(unreadable)?;
    if usage.sets == 0 && usage.sessions == 0 {
        output::text("nothing is kept")?;
        return Ok(Exit::Done);
    }
    let folder = store.folder().display();
    output::note(&format!("kept in {folder}: {}", described(&usage)));
    output::note("without it, these changes cannot be shown or undone");
    if !args.yes {
        if !output::can_ask() {
            return Err(Failure::usage("cannot prompt without a terminal")
                .hint("pass `--yes` to remove it without asking"));
        }
        if !ask::confirm("Remove permanently? [y/N] ")? {
            output::note("nothing was removed");
            return Ok(Exit::Failed);
        }
    }
    let removed = store.clean(&Clean::All).map_err(unreadable)?;
    output::text(&format!("removed {}", described(&removed)))?;
    let left = store.size().map_err(unreadable)?;
    if left.sessions > 0 {
        output::note(&format!(
            "left {}, because a session that still runs uses it",
            described(&left)
        ));
    }
    Ok(Exit::Done)
}

/// Describes what the store holds.
pub(crate) fn described(usage: &Usage) -> String {
    let plural = |count: u64, noun: &str| {
        let s = if count == 1 { "" } else { "s" };
        format!("{count} {noun}{s}")
    };
    format!(
        "the changes of {} in {}, {}",
        plural(usage.sets, "call"),
        plural(usage.sessions, "session"),
        format_size(usage.bytes)
    )
}
