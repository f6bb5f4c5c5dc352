//! The files that a call has changed, as they were and as they are.

use crate::update::{CallContent, Location};
use haft::ops::effects::{Change, ChangeKind, ChangeSet, EntryKind, Session, Side, Version};
use std::io::Read;

/// Maximum number of files that one call shows.
const MAX_FILES: usize = 20;

/// Files with more bytes are not shown.
const MAX_BYTES: u64 = 256 << 10;

/// Returns the changes of a call for the client. Blocks while it reads.
pub(crate) fn of_call(session: &Session, call_id: &str) -> Vec<CallContent> {
    let set = match session.set_of(call_id) {
        Ok(set) => set,
        Err(error) => {
            tracing::warn!(%error, "cannot read what a call has changed");
            None
        }
    };
    let Some(set) = set else {
        return Vec::new();
    };
    let shown = set.changes.iter().filter(|change| {
        let is_content = !matches!(change.kind, ChangeKind::Attributes);
        is_content && change.entry == EntryKind::File
    });
    shown
        .take(MAX_FILES)
        .filter_map(|change| diff(session, &set, change))
        .collect()
}

fn diff(session: &Session, set: &ChangeSet, change: &Change) -> Option<CallContent> {
    let read = |side: &Option<Side>, version| match side {
        None => Some(None),
        Some(side) if side.entry != EntryKind::File || side.bytes > MAX_BYTES => None,
        Some(_) => {
            let content = session.content(&set.summary, change, version).ok()??;
            let mut bytes = Vec::new();
            content.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
            String::from_utf8(bytes).ok().map(Some)
        }
    };
    let old = read(&change.before, Version::Before)?;
    let new = read(&change.after, Version::After)?;
    Some(CallContent::Diff {
        path: change.path.clone(),
        old,
        new,
    })
}

/// Returns the places of changes.
pub(crate) fn locations(changes: &[CallContent]) -> Vec<Location> {
    let paths = changes.iter().filter_map(|change| match change {
        CallContent::Diff { path, .. } => Some(path.clone()),
        CallContent::Block(_) => None,
    });
    paths.map(|path| Location { path, line: None }).collect()
}
