//! Replies of `workspace`: one JSON object, with what happened in `error` and what
//! to do about it in `hint`.

pub(super) use crate::toolsets::document::{
    add, add_entries, add_hint, add_left_out, add_repaired, broken_links, cut_note, exit_code,
    missing, plain,
};

use crate::toolsets::advice::{already_there, cannot_start, remedy, repeats_line};
use crate::toolsets::document::{self, explain_mismatch};
use crate::truncate::format_size;
use crate::{Error, Offered, Reply};
use haft_ops::executor::Refusal;
use serde_json::{Value, json};

/// Adds the size of a truncated stream.
pub(super) fn add_size(answer: &mut Value, stream: &str, bytes: u64, lines: u64) {
    add(answer, &format!("{stream}_bytes"), bytes);
    add(answer, &format!("{stream}_lines"), lines);
}

/// Adds notes in brackets to the hint of an answer.
pub(super) fn add_hints(answer: &mut Value, notes: &[String]) {
    if !answer.is_object() || notes.is_empty() {
        return;
    }
    let own = answer["hint"].as_str().map(str::to_owned).into_iter();
    let hints = own.chain(notes.iter().map(|note| plain(note).to_owned()));
    let hints: Vec<String> = hints.collect();
    add(answer, "hint", hints.join("\n"));
}

/// Formats a failure.
pub(super) fn failure(error: &Error, tools: &Offered) -> Reply {
    let failure_text = document::describe(error, tools, operation);
    let answer = document::failure(json!({ "success": false }), "error", failure_text);
    let mut reply = Reply::json(answer);
    reply.is_error = true;
    reply
}

fn operation(error: &haft_ops::Error, tools: &Offered) -> (String, String) {
    use haft_ops::Error as E;
    let what = error.to_string();
    let next = match error {
        E::NotFound { similar, .. } if similar.is_empty() => {
            tools
                .first(&[
                    (&["list"], "use list to see what is there"),
                    (&["exec"], "use exec with ls to see what is there"),
                ])
                .to_owned()
        }
        E::IsDirectory { .. } => tools
            .first(&[
                (&["list"], "use list to see what is in it; only single files are read, written and deleted"),
                (&[], "only single files are read, written and deleted"),
            ])
            .to_owned(),
        E::Binary { size, kind, .. } => {
            let kind = kind.map(|kind| format!(", {kind}")).unwrap_or_default();
            format!("it has {}{kind}; only text can be shown", format_size(*size))
        }
        E::PastEnd { .. } => "use a smaller offset".to_owned(),
        E::TextNotFound { lesson, .. } => {
            return ("old_text not found in file".to_owned(), explain_mismatch(lesson, "new_text"));
        }
        E::RepeatsLine { line, text, .. } => {
            return repeats_line("old_text", "new_text", *line, text);
        }
        E::AlreadyThere { line, .. } => return already_there("new_text", *line),
        E::NoChange { .. } => {
            let next = "the file already is as it would become".to_owned();
            return ("edit made no changes".to_owned(), next);
        }
        E::EmptyOld => {
            let next = tools.first(&[
                (&["write"], "leave it out to replace a range of lines, or use write to replace the whole file"),
                (&[], "leave it out to replace a range of lines"),
            ]);
            return ("old_text must not be empty when provided".to_owned(), next.to_owned());
        }
        E::LineRange { lines: 1 } => "the file has one line".to_owned(),
        E::LineRange { lines } => format!("the file has {lines} lines"),
        E::Contended { .. } | E::Locked { .. } => {
            "another program is writing it; try again".to_owned()
        }
        E::UnknownChannel { known, .. } if known.is_empty() => {
            "no channels are configured; they are set up under `tools.channels` in the person's haft.yaml".to_owned()
        }
        E::UnknownChannel { known, .. } => format!("there are: {}", known.join(", ")),
        E::NotSent { uncertain: true, .. } => {
            "check whether it arrived before sending it again".to_owned()
        }
        E::PortElsewhere { .. } => {
            "wait for a line of its output instead: until=log with a pattern".to_owned()
        }
        E::NoProcess { .. } => "use the action list to see which there are".to_owned(),
        E::CannotStart { refusal: Refusal::Missing, .. } => {
            "it is not installed, or not in PATH; an array is run without a shell".to_owned()
        }
        E::CannotStart { refusal, detail, .. } => return cannot_start(what, *refusal, detail),
        _ => remedy(error, tools).unwrap_or_default(),
    };
    (what, next)
}
