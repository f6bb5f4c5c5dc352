//! Advice about failures that several toolsets share.

use crate::Offered;
use haft_ops::Error as E;
use haft_ops::executor::Refusal;

/// Maximum number of tools in a message: a session may have hundreds from MCP servers.
const MAX_TOOLS: usize = 60;

/// Hint about a path in `/tmp` that does not exist.
const PRIVATE_TEMP: &str = "In the sandbox /tmp is a private folder of this work folder, shared with its commands; the machine's own is not seen.";

/// Lists the existing tools after a call of an unknown one.
pub(super) fn other_tools(similar: &[String], known: &[String]) -> String {
    let suggestion = similar
        .first()
        .map(|name| format!("Did you mean \"{name}\"? "));
    format!(
        "{}Available tools: {}.",
        suggestion.unwrap_or_default(),
        haft_ops::text::few(known, MAX_TOOLS)
    )
}

/// Note that a file had other names, which now have the old content.
pub(super) fn broken_links(others: u64) -> String {
    let names = if others == 1 {
        "one other name".to_owned()
    } else {
        format!("{others} other names")
    };
    format!("The file had {names} (hard links), which keep the old content.")
}

/// Note about content with line numbers, which models copy from the replies of tools.
pub(super) fn numbered(content: &str) -> Option<&'static str> {
    haft_ops::text::lines::are_numbered(content).then_some(
        "every line of the content starts with a line number; if they were copied from a reply, write it again without them",
    )
}

/// Says what was repaired in an edit, if anything.
pub(super) fn repaired(repairs: &[String]) -> Option<String> {
    (!repairs.is_empty()).then(|| format!("Repaired: {}.", repairs.join("; ")))
}

/// Describes an edit whose new text repeats the line that the old one is a part of.
pub(super) fn repeats_line(old: &str, new: &str, line: usize, text: &str) -> (String, String) {
    let text = haft_ops::text::brief::brief(text.trim(), 200);
    (
        format!("{old} is a part of line {line}, and {new} repeats the rest of the line"),
        format!("give the complete line in {old}: `{text}`"),
    )
}

/// Describes an edit that adds what is already there.
pub(super) fn already_there(new: &str, line: usize) -> (String, String) {
    (
        format!("{new} is already there, on line {line}"),
        "nothing was changed: the edit may have been made before".to_owned(),
    )
}

/// Returns what to do about a failed operation, as a clause, where all toolsets say the same.
pub(super) fn remedy(error: &E, tools: &Offered) -> Option<String> {
    let clause = match error {
        E::NotAllowed { remedy, .. } => remedy,
        E::Protected {
            reason: Some(reason),
            ..
        } => reason,
        E::Protected { .. } => "it is never changed, whatever the mode",
        E::NotFound { similar, .. } if !similar.is_empty() => {
            return Some(format!("did you mean: {}?", similar.join(", ")));
        }
        E::NotADirectory { .. } => "a part of the path is a file",
        E::NotRegular { .. } => "only regular files can be read and written",
        E::Encoding { .. } => tools.first(&[
            (&["write"], "only text in an encoding that extends ASCII can be edited in place; use write to replace the whole file"),
            (&[], "only text in an encoding that extends ASCII can be edited in place"),
        ]),
        _ => return None,
    };
    Some(clause.to_owned())
}

/// Same as [`remedy`], as sentences, and with what both text toolsets add.
pub(super) fn remedy_in_sentences(error: &E, tools: &Offered) -> String {
    match error {
        E::NotFound { path, .. } if in_temp(path) => PRIVATE_TEMP.to_owned(),
        E::NoChange { .. } => "Nothing was changed.".to_owned(),
        E::EmptyOld => {
            let next = tools.first(&[
                (
                    &["write"],
                    "Give the text to replace, or use write to replace the whole file.",
                ),
                (&[], "Give the text to replace."),
            ]);
            next.to_owned()
        }
        E::Contended { .. } | E::Locked { .. } => {
            "Another program is writing it. Try again.".to_owned()
        }
        _ => sentence(&remedy(error, tools).unwrap_or_default()),
    }
}

