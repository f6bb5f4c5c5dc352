//! Replies of `deepagents`: one JSON object with `status`, what happened in
//! `message` and what to do about it in `hint`.

use crate::toolsets::advice::{already_there, cannot_start, on_lines, remedy, repeats_line};
use crate::toolsets::document::{self, explain_mismatch};
use crate::truncate::format_size;
use crate::{Error, Offered, Reply};
use serde_json::{Value, json};

pub(super) use crate::toolsets::document::{
    add, add_entries, add_left_out, add_output, add_repaired, broken_links, cut_note, exit_code,
    plain,
};

/// Returns a success with these fields.
pub(super) fn success(fields: Value) -> Value {
    let mut answer = json!({ "status": "success" });
    if let Value::Object(fields) = fields {
        for (name, value) in fields {
            add(&mut answer, &name, value);
        }
    }
    answer
}

/// Formats a failure.
pub(super) fn failure(error: &Error, tools: &Offered) -> Reply {
    let failure_text = document::describe(error, tools, operation);
    let answer = document::failure(json!({ "status": "error" }), "message", failure_text);
    let mut reply = Reply::json(answer);
    reply.is_error = true;
    reply
}

/// Returns the message for a new file whose path exists.
pub(super) fn already_exists(path: &str, tools: &Offered) -> String {
    let next = tools.first(&[(&["edit_file"], ". Use edit_file to modify.")]);
    format!("File already exists: {path}{next}")
}

fn operation(error: &haft_ops::Error, tools: &Offered) -> (String, String) {
    use haft_ops::Error as E;
    use haft_ops::scope::spelling::Misspelling;
    let what = error.to_string();
    let next = match error {
        E::Misspelt { how, path } => {
            let root = "paths start with /, which is the root of the workspace";
            let outside = format!("{root}; nothing outside it can be named");
            let (what, next) = match how {
                Misspelling::Relative => {
                    let name = path.trim_start_matches(['@', ' ']);
                    let name = name.strip_prefix("./").unwrap_or(name);
                    ("Path must be absolute", format!("{root}: use /{name}"))
                }
                Misspelling::Traversal => (
                    "Path traversal not allowed",
                    "write the path without ..".to_owned(),
                ),
                Misspelling::Home => ("Home directory expansion not allowed", outside),
                Misspelling::Slash => (
                    "Path ends with a slash",
                    "that means a directory, and only files can be written or deleted; leave the slash out to name a file".to_owned(),
                ),
                Misspelling::CommandsOnly => (
                    "Path is outside the file tools' tree",
                    "that folder is on the disk, where commands run; the files of the other tools are not there: their paths start from /, and commands do not see them".to_owned(),
                ),
                Misspelling::Drive => ("Windows absolute paths not allowed", outside),
            };
            return (format!("{what}: {path}"), next);
        }
        E::NotFound { similar, .. } if similar.is_empty() => {
            let next = tools.first(&[
                (&["ls", "glob"], "use ls or glob to see what is there"),
                (&["ls"], "use ls to see what is there"),
                (&["glob"], "use glob to see what is there"),
            ]);
            return (format!("Error: {what}"), next.to_owned());
        }
        E::IsDirectory { .. } => {
            let next = tools.first(&[(&["ls"], "use ls to see what is in it")]);
            return (format!("Error: {what}"), next.to_owned());
        }
        E::NotFound { .. } | E::NotADirectory { .. } => {
            let next = remedy(error, tools).unwrap_or_default();
            return (format!("Error: {what}"), next);
        }
        E::TooLarge { path, size, limit } => {
            return (
                format!("Error: file too large ({size} bytes, max {limit} bytes): {path}"),
                tools
                    .first(&[
                        (
                            &["grep", "execute"],
                            "search it with grep, or look at a part of it with execute",
                        ),
                        (&["grep"], "search it with grep"),
                        (&["execute"], "look at a part of it with execute"),
                    ])
                    .to_owned(),
            );
        }
        E::Binary { size, kind, .. } => {
            let kind = kind.map(|kind| format!(", {kind}")).unwrap_or_default();
            let next = format!(
                "it has {}{kind}; only text and images can be shown",
                format_size(*size)
            );
            return (format!("Error: {what}"), next);
        }
        E::AlreadyExists { path } => {
            return (already_exists(path, tools), String::new());
        }
        E::TextNotFound { lesson, .. } => {
            let what = "old_string not found in file content".to_owned();
            return (what, explain_mismatch(lesson, "new_string"));
        }
        E::Ambiguous { count, lines, .. } => {
            let what = format!(
                "old_string appears {count} times. Provide more context to make it unique, or set replace_all=True."
            );
            return (what, format!("it begins on {}", on_lines(lines, *count)));
        }
        E::RepeatsLine { line, text, .. } => {
            return repeats_line("old_string", "new_string", *line, text);
        }
        E::AlreadyThere { line, .. } => return already_there("new_string", *line),
        E::NoChange { .. } => {
            return (
                "old_string and new_string are identical".to_owned(),
                String::new(),
            );
        }
        E::EmptyOld => {
            let what = "old_string must not be empty".to_owned();
            let next =
                "give the text to replace; to add text, replace a line with itself and the new one"
                    .to_owned();
            return (what, next);
        }
        E::Contended { .. } | E::Locked { .. } => {
            "another program is writing it; try again".to_owned()
        }
        E::CannotStart {
            refusal, detail, ..
        } => return cannot_start(what, *refusal, detail),
        _ => remedy(error, tools).unwrap_or_default(),
    };
    (what, next)
}
