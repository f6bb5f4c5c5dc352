//! Formats the changes of calls as text and JSON for front ends. Recording itself is in
//! `ops/src/effects.rs`.

mod diff;

pub use diff::{Diff, diff};

use haft_ops::effects::{
    Change, ChangeKind, ChangeSet, Counts, EntryKind, Session, SetState, SetSummary, Side, Version,
};
use haft_ops::text::decode::visible;
use haft_ops::text::moment;
use haft_ops::text::size::size;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Names of the tools under which an undo and a redo are recorded.
pub const UNDO_TOOLS: [&str; 2] = ["undo", "redo"];

/// Returns the counts as in `details.effects`; `None` if there is nothing to report.
#[must_use]
pub fn counts_json(counts: &Counts) -> Option<Value> {
    if counts.total() == 0 && counts.complete {
        return None;
    }
    let mut json = json!({
        "created": counts.created,
        "modified": counts.modified,
        "deleted": counts.deleted,
        "renamed": counts.renamed,
        "attributes": counts.attributes,
        "complete": counts.complete,
    });
    if let Some(why) = &counts.why {
        json["why"] = why.as_str().into();
    }
    Some(json)
}

/// Returns the counts as words, deletions first: `1 deleted, 2 created`.
#[must_use]
pub fn counts_words(counts: &Counts) -> String {
    let all = [
        (counts.deleted, "deleted"),
        (counts.modified, "modified"),
        (counts.renamed, "renamed"),
        (counts.created, "created"),
        (counts.attributes, "with other attributes"),
    ];
    let words = all.iter().filter(|(count, _)| *count > 0);
    let words: Vec<String> = words
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    match (words.is_empty(), counts.complete) {
        (true, true) => "nothing changed".to_owned(),
        (true, false) => "nothing recorded".to_owned(),
        (false, _) => words.join(", "),
    }
}

/// Replaces undos and redos among calls by the calls that they were about.
#[must_use]
pub fn origins(sets: &[SetSummary], calls: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open: Vec<&str> = calls.iter().rev().map(String::as_str).collect();
    while let Some(call) = open.pop() {
        let is_it =
            |set: &&SetSummary| set.call_id == call && UNDO_TOOLS.contains(&set.tool.as_str());
        match sets.iter().find(is_it) {
            // An undo is about earlier sets, so this ends.
            Some(undo) => open.extend(undo.undoes.iter().rev().map(String::as_str)),
            None if found.iter().any(|known| known == call) => {}
            None => found.push(call.to_owned()),
        }
    }
    found
}

/// Returns the number of files and folders: `1 file`, `3 files and 1 folder`.
#[must_use]
pub fn files(changes: &[Change]) -> String {
    let is_folder = |change: &&Change| change.entry == EntryKind::Dir;
    let folders = changes.iter().filter(is_folder).count();
    let counts = [(changes.len() - folders, "file"), (folders, "folder")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let words: Vec<String> = counts
        .map(|(count, noun)| format!("{count} {noun}{}", if count == 1 { "" } else { "s" }))
        .collect();
    match words.is_empty() {
        true => "nothing was left to change".to_owned(),
        false => words.join(" and "),
    }
}

/// Whether an undo can be about a set: a call made it, and its changes stand. Those of a call
/// that still runs do too, but it cannot be undone yet.
#[must_use]
pub fn stands(set: &SetSummary) -> bool {
    !UNDO_TOOLS.contains(&set.tool.as_str())
        && matches!(
            set.state,
            SetState::Done | SetState::Interrupted | SetState::Running
        )
}

/// Returns the name of a state, as in `haft changes --json`.
#[must_use]
pub fn state_name(state: SetState) -> &'static str {
    match state {
        SetState::Running => "running",
        SetState::Interrupted => "interrupted",
        SetState::Undone => "undone",
        SetState::Done | SetState::NoLongerKept => "done",
    }
}

/// Returns the changes in the order in which they are shown: what is lost comes first.
#[must_use]
pub fn in_order(changes: &[Change]) -> Vec<&Change> {
    let mut ordered: Vec<&Change> = changes.iter().collect();
    ordered.sort_by_key(|change| match change.kind {
        ChangeKind::Deleted => 0,
        ChangeKind::Modified => 1,
        ChangeKind::Renamed { .. } => 2,
        ChangeKind::Created => 3,
        ChangeKind::Attributes => 4,
    });
    ordered
}

