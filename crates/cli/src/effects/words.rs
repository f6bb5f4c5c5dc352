//! Describes undos and the reasons why they fail.

use crate::effects::plan::Preview;
use crate::exit::Failure;
use crate::text::on_one_line;
use haft::effects::{files, in_order, origins, printed_path};
use haft::ops::effects::{Change, ChangeKind, EntryKind, Session, SetSummary, UndoError, Undone};
use haft::ops::text::decode::visible;
use std::path::{Path, PathBuf};

/// Returns the id of a call for people.
pub(crate) fn call_name(id: &str) -> String {
    on_one_line(&visible(id))
}

fn call_names(ids: &[String]) -> String {
    let names: Vec<String> = ids.iter().map(|id| call_name(id)).collect();
    names.join(", ")
}

/// Returns the calls that an undo or a redo is about, for people.
fn subject(undone: &[(Session, Undone)]) -> String {
    let calls = undone.iter().flat_map(|(session, one)| {
        let sets = session.summaries().unwrap_or_default();
        origins(&sets, &one.calls)
    });
    call_names(&calls.collect::<Vec<_>>())
}

/// Describes what an undo or a redo would do, one line per file; what it removes comes first.
/// At most `most` files are listed, and all are counted.
pub(crate) fn preview_lines(
    work_dir: &Path,
    verb: &str,
    preview: &Preview,
    most: usize,
) -> Vec<String> {
    let changes: Vec<Change> = preview
        .undone
        .iter()
        .flat_map(|(_, one)| one.changes.iter().cloned())
        .collect();
    let count = |is: fn(&ChangeKind) -> bool| {
        let meant = changes.iter().filter(|change| is(&change.kind));
        meant.count()
    };
    let removed = count(|kind| *kind == ChangeKind::Deleted);
    let renamed = count(|kind| matches!(kind, ChangeKind::Renamed { .. }));
    let restored = changes.len() - removed - renamed;
    let counts = [
        (removed, "remove"),
        (renamed, "rename"),
        (restored, "restore"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(count, verb)| format!("{verb} {count}"))
        .collect();
    let mut lines = vec![format!(
        "{verb} {}: {}",
        subject(&preview.undone),
        counts.join(", ")
    )];
    let ordered = in_order(&changes);
    let listed = ordered.iter().take(most);
    lines.extend(listed.map(|change| format!("  {}", undo_line(work_dir, change))));
    if changes.len() > most {
        lines.push(format!("  … and {} more", changes.len() - most));
    }
    if !preview.after.is_empty() {
        let calls = call_names(&preview.after);
        lines.push(format!("then what was changed before that: {calls}"));
    }
    lines.extend(unrecorded_lines(&preview.unrecorded));
    lines
}

/// Describes what an undo or a redo did.
pub(crate) fn done_lines(
    work_dir: &Path,
    verb: &str,
    undone: &[(Session, Undone)],
    unrecorded: &[SetSummary],
) -> Vec<String> {
    let name = |path: &Path| printed_path(work_dir, path);
    let mut lines = Vec::new();
    for step in undone {
        let (_, one) = step;
        let calls = subject(std::slice::from_ref(step));
        lines.push(format!("{verb} {calls}: {}", files(&one.changes)));
        for aside in &one.aside {
            let (path, now) = (name(&aside.path), name(&aside.now));
            lines.push(format!("moved aside: {path}, now {now}"));
        }
        for edited in &one.edited {
            lines.push(format!(
                "kept: {}, with what others wrote since",
                name(edited)
            ));
        }
        for left in &one.left {
            lines.push(format!(
                "left: {}, because it has files that the call did not make",
                name(left)
            ));
        }
    }
    lines.extend(unrecorded_lines(unrecorded));
    lines
}

/// Names the calls that changed something that cannot be taken back.
fn unrecorded_lines(sets: &[SetSummary]) -> impl Iterator<Item = String> {
    sets.iter().map(|set| {
        format!(
            "{}: {}; what else it changed stays",
            call_name(&set.call_id),
            haft::effects::gap(&set.counts).unwrap_or_default()
        )
    })
}

/// Describes a change that an undo makes.
fn undo_line(work_dir: &Path, change: &Change) -> String {
    let slash = match change.entry {
        EntryKind::Dir => "/",
        _ => "",
    };
    let name = |path: &Path| format!("{}{slash}", printed_path(work_dir, path));
    let path = name(&change.path);
    match &change.kind {
        ChangeKind::Created | ChangeKind::Modified => format!("restore  {path}"),
        ChangeKind::Deleted => format!("remove   {path}"),
        ChangeKind::Renamed { from } => format!("rename   {} → {path}", name(from)),
        ChangeKind::Attributes => format!("restore  {path} (attributes)"),
    }
}

/// Converts the reason why nothing was undone.
pub(crate) fn failure(work_dir: &Path, error: UndoError) -> Failure {
    let name = |path: &PathBuf| printed_path(work_dir, path);
    let list = |paths: &[PathBuf]| paths.iter().map(name).collect::<Vec<_>>().join("\n  ");
    match error {
        UndoError::Nothing => Failure::failed(format!(
            "nothing to undo in {}",
            printed_path(Path::new(""), work_dir)
        ))
        .hint("`haft changes` shows what the newest session of this folder changed"),
        UndoError::Changed { paths } => {
            let lines = paths
                .iter()
                .map(|one| format!("{}: {}", name(&one.path), one.what));
            let lines: Vec<String> = lines.collect();
            Failure::failed(format!(
                "nothing was changed, because these are not as the call left them:\n  {}",
                lines.join("\n  ")
            ))
            .hint("--force moves the present versions aside and says where")
        }
        UndoError::NotKept { paths } => Failure::failed(format!(
            "nothing was changed, because the content before was not kept:\n  {}",
            list(&paths)
        ))
        .hint("`haft undo PATH…` takes back the rest"),
        UndoError::LaterCalls { calls, paths } => {
            let names = call_names(&calls);
            let words: Vec<String> = calls
                .iter()
                .map(|call| crate::text::shell_word(call))
                .collect();
            Failure::failed(format!(
                "nothing was changed, because later calls changed the same files ({names}):\n  {}",
                list(&paths)
            ))
            .hint(format!(
                "undo those too, by adding them: {}",
                words.join(" ")
            ))
        }
        UndoError::Running(call) => Failure::failed(format!(
            "still running: {}, or a process that it started",
            call_name(&call)
        ))
        .hint("wait until it has ended, or stop it"),
        UndoError::NoLongerKept(calls) => Failure::failed(format!(
            "nothing was changed, because the content before is no longer kept: {}",
            call_names(&calls)
        ))
        .hint("`effects.max_session` limits what is kept; the oldest goes first"),
        UndoError::Busy => Failure::failed(error.to_string()).hint("try again in a moment"),
        error => Failure::failed(on_one_line(&error.to_string())),
    }
}
