//! What a person is shown before a call runs: whole, with nothing in it that could act
//! on the screen, and its length beside it.

#[cfg(test)]
mod tests;

use super::card::{Bound, diff_lines, wanted};
use super::ink::{Line, Style};
use haft::ops::text::decode::visible;
use haft::{Access, Question, Resource, Subject};
use serde_json::Value;
use std::path::PathBuf;

/// Longer than this, the number of characters is said.
const LONG: usize = 60;

/// How much is shown at first of an argument that is neither command nor path.
const BESIDE: usize = 400;

/// What is known around a question.
#[derive(Debug, Clone, Default)]
pub(crate) struct Around {
    /// Where a rule of the person's own would stand.
    pub(crate) file: Option<PathBuf>,
    /// What the sandbox would hold, in words.
    pub(crate) sandbox: Option<String>,
}

/// How much of it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Commands and paths whole, other long arguments by their beginning.
    Usual,
    /// Every character.
    Whole,
}

/// The question, as it stands on a screen of so many columns.
pub(crate) fn lines(
    question: &Question,
    around: &Around,
    extent: Extent,
    columns: usize,
) -> Vec<Line> {
    let tool = Style::BOLD.and(Style::YELLOW);
    let mut out = vec![match question.confirm {
        Some(_) => Line::new(&question.tool, tool)
            .and(" is running and asks before it continues:", Style::PLAIN),
        None => Line::new("Allow ", Style::PLAIN)
            .and(&question.tool, tool)
            .and(&format!(" to {}?", deed(question)), Style::PLAIN),
    }];
    if let Some(agent) = &question.agent {
        out.push(fact("agent", agent));
    }
    if let Some(text) = &question.confirm {
        out.extend(block("question", text, None, columns));
    }
    let mut told: Vec<String> = Vec::new();
    for resource in &question.resources {
        let (name, whole) = match resource {
            Resource::Command(line) => ("command", line.clone()),
            Resource::Program(argv) => ("program", Value::from(argv.clone()).to_string()),
            Resource::Path(path, _) => ("path", path.clone()),
            Resource::Host(host) => ("host", host.clone()),
            _ => continue,
        };
        out.extend(block(name, &whole, None, columns));
        told.push(whole);
    }
    let change = wanted(&question.arguments);
    if let Some(diff) = &change {
        out.extend(changed(diff, columns));
    }
    if let Value::Object(arguments) = &question.arguments {
        let in_change = ["old_text", "new_text", "old_string", "new_string"];
        for (name, value) in arguments {
            let value = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let is_told =
                told.contains(&value) || (change.is_some() && in_change.contains(&name.as_str()));
            if !is_told {
                let most = (extent == Extent::Usual).then_some(BESIDE);
                out.extend(block(name, &value, most, columns));
            }
        }
    }
    out.extend(who_asks(question));
    if let Some(sandbox) = &around.sandbox {
        out.push(fact(
            "sandbox",
            sandbox.strip_prefix("sandbox: ").unwrap_or(sandbox),
        ));
    }
    if let Some(rule) = &question.suggestion {
        let file = around.file.as_ref().map(|file| file.display().to_string());
        let file = file.as_deref().unwrap_or("haft.yaml");
        out.push(fact(
            "always",
            &format!("- {rule} first under policy in {file}"),
        ));
    }
    out
}

/// What a call would do, in words that end the question.
fn deed(question: &Question) -> &'static str {
    let mut resources = question.resources.iter();
    let deed = resources.find_map(|resource| match resource {
        Resource::Command(_) => Some("run this command"),
        Resource::Program(_) => Some("run this program"),
        Resource::Path(_, Access::Read) => Some("read this path"),
        Resource::Path(..) => Some("change this file"),
        Resource::Host(_) => Some("connect to this host"),
        _ => None,
    });
    let has_arguments = question
        .arguments
        .as_object()
        .is_some_and(|all| !all.is_empty());
    deed.unwrap_or(match has_arguments {
        true => "run with these arguments",
        false => "run",
    })
}

