//! How `workspace` words its replies: one JSON object, with what happened in
//! `error` and what to do about it in `hint`.

use crate::truncate::{Cut, Keep, format_size};
use crate::{Error, Invalid, Problem, Reply};
use haft_ops::executor::{Exit, Refusal};
use haft_ops::spill::Kept;
use serde_json::{Value, json};

/// Adds a field to an object.
pub(super) fn add(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Value::Object(fields) = object {
        fields.insert(name.to_owned(), value.into());
    }
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

/// A failure.
pub(super) fn failure(error: &Error) -> Reply {
    let (what, next) = match error {
        Error::Operation(error) => operation(error),
        Error::Refused(inner) => return failure(inner),
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
    };
    let mut answer = json!({ "success": false, "error": what });
    if !next.is_empty() {
        add(&mut answer, "hint", next);
    }
    let mut reply = Reply::json(&answer);
    reply.is_error = true;
    reply
}

fn operation(error: &haft_ops::Error) -> (String, String) {
    use haft_ops::Error as E;
    let what = error.to_string();
    let next = match error {
        E::NotAllowed { remedy, .. } => remedy.clone(),
        E::Protected { .. } => "it is never changed, whatever the mode".to_owned(),
        E::NotFound { similar, .. } if similar.is_empty() => {
            "use list to see what is there".to_owned()
        }
        E::NotFound { similar, .. } => format!("did you mean: {}?", similar.join(", ")),
        E::IsDirectory { .. } => "use list to see what is in it; only single files are read, written and deleted".to_owned(),
        E::NotADirectory { .. } => "a part of the path is a file".to_owned(),
        E::NotRegular { .. } => "only regular files can be read and written".to_owned(),
        E::Binary { size, kind, .. } => {
            let kind = kind.map(|kind| format!(", {kind}")).unwrap_or_default();
            format!("it has {}{kind}; only text can be shown", format_size(*size))
        }
        E::Encoding { .. } => "only text in an encoding that extends ASCII can be edited in place; use write to replace the whole file".to_owned(),
        E::PastEnd { .. } => "use a smaller offset".to_owned(),
        E::TextNotFound { lesson, .. } => {
            return ("old_text not found in file".to_owned(), taught(lesson));
        }
        E::NoChange { .. } => {
            let next = "the file already is as it would become".to_owned();
            return ("edit made no changes".to_owned(), next);
        }
        E::EmptyOld => {
            let next = "leave it out to replace a range of lines, or use write to replace the whole file".to_owned();
            return ("old_text must not be empty when provided".to_owned(), next);
        }
        E::LineRange { lines: 1 } => "the file has one line".to_owned(),
        E::LineRange { lines } => format!("the file has {lines} lines"),
        E::Contended { .. } | E::Locked { .. } => {
            "another program is writing it; try again".to_owned()
        }
        E::NoProcess { .. } => "use the action list to see which there are".to_owned(),
        E::CannotStart { refusal, detail, .. } => return cannot_start(what, *refusal, detail),
        _ => String::new(),
    };
    (what, next)
}

/// What a failed replacement teaches.
fn taught(lesson: &haft_ops::Lesson) -> String {
    let mut taught = String::new();
    if let Some(line) = lesson.already.first() {
        taught.push_str(&format!(
            "new_text is already there, on line {line}: the edit may have been made before\n"
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

/// A command that did not begin, and what to do about it.
fn cannot_start(what: String, refusal: Refusal, detail: &str) -> (String, String) {
    let next = match refusal {
        Refusal::Unconfined => {
            return (
                format!("the command was not run, because it could not be confined: {detail}"),
                "`haft doctor` says what this machine can enforce; `--sandbox off` runs commands unconfined".to_owned(),
            );
        }
        Refusal::TooLong => {
            return (
                "the command is longer than the system takes (128KB for one argument)".to_owned(),
                "write it to a file with write, and run that".to_owned(),
            );
        }
        Refusal::Missing => "it is not installed, or not in PATH; an array is run without a shell",
        Refusal::NoDirectory => "the working directory is gone, or cannot be entered",
        Refusal::NotExecutable | Refusal::NoSupervisor | Refusal::Other => "",
    };
    (what, next.to_owned())
}

/// What stands under a text of another tool that was cut: replies of this
/// toolset are documents and keep themselves short.
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
