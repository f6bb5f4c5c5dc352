//! The results of `grep` in its output modes, and what was searched.

use super::grep::Mode;
use super::{FOUND, reply};
use crate::{Context, Reply};
use haft_ops::search::{Searched, Stopped};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// Formats the reply.
pub(super) fn answer(searched: &Searched, start: &Path, mode: Mode, cx: &Context) -> Reply {
    let mut found = String::new();
    for file in &searched.files {
        let path = if file.below.as_os_str().is_empty() {
            start.to_string_lossy().into_owned()
        } else {
            start.join(&file.below).to_string_lossy().into_owned()
        };
        let _ = match mode {
            Mode::FilesWithMatches => writeln!(found, "{path}"),
            Mode::Count => writeln!(found, "{path}: {}", file.matches),
            Mode::Content => file
                .lines
                .iter()
                .try_for_each(|line| writeln!(found, "{path}:{}:{}", line.number, line.text)),
        };
    }
    let found = found.trim_end_matches('\n');
    let mut answer = reply::success(json!({ "result": "No matches found." }));
    let fits = FOUND.min(found.len());
    let shown = match found.char_indices().nth(fits) {
        None => found,
        Some((end, _)) => {
            let cut = found.get(..end).unwrap_or_default();
            cut.rfind('\n')
                .and_then(|line| cut.get(..line))
                .unwrap_or(cut)
        }
    };
    let mut is_cut = shown.len() < found.len();
    if is_cut {
        let more = found.chars().count() - shown.chars().count();
        let result = format!("{shown}\n\n... (truncated {more} characters) ...");
        reply::add(&mut answer, "result", result);
        reply::add(&mut answer, "truncated", true);
        if let Some(path) = cx.keep_text(found) {
            reply::add_output(&mut answer, &path, cx);
        }
    } else if !found.is_empty() {
        reply::add(&mut answer, "result", found);
    }
    let mut hints = Vec::new();
    if searched.stopped == Some(Stopped::Deadline) {
        hints.push("the time limit was reached before everything was searched".to_owned());
    } else if mode == Mode::Content && searched.total > searched.shown {
        hints.push(format!(
            "the first {} of {} matching lines are kept",
            searched.shown, searched.total
        ));
    }
    let lines = searched.files.iter().flat_map(|file| &file.lines);
    let long = lines.filter(|line| line.is_cut).count();
    if long > 0 {
        is_cut = true;
        reply::add(&mut answer, "truncated", true);
        let (lines, them) = match long {
            1 => ("line is", "it"),
            _ => ("lines are", "them"),
        };
        let whole = match cx.offered().has("read_file") {
            true => format!("; read_file shows {them} whole"),
            false => String::new(),
        };
        hints.push(format!(
            "{long} long {lines} cut around the match, where … is{whole}"
        ));
    }
    reply::add(&mut answer, "searched", looked_at(searched));
    if !hints.is_empty() {
        reply::add(&mut answer, "hint", hints.join("\n"));
    }
    Reply::json(answer)
        .detail("matches", searched.total)
        .detail("truncated", is_cut)
}

/// Returns counts of what was searched and what was skipped, and why.
fn looked_at(searched: &Searched) -> Value {
    let skipped = searched.skipped;
    let mut looked_at = json!({
        "files": searched.searched, "matches": searched.total, "skipped": skipped.total(),
    });
    for (name, number) in [
        ("binary", skipped.binary),
        ("unreadable", skipped.unreadable),
        ("too_long_lines", skipped.too_long_lines),
        ("special", skipped.special),
        ("not_allowed", skipped.hidden),
        ("denied", skipped.excluded.denied),
        ("rules_ask", skipped.excluded.asks),
        ("links", skipped.links),
    ] {
        if number > 0 {
            reply::add(&mut looked_at, name, number);
        }
    }
    looked_at
}
