//! Shared parts of the toolsets with JSON replies: adding fields, and describing exits and
//! failures.

use crate::truncate::{Cut, Keep, format_size};
use crate::{Context, Error, Invalid, Offered, Problem};
use haft_ops::executor::Exit;
use haft_ops::scope::filter::LeftOut;
use haft_ops::spill::StoredOutput;
use serde_json::Value;

/// Adds a field to an object.
pub(super) fn add(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Value::Object(fields) = object {
        fields.insert(name.to_owned(), value.into());
    }
}

/// Adds a hint below an existing one.
pub(super) fn add_hint(answer: &mut Value, hint: &str) {
    let hint = match answer.get("hint").and_then(Value::as_str) {
        Some(before) => format!("{before}\n{hint}"),
        None => hint.to_owned(),
    };
    add(answer, "hint", hint);
}

/// Returns the error for a parameter that is required for this use of a tool.
pub(super) fn missing(name: &str) -> Error {
    Error::Invalid(Invalid {
        problems: vec![Problem::Missing(name.to_owned())],
    })
}

/// Notes that a file had other names, which now have the old content.
pub(super) fn broken_links(answer: &mut Value, others: u64) {
    if others > 0 {
        let hint =
            format!("the file had other names ({others}, hard links), which keep the old content");
        add_hint(answer, &hint);
    }
}

/// Notes what was repaired in an edit, if anything.
pub(super) fn add_repaired(answer: &mut Value, repaired: &[String]) {
    if !repaired.is_empty() {
        add(answer, "repaired", repaired.join("; "));
    }
}

/// Notes how many entries rules leave out, if any.
pub(super) fn add_left_out(answer: &mut Value, left_out: LeftOut) {
    let mut summary = serde_json::Map::new();
    let counts = [("denied", left_out.denied), ("rules_ask", left_out.asks)];
    for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        summary.insert(name.to_owned(), count.into());
    }
    if !summary.is_empty() {
        add(answer, "left_out", summary);
    }
}

/// Adds as many entries as fit into `most` bytes. The others are counted and saved to a
/// file, one per line, so that they can be read in pages. Returns whether some are left
/// out.
pub(super) fn add_entries(
    answer: &mut Value,
    name: &str,
    entries: impl Iterator<Item = Value>,
    most: usize,
    cx: &Context,
) -> bool {
    let (mut shown, mut whole, mut count) = (Vec::new(), String::new(), 0_usize);
    for entry in entries {
        count += 1;
        whole.push_str(&entry.to_string());
        whole.push('\n');
        if whole.len() <= most {
            shown.push(entry);
        }
    }
    let is_cut = shown.len() < count;
    add(answer, name, shown);
    if is_cut {
        add(answer, "truncated", true);
        if let Some(path) = cx.keep_text(&whole) {
            add_output(answer, &path, cx);
        }
    }
    is_cut
}

/// Adds the path of the full output: for file tools, and for commands if they use a
/// different path.
pub(super) fn add_output(answer: &mut Value, path: &str, cx: &Context) {
    add(answer, "output_path", path);
    if let Some(host) = cx.host_path(path) {
        add(answer, "host_path", host);
    }
}

/// Returns the exit code: 128 plus the signal's number for a signal, -1 if unknown.
pub(super) fn exit_code(status: Exit) -> i32 {
    match status {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
        Exit::Unknown => -1,
    }
}

/// Removes the brackets around a note.
pub(super) fn plain(note: &str) -> &str {
    note.strip_prefix('[')
        .and_then(|note| note.strip_suffix(']'))
        .unwrap_or(note)
}

/// Explains a failed replacement; `new` is the parameter with the new text.
pub(super) fn explain_mismatch(lesson: &haft_ops::Lesson, new: &str) -> String {
    let mut explain_mismatch = String::new();
    if let Some(line) = lesson.already.first() {
        explain_mismatch.push_str(&format!(
            "{new} is already there, on line {line}: the edit may have been made before\n"
        ));
    }
    if lesson.text.is_empty() && !lesson.already.is_empty() {
        explain_mismatch.push_str("read the file again");
    } else if lesson.text.is_empty() {
        explain_mismatch.push_str(
            "nothing in the file is like it; read the file again and copy the text exactly",
        );
    } else {
        explain_mismatch.push_str(&lesson.text);
    }
    explain_mismatch
}

/// Returns what happened and what to do about it; `operation` formats errors of operations
/// in the toolset's style.
pub(super) fn describe(
    error: &Error,
    tools: &Offered,
    operation: fn(&haft_ops::Error, &Offered) -> (String, String),
) -> (String, String) {
    match error {
        Error::Operation(error) => operation(error, tools),
        Error::Refused(inner) => describe(inner, tools, operation),
        Error::UnknownTool { similar, known, .. } => {
            let suggestion = similar
                .first()
                .map(|name| format!("did you mean \"{name}\"? "));
            let known = known.join(", ");
            let next = format!("{}available tools: {known}", suggestion.unwrap_or_default());
            (error.to_string(), next)
        }
        Error::NotApproved { reason, remedy } => {
            (format!("not approved: {reason}"), remedy.clone())
        }
        Error::Failed { text, hint } => (text.clone(), hint.clone().unwrap_or_default()),
        other => (other.to_string(), String::new()),
    }
}

/// Formats a failure as a document: what happened in the field `name`, then what to do.
pub(super) fn failure(mut answer: Value, name: &str, (what, next): (String, String)) -> Value {
    add(&mut answer, name, what);
    if !next.is_empty() {
        add(&mut answer, "hint", next);
    }
    answer
}

/// Returns the note below a truncated text of another tool.
pub(super) fn cut_note(cut: &Cut<'_>, keep: Keep, stored: Option<&StoredOutput>) -> String {
    let end = if keep == Keep::Tail { "last" } else { "first" };
    let shown = format!(
        "the {end} {} of {}",
        format_size(cut.kept_bytes as u64),
        format_size(cut.total_bytes as u64)
    );
    match stored {
        Some(stored) if stored.omitted == 0 => {
            format!(
                "[truncated: {shown}; output_path: {}]",
                stored.path.display()
            )
        }
        Some(stored) => format!(
            "[truncated: {shown}; output_path: {}, without {} from the middle]",
            stored.path.display(),
            format_size(stored.omitted)
        ),
        None => format!("[truncated: {shown}; the full output was not saved]"),
    }
}
