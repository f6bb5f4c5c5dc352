//! What toolsets of JSON replies share: documents that grow by a field, and what is
//! said in them of ends and failures.

use crate::truncate::{Cut, Keep, format_size};
use crate::{Context, Error, Invalid, Offered, Problem};
use haft_ops::executor::Exit;
use haft_ops::scope::closing::LeftOut;
use haft_ops::spill::Kept;
use serde_json::Value;

/// Adds a field to an object.
pub(super) fn add(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Value::Object(fields) = object {
        fields.insert(name.to_owned(), value.into());
    }
}

/// Adds a hint, below the one that is there already.
pub(super) fn add_hint(answer: &mut Value, hint: &str) {
    let hint = match answer.get("hint").and_then(Value::as_str) {
        Some(before) => format!("{before}\n{hint}"),
        None => hint.to_owned(),
    };
    add(answer, "hint", hint);
}

/// A parameter that this use of a tool needs and that is not there.
pub(super) fn missing(name: &str) -> Error {
    Error::Invalid(Invalid {
        problems: vec![Problem::Missing(name.to_owned())],
    })
}

/// Says that a file had other names, which now have the old content.
pub(super) fn broken_links(answer: &mut Value, others: u64) {
    if others > 0 {
        let hint =
            format!("the file had other names ({others}, hard links), which keep the old content");
        add(answer, "hint", hint);
    }
}

/// Says how many entries rules leave out, where they do.
pub(super) fn add_left_out(answer: &mut Value, left_out: LeftOut) {
    let mut said = serde_json::Map::new();
    let counts = [("denied", left_out.denied), ("rules_ask", left_out.asks)];
    for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        said.insert(name.to_owned(), count.into());
    }
    if !said.is_empty() {
        add(answer, "left_out", said);
    }
}

/// Puts as many entries into a field as `most` bytes hold. What is left out is said,
/// and kept with the rest in a file, one entry a line, so that it can be paged.
/// Answers whether some are left out.
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

/// Says where the whole of an output is: for file tools, and for commands where they
/// know it by another name.
pub(super) fn add_output(answer: &mut Value, path: &str, cx: &Context) {
    add(answer, "output_path", path);
    if let Some(host) = cx.host_path(path) {
        add(answer, "host_path", host);
    }
}

/// The number of an end: 128 and the signal's when one ended it, -1 when nobody
/// knows.
pub(super) fn exit_code(status: Exit) -> i32 {
    match status {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
        Exit::Unknown => -1,
    }
}

/// A note without the brackets that set it off from an output.
pub(super) fn plain(note: &str) -> &str {
    note.strip_prefix('[')
        .and_then(|note| note.strip_suffix(']'))
        .unwrap_or(note)
}

/// What a failed replacement teaches; `new` is the parameter with the new text.
pub(super) fn taught(lesson: &haft_ops::Lesson, new: &str) -> String {
    let mut taught = String::new();
    if let Some(line) = lesson.already.first() {
        taught.push_str(&format!(
            "{new} is already there, on line {line}: the edit may have been made before\n"
        ));
    }
    if lesson.text.is_empty() {
        taught.push_str(
            "nothing in the file is like it; read the file again and copy the text exactly",
        );
    } else {
        taught.push_str(&lesson.text);
    }
    taught
}

/// What happened and what to do about it; `operation` has the toolset's own words.
pub(super) fn said_of(
    error: &Error,
    tools: &Offered,
    operation: fn(&haft_ops::Error, &Offered) -> (String, String),
) -> (String, String) {
    match error {
        Error::Operation(error) => operation(error, tools),
        Error::Refused(inner) => said_of(inner, tools, operation),
        Error::UnknownTool { similar, known, .. } => {
            let meant = similar
                .first()
                .map(|name| format!("did you mean \"{name}\"? "));
            let known = known.join(", ");
            let next = format!("{}available tools: {known}", meant.unwrap_or_default());
            (error.to_string(), next)
        }
        Error::NotApproved { reason, remedy } => {
            (format!("not approved: {reason}"), remedy.clone())
        }
        Error::Failed { text, hint } => (text.clone(), hint.clone().unwrap_or_default()),
        other => (other.to_string(), String::new()),
    }
}

/// A failure as a document: what happened in the field `name`, then what to do.
pub(super) fn failure(mut answer: Value, name: &str, (what, next): (String, String)) -> Value {
    add(&mut answer, name, what);
    if !next.is_empty() {
        add(&mut answer, "hint", next);
    }
    answer
}

/// What stands under a text of another tool that was cut.
pub(super) fn cut_note(cut: &Cut<'_>, keep: Keep, kept: Option<&Kept>) -> String {
    let end = if keep == Keep::Tail { "last" } else { "first" };
    let shown = format!(
        "the {end} {} of {}",
        format_size(cut.kept_bytes as u64),
        format_size(cut.total_bytes as u64)
    );
    match kept {
        Some(kept) if kept.omitted == 0 => {
            format!("[truncated: {shown}; output_path: {}]", kept.path.display())
        }
        Some(kept) => format!(
            "[truncated: {shown}; output_path: {}, without {} from the middle]",
            kept.path.display(),
            format_size(kept.omitted)
        ),
        None => format!("[truncated: {shown}; the whole was not kept]"),
    }
}