/// Whether [`Extent::Whole`] would show more than [`Extent::Usual`].
pub(crate) fn has_more(question: &Question, columns: usize) -> bool {
    let around = Around::default();
    lines(question, &around, Extent::Usual, columns)
        != lines(question, &around, Extent::Whole, columns)
}

/// The rules that ask, each with what it asks about.
fn who_asks(question: &Question) -> Vec<Line> {
    let mut asking: Vec<(String, Vec<String>)> = Vec::new();
    for part in question.judgement.decisive() {
        let by = part.by.to_string();
        match asking.iter_mut().find(|(known, _)| *known == by) {
            Some((_, things)) => things.push(about(part)),
            None => asking.push((by, vec![about(part)])),
        }
    }
    asking
        .into_iter()
        .map(|(by, things)| {
            let more = match things.len().saturating_sub(3) {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            let things: Vec<String> = things.into_iter().take(3).collect();
            // Of the call as a whole there is nothing to add.
            let about = match things.join("; ") {
                call if call == Subject::Call.to_string() => String::new(),
                things => format!(", about {things}{more}"),
            };
            fact("asked by", &format!("{by}{about}"))
        })
        .collect()
}

/// What a part is about, in a few characters: the whole is above.
fn about(part: &haft::Part) -> String {
    let text = part.subject.to_string();
    match text.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// Something about it, in words of ours or made harmless.
pub(crate) fn fact(name: &str, words: &str) -> Line {
    Line::new(&format!("  {name}: "), Style::DIM)
        .and(words, Style::PLAIN)
        .hanging(4)
}

fn changed(diff: &str, columns: usize) -> Vec<Line> {
    let mut out = vec![Line::new("  change:", Style::DIM)];
    for line in diff_lines(diff, Bound::NONE) {
        out.extend(barred(&line, columns));
    }
    out
}

/// A text with its name: on its lines, wrapped, each behind a bar, so that none
/// can be taken for a line of ours.
pub(super) fn block(name: &str, whole: &str, most: Option<usize>, columns: usize) -> Vec<Line> {
    let count = whole.chars().count();
    let cut = most.filter(|most| count > *most);
    let text: String = match cut {
        Some(most) => whole.chars().take(most).collect(),
        None => whole.to_owned(),
    };
    let mut notes = Vec::new();
    if count > LONG {
        notes.push(format!("{count} characters"));
    }
    if let Some(most) = cut {
        notes.push(format!("the first {most} are shown"));
    }
    let strange = strange(&text);
    if !strange.is_empty() {
        notes.push(format!("not ASCII: {strange}"));
    }
    let notes = match notes.is_empty() {
        true => String::new(),
        false => format!(" ({})", notes.join("; ")),
    };
    let mut out = vec![Line::new(&format!("  {name}{notes}:"), Style::DIM).hanging(4)];
    for row in text.split('\n') {
        out.extend(barred(&Line::plain(&row.replace('\t', "\\t")), columns));
    }
    out
}

/// The rows of a line behind a bar. No space of it is lost, nor any moved.
fn barred(line: &Line, columns: usize) -> Vec<Line> {
    let bar = || Line::new("  |", Style::DIM);
    if line.is_empty() {
        return vec![bar()];
    }
    line.pieces(columns.saturating_sub(4).max(8))
        .into_iter()
        .map(|piece| piece.behind(bar().and(" ", Style::PLAIN)))
        .collect()
}

/// Letters that may look like others, by their numbers; the first few.
fn strange(text: &str) -> String {
    let mut seen: Vec<char> = Vec::new();
    for c in text.chars().filter(|c| !c.is_ascii()) {
        if !seen.contains(&c) {
            seen.push(c);
        }
        if seen.len() > 8 {
            break;
        }
    }
    let named = |c: &char| format!("{} U+{:04X}", visible(&c.to_string()), u32::from(*c));
    let mut names: Vec<String> = seen.iter().take(8).map(named).collect();
    if seen.len() > 8 {
        names.push("…".to_owned());
    }
    names.join(", ")
}
