//! Failures and truncation in `ah`: `error: ` and what happened, then on the
//! following lines what to do about it.

use crate::toolsets::advice::{
    already_there, did_not_start, in_temp, mismatch, on_lines, other_tools, remedy_in_sentences,
    repeats_line, sentence,
};
use crate::truncate::{Cut, Keep, format_size};
use crate::{Error, Offered, Reply};
use haft_ops::spill::StoredOutput;

/// Formats a failure as text.
pub(super) fn failure(error: &Error, tools: &Offered) -> Reply {
    let (what, next) = match error {
        // The message already starts with `validation error: `.
        Error::Invalid(_) => return Reply::error(error.to_string()),
        Error::Refused(inner) => return failure(inner, tools),
        Error::Operation(error) => operation(error, tools),
        Error::UnknownTool { similar, known, .. } => {
            (error.to_string(), other_tools(similar, known))
        }
        Error::Failed { text, hint } => (text.clone(), hint.clone().unwrap_or_default()),
        other => (other.to_string(), String::new()),
    };
    let reply = Reply::error(if next.is_empty() {
        format!("error: {what}")
    } else {
        format!("error: {what}\n{next}")
    });
    match error {
        Error::Operation(haft_ops::Error::TextNotFound { .. }) => reply.limited(super::CHANGE),
        _ => reply,
    }
}

fn operation(error: &haft_ops::Error, tools: &Offered) -> (String, String) {
    use haft_ops::Error as E;
    let what = error.to_string();
    let and = |next: &str| (what.clone(), next.to_owned());
    match error {
        E::NotFound { similar, path } if similar.is_empty() && !in_temp(path) => {
            and(tools.first(&[(&["bash"], "Use bash with ls or find to see what is there.")]))
        }
        E::CannotStart {
            refusal, detail, ..
        } => did_not_start(what, *refusal, detail),
        E::IsDirectory { .. } => and(tools.first(&[(&["bash"], "Use bash with ls to list it.")])),
        E::Binary { path, size, .. } => (
            format!("{path} appears to be a binary file ({size} bytes)"),
            "Only text and JPEG, PNG, GIF and WebP images can be shown.".to_owned(),
        ),
        E::TextNotFound { lesson, .. } => (
            "old_string not found in file".to_owned(),
            mismatch(lesson, "new_string"),
        ),
        E::Ambiguous { count, lines, .. } => (
            format!("old_string is not unique (found {count} times)"),
            format!(
                "It is on {}. Add surrounding lines to old_string until it is in one place only.",
                on_lines(lines, *count)
            ),
        ),
        E::RepeatsLine { line, text, .. } => {
            let (what, next) = repeats_line("old_string", "new_string", *line, text);
            (what, sentence(&next))
        }
        E::AlreadyThere { line, .. } => {
            let (what, next) = already_there("new_string", *line);
            (what, sentence(&next))
        }
        E::NoChange { .. } => (
            "old_string and new_string are identical".to_owned(),
            remedy_in_sentences(error, tools),
        ),
        E::EmptyOld => (
            "old_string is empty".to_owned(),
            remedy_in_sentences(error, tools),
        ),
        _ => (what, remedy_in_sentences(error, tools)),
    }
}

/// Returns the note below a truncated reply. Markers inside the text say how much is
/// missing.
pub(super) fn cut_note(_: &Cut<'_>, _: Keep, stored: Option<&StoredOutput>) -> String {
    match stored {
        None => "[the full output was not saved]".to_owned(),
        Some(stored) if stored.omitted == 0 => format!("[full output: {}]", stored.path.display()),
        Some(stored) => format!(
            "[the limit for saved outputs was reached: {} from the middle are missing]\n[full output: {}]",
            format_size(stored.omitted),
            stored.path.display()
        ),
    }
}
