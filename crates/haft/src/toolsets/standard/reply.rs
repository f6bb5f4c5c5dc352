//! Failures and truncation in `standard`: the first line says what happened, the
//! following ones what to do about it.

use crate::toolsets::advice::{
    already_there, did_not_start, in_temp, mismatch, on_lines, other_tools, remedy_in_sentences,
    repeats_line, sentence,
};
use crate::truncate::{Cut, Hit, Keep, format_size};
use crate::{Error, Offered, Reply};
use haft_ops::spill::StoredOutput;

/// Formats a failure as text.
pub(super) fn failure(error: &Error, tools: &Offered) -> Reply {
    let (what, next) = match error {
        Error::Operation(error) => operation(error, tools),
        Error::Refused(inner) => return failure(inner, tools),
        Error::UnknownTool { similar, known, .. } => {
            (error.to_string(), other_tools(similar, known))
        }
        Error::Failed { text, hint } => (text.clone(), hint.clone().unwrap_or_default()),
        other => (other.to_string(), String::new()),
    };
    Reply::error(if next.is_empty() {
        what
    } else {
        format!("{what}\n{next}")
    })
}

fn operation(error: &haft_ops::Error, tools: &Offered) -> (String, String) {
    use haft_ops::Error as E;
    let what = error.to_string();
    match error {
        E::CannotStart {
            refusal, detail, ..
        } => did_not_start(what, *refusal, detail),
        E::NotFound { similar, path } if similar.is_empty() && !in_temp(path) => {
            let next = tools.first(&[
                (&["find", "ls"], "Use find or ls to see what is there."),
                (&["ls"], "Use ls to see what is there."),
                (&["find"], "Use find to see what is there."),
                (&["bash"], "Use bash with ls or find to see what is there."),
            ]);
            (what, next.to_owned())
        }
        E::IsDirectory { .. } => {
            let next = tools.first(&[
                (&["ls"], "Use ls to list it."),
                (&["bash"], "Use bash with ls to list it."),
            ]);
            (what, next.to_owned())
        }
        E::Binary { path, size, kind } => {
            let kind = kind.map(|kind| format!(", {kind}")).unwrap_or_default();
            (
                format!("binary file: {path} ({}{kind})", format_size(*size)),
                "Only text and PNG, JPEG, GIF and WebP images can be shown.".to_owned(),
            )
        }
        E::PastEnd { .. } => (what, "Use a smaller offset.".to_owned()),
        E::TextNotFound { path, lesson } => (
            format!("old_text not found in {path}"),
            mismatch(lesson, "new_text"),
        ),
        E::Ambiguous { path, count, lines } => (
            format!(
                "old_text found {count} times in {path} ({})",
                on_lines(lines, *count)
            ),
            "Add surrounding lines to old_text until it is in one place only.".to_owned(),
        ),
        E::RepeatsLine { line, text, .. } => {
            let (what, next) = repeats_line("old_text", "new_text", *line, text);
            (what, sentence(&next))
        }
        E::AlreadyThere { line, .. } => {
            let (what, next) = already_there("new_text", *line);
            (what, sentence(&next))
        }
        E::NoChange { .. } => (
            "old_text and new_text are identical".to_owned(),
            remedy_in_sentences(error, tools),
        ),
        E::EmptyOld => (
            "old_text is empty".to_owned(),
            remedy_in_sentences(error, tools),
        ),
        E::TooLarge { path, size, limit } => (
            format!(
                "file too large: {path} ({}, at most {})",
                format_size(*size),
                format_size(*limit)
            ),
            String::new(),
        ),
        _ => (what, remedy_in_sentences(error, tools)),
    }
}

/// Returns the note below a truncated reply: what is shown, and where the full output is.
pub(super) fn cut_note(cut: &Cut<'_>, keep: Keep, stored: Option<&StoredOutput>) -> String {
    let limit = match cut.hit {
        Some(Hit::Lines) => format!("{} lines", cut.kept_lines),
        _ => format_size(crate::truncate::MAX_BYTES as u64),
    };
    let end = if keep == Keep::Tail { "last" } else { "first" };
    let shown = format!(
        "[Showing the {end} {} of {} lines, {} of {}]",
        cut.kept_lines,
        cut.total_lines,
        format_size(cut.kept_bytes as u64),
        format_size(cut.total_bytes as u64)
    );
    match stored {
        Some(stored) if stored.omitted == 0 => {
            format!(
                "{shown}\n[Output truncated at {limit}. Full output saved to: {}]",
                stored.path.display()
            )
        }
        Some(stored) => format!(
            "{shown}\n[The limit for saved outputs was reached: {} from the middle are missing]\n[Output truncated at {limit}. Full output saved to: {}]",
            format_size(stored.omitted),
            stored.path.display()
        ),
        None => format!("{shown}\n[Output truncated at {limit}. The full output was not saved]"),
    }
}
