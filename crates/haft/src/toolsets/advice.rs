//! Advice about failures that several text toolsets share.

use haft_ops::executor::Refusal;

/// Maximum number of tools in a message: a session may have hundreds from MCP servers.
const MAX_TOOLS: usize = 60;

/// Hint about a path in `/tmp` that does not exist.
pub(super) const PRIVATE_TEMP: &str = "In the sandbox /tmp is a private folder of this work folder, shared with its commands; the machine's own is not seen.";

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
        Some(first) => format!("{}{}.", first.to_uppercase(), chars.as_str()),
        None => String::new(),
    }
}
