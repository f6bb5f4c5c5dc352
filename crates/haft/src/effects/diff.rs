//! The difference that one change made to a file.

use haft_ops::effects::{Change, ChangeKind, EntryKind, Session, SetState, SetSummary, Version};
use haft_ops::text::diff::unified_bytes;
use haft_ops::text::size::size;
use std::io::Read;

/// Largest file that is compared line by line, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Bytes that are searched for a NUL, which only binary files have.
const SEARCHED: usize = 8000;

/// Lines around each change.
const CONTEXT: usize = 3;

/// The difference that one change made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Diff {
    /// Lines of a unified diff, without the file names.
    Lines {
        /// All lines, each with its mark.
        text: String,
        /// Number of lines added.
        added: u64,
        /// Number of lines removed.
        removed: u64,
    },
    /// Something that is not shown line by line, and why.
    Opaque(String),
    /// No content changed.
    Same,
}

/// Compares the two versions of a changed file.
#[must_use]
pub fn diff(session: &Session, set: &SetSummary, change: &Change) -> Diff {
    let sides = [&change.before, &change.after];
    let is_file = |side: &&Option<haft_ops::effects::Side>| {
        side.as_ref()
            .is_none_or(|side| side.entry == EntryKind::File)
    };
    if change.kind == ChangeKind::Attributes || !sides.iter().all(is_file) {
        return Diff::Same;
    }
    let largest = sides
        .iter()
        .filter_map(|side| Some(side.as_ref()?.bytes))
        .max();
    if largest.is_some_and(|bytes| bytes > MAX_BYTES) {
        return Diff::Opaque(format!("large file, {}", sizes(change)));
    }
    let read = |version, side: &Option<haft_ops::effects::Side>| match side {
        None => Some(Vec::new()),
        Some(_) => {
            let content = session.content(set, change, version).ok()??;
            let mut bytes = Vec::new();
            content.take(MAX_BYTES + 1).read_to_end(&mut bytes).ok()?;
            Some(bytes)
        }
    };
    let before = read(Version::Before, &change.before);
    let Some(before) = before else {
        let why = match (change.kept, set.state) {
            (true, SetState::Undone) => "restored by an undo",
            _ => "content before was not kept",
        };
        return Diff::Opaque(format!("{why}, {}", sizes(change)));
    };
    let Some(after) = read(Version::After, &change.after) else {
        return Diff::Opaque(format!("changed again since, {}", sizes(change)));
    };
    if before == after {
        return Diff::Same;
    }
    if is_binary(&before) || is_binary(&after) {
        return Diff::Opaque(format!("binary file, {}", sizes(change)));
    }
    let text = unified_bytes(&before, &after, "file", CONTEXT);
    // The two lines with the file's name.
    let text = text.split_inclusive('\n').skip(2).collect::<String>();
    if text.is_empty() {
        return Diff::Same;
    }
    let count = |mark: char| text.lines().filter(|line| line.starts_with(mark)).count() as u64;
    Diff::Lines {
        added: count('+'),
        removed: count('-'),
        text,
    }
}

fn sizes(change: &Change) -> String {
    let bytes = |side: &Option<haft_ops::effects::Side>| side.as_ref().map(|side| size(side.bytes));
    match (bytes(&change.before), bytes(&change.after)) {
        (Some(before), Some(after)) if before != after => format!("{before} → {after}"),
        (one, other) => one.or(other).unwrap_or_default(),
    }
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(SEARCHED).any(|byte| *byte == 0)
}
