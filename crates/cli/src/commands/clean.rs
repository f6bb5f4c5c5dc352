//! `haft clean`: removes what is kept for undo, and the caches of commands.

use crate::args::Shared;
use crate::args::effects::Clean as Args;
use crate::effects::{store, unreadable};
use crate::exit::{Exit, Failure};
use crate::{ask, output, session};
use haft::ops::effects::{Clean, Store, Usage};
use haft::ops::exec::caches::{self, Size};
use haft::truncate::format_size;

/// Folder for the caches of commands, in the state folder.
pub(super) const CACHES: &str = "caches";

/// Says what is kept, and removes it.
pub(crate) fn run(shared: &Shared, args: &Args) -> Result<Exit, Failure> {
    let settings = session::settings(shared)?;
    let no_state = || Failure::usage("changes are kept in the state folder: set HOME");
    let store = store(&settings).ok_or_else(no_state)?;
    let store = (!args.caches).then_some(store);
    let state = settings.folders.state.as_ref().ok_or_else(no_state)?;
    let caches = state.join(CACHES);
    let usage = store.as_ref().map(Store::size).transpose();
    let usage = usage.map_err(unreadable)?;
    let usage = usage.filter(|usage| usage.sets > 0 || usage.sessions > 0);
    let cached = caches::kept(&caches);
    if usage.is_none() && cached.bytes == 0 {
        output::text("nothing is kept")?;
        return Ok(Exit::Done);
    }
    if let (Some(usage), Some(store)) = (&usage, &store) {
        let folder = store.folder().display();
        output::note(&format!("kept in {folder}: {}", described(usage)));
        output::note("without it, these changes cannot be shown or undone");
    }
    if cached.bytes > 0 {
        let (folder, size) = (caches.display(), described_caches(cached));
        output::note(&format!("kept in {folder}: caches of commands, {size}"));
    }
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
    if let (Some(_), Some(store)) = (usage, store) {
        let removed = store.clean(&Clean::All).map_err(unreadable)?;
        output::text(&format!("removed {}", described(&removed)))?;
        let left = store.size().map_err(unreadable)?;
        if left.sessions > 0 {
            note_left(&described(&left));
        }
    }
    if cached.bytes > 0 {
        let left = caches::clean(&caches);
        let removed = Size {
            bytes: cached.bytes.saturating_sub(left.bytes),
            is_partial: cached.is_partial,
        };
        output::text(&format!("removed caches, {}", described_caches(removed)))?;
        if left.bytes > 0 {
            note_left(&format!("caches, {}", described_caches(left)));
        }
    }
    Ok(Exit::Done)
}

fn note_left(what: &str) {
    output::note(&format!(
        "left {what}, because a session that still runs uses it"
    ));
}

/// Describes the size of caches.
pub(crate) fn described_caches(size: Size) -> String {
    let least = if size.is_partial { "at least " } else { "" };
    format!("{least}{}", format_size(size.bytes))
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
