//! The words for decisions about calls: which rule asks or denies, about what, and what the
//! user can do.

use crate::{DecidedBy, Error, JudgedPart, Judgement, Subject, Suggestion, Verdict};

/// Maximum number of characters of a call that a refusal repeats. The caller knows the
/// rest.
const MAX_CALL_CHARS: usize = 200;

pub(in crate::runtime) fn denied(tool: &str, judgement: &Judgement) -> Error {
    Error::Denied {
        reason: reason_of(tool, judgement, ""),
    }
}

pub(in crate::runtime) fn not_approved(
    tool: &str,
    judgement: &Judgement,
    suggestion: Option<&Suggestion>,
    waits: bool,
    why: &str,
) -> Error {
    if waits {
        return Error::NotApproved {
            reason: reason_of(tool, judgement, why),
            remedy: "This call always needs the user's approval: in a terminal, or through `haft run` and `haft resume`.".to_owned(),
        };
    }
    let rule = suggestion
        .map(|suggestion| {
            let noun = match suggestion.rules() {
                [_] => "rule",
                _ => "rules",
            };
            format!(", or the {noun} {suggestion} at the top of `policy` in their own settings")
        })
        .unwrap_or_default();
    Error::NotApproved {
        reason: reason_of(tool, judgement, why),
        remedy: format!("The user can allow it with --approve auto{rule}."),
    }
}

/// Returns one line: which rule asks or denies, about what, and what happened.
pub(in crate::runtime) fn reason_of(tool: &str, judgement: &Judgement, why: &str) -> String {
    let mut decisive = judgement.decisive();
    let mut reason = match decisive.next() {
        Some(part) => describe(tool, part),
        None => tool.to_owned(),
    };
    match decisive.count() {
        0 => {}
        1 => reason.push_str(", and one more part of the call"),
        more => reason.push_str(&format!(", and {more} more parts of the call")),
    }
    if !why.is_empty() {
        reason.push_str(", ");
        reason.push_str(why);
    }
    on_one_line(reason)
}

/// Escapes control characters, so that text from the model or the user cannot pose as
/// separate lines.
pub(in crate::runtime) fn on_one_line(text: String) -> String {
    match text.contains(char::is_control) {
        true => text.chars().flat_map(escaped).collect(),
        false => text,
    }
}

fn escaped(c: char) -> Vec<char> {
    if c.is_control() {
        c.escape_default().collect()
    } else {
        vec![c]
    }
}

fn describe(tool: &str, part: &JudgedPart) -> String {
    let about = match part.subject {
        Subject::Call => tool.to_owned(),
        _ => format!("{tool}, {}", part.subject),
    };
    let about = match about.char_indices().nth(MAX_CALL_CHARS) {
        Some((end, _)) => format!("{}…", haft_ops::text::decode::prefix(&about, end)),
        None => about,
    };
    match (&part.by, part.verdict) {
        (DecidedBy::Rule(rule, place), Verdict::Deny) => {
            format!("{place} denies this call ({rule}): {about}")
        }
        (DecidedBy::Rule(rule, place), Verdict::Review) => {
            format!("{place} requires a review ({rule}): {about}")
        }
        (DecidedBy::Rule(rule, place), _) => format!("{place} requires approval ({rule}): {about}"),
        (DecidedBy::NotAnalysed(place), _) => {
            format!(
                "{place} has a rule about commands, and this line may do more than its commands tell: {about}"
            )
        }
        (DecidedBy::Inner(place), _) => format!(
            "{place} allows a command, but not those that it runs or whose output it is given: {about}"
        ),
        (DecidedBy::Unreadable { rule, place, why }, verdict) => {
            let has = match verdict {
                Verdict::Deny => "denies commands",
                _ => "has a rule about commands",
            };
            format!(
                "{place} {has} ({rule}), and this call cannot be checked against it: {why}; \
                 write each command with literal words, or have the user change that rule: {about}"
            )
        }
        (DecidedBy::Session(reason), _) => format!("{reason}: {about}"),
        (DecidedBy::Danger(danger), Verdict::Ask) => {
            format!("needs approval, because {danger}: {about}")
        }
        (DecidedBy::Danger(danger), _) => format!("needs a review, because {danger}: {about}"),
        (DecidedBy::Default, _) => about,
    }
}