/// Returns what is like a text that was not found, in sentences. `new` is the parameter with
/// the text to replace it.
pub(super) fn mismatch(lesson: &haft_ops::Lesson, new: &str) -> String {
    let already = lesson.already.first().map(|line| {
        format!("{new} is already there, on line {line}: the edit may have been made before.\n")
    });
    let text = match lesson.text.as_str() {
        "" if already.is_some() => "Read the file again.",
        "" => "Nothing in the file is like it. Read the file again and copy the text exactly.",
        text => text,
    };
    already.unwrap_or_default() + text
}

pub(super) fn in_temp(path: &str) -> bool {
    ["/tmp/", "/var/tmp/"]
        .iter()
        .any(|temp| path.starts_with(temp))
}

/// Formats the lines that a text starts on, without duplicates: `line 3`, `lines 2, 5`.
pub(super) fn on_lines(lines: &[usize], count: usize) -> String {
    // At most twenty lines are reported.
    let more = if lines.len() >= 20 && count > 20 {
        ", …"
    } else {
        ""
    };
    let mut each = lines.to_vec();
    each.dedup();
    match each.as_slice() {
        [one] if more.is_empty() => format!("line {one}"),
        several => {
            let several: Vec<String> = several.iter().map(ToString::to_string).collect();
            format!("lines {}{more}", several.join(", "))
        }
    }
}

/// Returns what happened to a command that could not be started, and what to do about it,
/// as a clause.
pub(super) fn cannot_start(what: String, refusal: Refusal, detail: &str) -> (String, String) {
    let next = match refusal {
        Refusal::Unconfined => {
            return (
                format!("the command was not run, because it could not be confined: {detail}"),
                "`haft doctor` says what this machine can enforce; `--sandbox off` runs commands unconfined".to_owned(),
            );
        }
        Refusal::CannotHide => {
            return (
                format!("the command was not run: {detail}"),
                "a person can change the rule in haft.yaml; `--sandbox off` runs commands that nothing is hidden from".to_owned(),
            );
        }
        Refusal::Stuck => {
            return (
                format!("the command was not run: {detail}"),
                "no command runs until it is gone; ask the person to remove it".to_owned(),
            );
        }
        Refusal::TooLong => {
            return (
                "the command is longer than the system takes (128KB for one argument)".to_owned(),
                "write it to a file, and run that".to_owned(),
            );
        }
        Refusal::Missing => "it is not installed, or not in PATH",
        Refusal::Busy => {
            return (
                format!("the command was not run, because the machine had no room for it just now: {detail}"),
                "try again in a moment; if it stays so, something else has used up the processes, memory or namespaces of this user".to_owned(),
            );
        }
        Refusal::Written => {
            return (
                format!("{what}: another program has the file open for writing"),
                "wait until that program has closed it, then try again".to_owned(),
            );
        }
        Refusal::NoDirectory => "its folder is gone, or cannot be entered",
        Refusal::NotExecutable | Refusal::NoSupervisor | Refusal::Other => "",
    };
    (what, next.to_owned())
}

/// Same as [`cannot_start`], as sentences.
pub(super) fn did_not_start(what: String, refusal: Refusal, detail: &str) -> (String, String) {
    let (what, next) = cannot_start(what, refusal, detail);
    (what, sentence(&next))
}

/// Turns the clause of a remedy into a sentence.
pub(super) fn sentence(clause: &str) -> String {
    let mut chars = clause.chars();
    match chars.next() {
        Some(first) => {
            let end = if clause.ends_with('?') { "" } else { "." };
            format!("{}{}{end}", first.to_uppercase(), chars.as_str())
        }
        None => String::new(),
    }
}