/// Returns a path relative to the work folder, or the absolute path outside it.
#[must_use]
pub fn shown_path(work_dir: &Path, path: &Path) -> String {
    match path.strip_prefix(work_dir) {
        Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Ok(below) => below.to_string_lossy().into_owned(),
        Err(_) => path.to_string_lossy().into_owned(),
    }
}

/// Returns such a path for people: on one line, safe to print, and different for different
/// paths. Characters that do not print and bytes that are not UTF-8 are escaped.
#[must_use]
pub fn printed_path(work_dir: &Path, path: &Path) -> String {
    let below = path.strip_prefix(work_dir).unwrap_or(path);
    if below.as_os_str().is_empty() {
        return ".".to_owned();
    }
    let mut shown = String::new();
    for chunk in below.as_os_str().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => shown.push_str("\\\\"),
                '\n' => shown.push_str("\\n"),
                '\t' => shown.push_str("\\t"),
                c => shown.push_str(&visible(c.encode_utf8(&mut [0; 4]))),
            }
        }
        let bytes = chunk.invalid().iter();
        shown.extend(bytes.map(|byte| format!("\\x{byte:02x}")));
    }
    shown
}

/// Returns what was not recorded and why, as a sentence on one line; `None` if everything
/// was.
#[must_use]
pub fn gap(counts: &Counts) -> Option<String> {
    if counts.complete {
        return None;
    }
    Some(format!("not everything was recorded: {}", why(counts)))
}

/// Returns the reason why something was not recorded, on one line.
#[must_use]
pub fn why(counts: &Counts) -> String {
    let why = counts.why.as_deref().unwrap_or("unknown reason");
    visible(why).replace('\n', "\\n")
}

/// Returns the name of a kind of change.
#[must_use]
pub fn kind_name(kind: &ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Created => "created",
        ChangeKind::Modified => "modified",
        ChangeKind::Deleted => "deleted",
        ChangeKind::Renamed { .. } => "renamed",
        ChangeKind::Attributes => "attributes",
    }
}

/// Returns one line about a change, without control characters.
#[must_use]
pub fn change_line(work_dir: &Path, change: &Change) -> String {
    let name = |path: &Path| printed_path(work_dir, path);
    let slash = match change.entry {
        EntryKind::Dir => "/",
        _ => "",
    };
    let mut line = format!("{:<10} ", kind_name(&change.kind));
    match &change.kind {
        ChangeKind::Renamed { from } => {
            line.push_str(&format!(
                "{}{slash} → {}{slash}",
                name(from),
                name(&change.path)
            ));
        }
        _ => line.push_str(&format!("{}{slash}", name(&change.path))),
    }
    let about = about(change);
    if !about.is_empty() {
        line.push_str(&format!("  ({about})"));
    }
    line
}

/// Describes size, mode and target of a change.
fn about(change: &Change) -> String {
    let mut words = Vec::new();
    let target = |side: &Side| {
        let target = side.target.as_ref()?;
        Some(format!("link to {}", printed_path(Path::new(""), target)))
    };
    let one = |side: &Side| match side.entry {
        EntryKind::Dir => None,
        EntryKind::Link => target(side),
        EntryKind::File => Some(size(side.bytes)),
        EntryKind::Other => Some("special file".to_owned()),
    };
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => {
            let (old, new) = (one(before), one(after));
            if old == new {
                words.extend(new);
            } else {
                let or_folder = |text: Option<String>| text.unwrap_or_else(|| "folder".to_owned());
                words.push(format!("{} → {}", or_folder(old), or_folder(new)));
            }
            if before.mode != after.mode {
                words.push(format!("mode {} → {}", mode(before), mode(after)));
            }
        }
        (Some(side), None) | (None, Some(side)) => words.extend(one(side)),
        (None, None) => {}
    }
    if !change.kept {
        words.push("not kept, cannot be undone".to_owned());
    }
    words.join(", ")
}

fn mode(side: &Side) -> String {
    format!("{:04o}", side.mode & 0o7777)
}

