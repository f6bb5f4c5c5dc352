//! The files that a call has changed, as they were and as they are.

use crate::update::{CallContent, Location, text};
use haft::ops::blocking::on_a_thread;
use haft::ops::effects::{
    Change, ChangeKind, ChangeSet, EntryKind, Session, SetState, Side, Version,
};
use haft_agent::{Event, EventKind};
use std::collections::HashMap;
use std::io::Read;

/// Maximum number of files that one call shows.
const MAX_FILES: usize = 20;

/// Files with more bytes are not shown.
const MAX_BYTES: u64 = 256 << 10;

/// Returns what the call has changed that an event ends. `recorded` are the changes of the own
/// session.
pub(crate) async fn of_event(recorded: Option<&Session>, event: &Event) -> Vec<CallContent> {
    let EventKind::Tool(haft::EventKind::ToolEnd {
        call_id, details, ..
    }) = &event.kind
    else {
        return Vec::new();
    };
    let (Some(recorded), true) = (recorded, details.contains_key("effects")) else {
        return Vec::new();
    };
    let (own, session, call) = (recorded.clone(), event.session.clone(), call_id.clone());
    let read = on_a_thread(move || {
        if session == own.id() {
            return of_call(&own, &call);
        }
        let found = own.store().find(&session).ok().flatten();
        found.map_or_else(Vec::new, |found| of_call(&found, &call))
    });
    read.await.unwrap_or_default()
}

/// Returns the changes of a call. Blocks while it reads.
fn of_call(session: &Session, call_id: &str) -> Vec<CallContent> {
    let set = match session.set_of(call_id) {
        Ok(set) => set,
        Err(error) => {
            tracing::warn!(%error, "cannot read what a call has changed");
            None
        }
    };
    set.map_or_else(Vec::new, |set| of_set(session, &set))
}

/// The changes of all calls of a session.
pub(crate) struct Recorded {
    session: Session,
    /// The newest set of each call.
    sets: HashMap<String, ChangeSet>,
}

impl Recorded {
    /// Reads which files were changed. Blocks.
    pub(crate) fn read(session: &Session) -> Self {
        let sets = session.sets().unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read what calls have changed");
            Vec::new()
        });
        let sets = sets
            .into_iter()
            .map(|set| (set.summary.call_id.clone(), set));
        Self {
            sets: sets.collect(),
            session: session.clone(),
        }
    }

    /// Reads those of the session of a sub-agent.
    pub(crate) fn of_sub_agent(&self, session: &str) -> Option<Self> {
        let found = self.session.store().find(session).ok().flatten();
        found.as_ref().map(Self::read)
    }

    /// Returns the changes of a call. Blocks while it reads.
    pub(crate) fn of_call(&self, call_id: &str) -> Vec<CallContent> {
        let Some(set) = self.sets.get(call_id) else {
            return Vec::new();
        };
        let mut changes = of_set(&self.session, set);
        if set.summary.state == SetState::Undone {
            changes.insert(0, text("These changes were undone."));
        }
        changes
    }
}

fn of_set(session: &Session, set: &ChangeSet) -> Vec<CallContent> {
    let shown = set.changes.iter().filter(|change| {
        let is_content = !matches!(change.kind, ChangeKind::Attributes);
        is_content && change.entry == EntryKind::File
    });
    shown
        .take(MAX_FILES)
        .flat_map(|change| diffs(session, set, change))
        .collect()
}

/// Returns the diff of a change; that of a file with another name is a deletion and a new file.
fn diffs(session: &Session, set: &ChangeSet, change: &Change) -> Vec<CallContent> {
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
    let Some(old) = read(&change.before, Version::Before) else {
        return Vec::new();
    };
    let Some(new) = read(&change.after, Version::After) else {
        return Vec::new();
    };
    let path = change.path.clone();
    match &change.kind {
        ChangeKind::Renamed { from } => vec![
            CallContent::Diff {
                path: from.clone(),
                old,
                new: None,
            },
            CallContent::Diff {
                path,
                old: None,
                new,
            },
        ],
        _ => vec![CallContent::Diff { path, old, new }],
    }
}

/// Returns the places of changes.
pub(crate) fn locations(changes: &[CallContent]) -> Vec<Location> {
    let paths = changes.iter().filter_map(|change| match change {
        CallContent::Diff { path, .. } => Some(path.clone()),
        CallContent::Block(_) => None,
    });
    paths.map(|path| Location { path, line: None }).collect()
}