/// Returns a set as in `haft changes --json`. Reads the files to hash them.
#[must_use]
pub fn set_json(session: &Session, set: &ChangeSet) -> Value {
    let summary = &set.summary;
    let changes: Vec<Value> = set
        .changes
        .iter()
        .map(|change| change_json(session, summary, change))
        .collect();
    let mut json = json!({
        "session": summary.session,
        "call_id": summary.call_id,
        "tool": summary.tool,
        "time": moment::to_millis(summary.time),
        "state": state_name(summary.state),
        "complete": summary.counts.complete && summary.state != SetState::NoLongerKept,
        "changes": changes,
    });
    let why = summary.counts.why.clone();
    let gone = || "no longer kept: effects.max_session was reached".to_owned();
    let why = why.or_else(|| (summary.state == SetState::NoLongerKept).then(gone));
    if let Some(why) = why {
        json["why"] = why.into();
    }
    json
}

/// Returns one change as in `haft changes --json`.
#[must_use]
pub fn change_json(session: &Session, set: &SetSummary, change: &Change) -> Value {
    let path = |path: &Path| shown_path(session.work_dir(), path);
    let side = |side: &Option<Side>, version| match side {
        None => Value::Null,
        Some(one) => json!({
            "bytes": one.bytes,
            "sha256": match one.entry {
                EntryKind::File => sha256(session, set, change, version),
                _ => None,
            },
            "mode": mode(one),
        }),
    };
    let mut json = json!({
        "path": path(&change.path),
        "kind": kind_name(&change.kind),
        "type": match change.entry {
            EntryKind::File => "file",
            EntryKind::Dir => "dir",
            EntryKind::Link => "link",
            EntryKind::Other => "other",
        },
        "before": side(&change.before, Version::Before),
        "after": side(&change.after, Version::After),
        "kept": change.kept,
    });
    if let ChangeKind::Renamed { from } = &change.kind {
        json["from"] = path(from).into();
    }
    json
}

/// Hashes one version of a file; `None` if it is not available.
fn sha256(
    session: &Session,
    set: &SetSummary,
    change: &Change,
    version: Version,
) -> Option<String> {
    let mut content = session.content(set, change, version).ok()??;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = content.read(&mut buffer).ok()?;
        match buffer.get(..read) {
            Some([]) | None => break,
            Some(bytes) => hash.update(bytes),
        }
    }
    Some(
        hash.finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn change(kind: ChangeKind, path: &str, before: Option<u64>, after: Option<u64>) -> Change {
        let side = |bytes: u64| Side {
            entry: EntryKind::File,
            bytes,
            mode: 0o644,
            target: None,
        };
        Change {
            path: PathBuf::from(path),
            kind,
            entry: EntryKind::File,
            before: before.map(side),
            after: after.map(side),
            kept: true,
        }
    }

    #[test]
    fn deletions_come_first_and_names_stay_on_their_line() {
        let from = PathBuf::from("/w/old");
        let changes = [
            change(ChangeKind::Created, "/w/a\nb", None, Some(3)),
            change(ChangeKind::Renamed { from }, "/w/new", Some(3), Some(3)),
            change(ChangeKind::Deleted, "/other/c", Some(2048), None),
            change(ChangeKind::Modified, "/w/d", Some(1), Some(2)),
        ];
        let lines: Vec<String> = in_order(&changes)
            .into_iter()
            .map(|change| change_line(Path::new("/w"), change))
            .collect();
        assert_eq!(
            lines,
            [
                "deleted    /other/c  (2KB)",
                "modified   d  (1B → 2B)",
                "renamed    old → new  (3B)",
                r"created    a\nb  (3B)",
            ]
        );
        let odd = std::ffi::OsStr::from_bytes(b"/w/a\xff\\\x1b[2J\xe2\x80\xae");
        let printed = printed_path(Path::new("/w"), Path::new(odd));
        assert_eq!(printed, r"a\xff\\\x1b[2J\u{202e}");
        assert_eq!(files(&changes), "4 files");
    }

    #[test]
    fn counts_name_every_kind() {
        let counts = Counts {
            created: 2,
            deleted: 1,
            attributes: 3,
            complete: true,
            ..Counts::default()
        };
        assert_eq!(
            counts_words(&counts),
            "1 deleted, 2 created, 3 with other attributes"
        );
        let nothing = Counts {
            complete: true,
            ..Counts::default()
        };
        assert_eq!(counts_json(&nothing), None);
        assert_eq!(counts_json(&counts).unwrap()["attributes"], 3);
    }
}
