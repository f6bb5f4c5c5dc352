//! An approval question: the whole call, sanitized, with the length of long arguments.

#[cfg(test)]
mod tests;

use crate::card::{RowLimit, diff_lines, requested_diff};
use crate::diff::Numbers;
use crate::highlight::Highlighter;
use crate::styled_text::{Line, Style, plain_text};
use haft::effects::Diff;
use haft::ops::text::decode::visible;
use haft::{Access, Question, Resource, Review, Subject};
use serde_json::Value;

/// Texts with more characters than this are shown with their length.
const SHOW_LENGTH_FROM: usize = 60;

/// Maximum characters of an argument that is not a command or path, before the user asks
/// for all.
const MAX_BRIEF_ARGUMENT: usize = 400;

/// Facts that every question of a session shows.
#[derive(Debug, Clone, Default)]
pub struct QuestionContext {
    /// Description of the sandbox that the call would run in.
    pub sandbox: Option<String>,
}

/// Level of detail for the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Commands and paths in full, other long arguments truncated.
    Brief,
    /// Everything.
    Full,
}

/// Formats an approval question as plain text, for a terminal with this many columns.
/// Control characters from the model or the tool are escaped.
pub fn question_text(
    question: &Question,
    context: &QuestionContext,
    detail: Detail,
    columns: usize,
) -> String {
    plain_text(&question_lines(question, context, detail, columns), columns)
}

pub(crate) fn question_lines(
    question: &Question,
    context: &QuestionContext,
    detail: Detail,
    columns: usize,
) -> Vec<Line> {
    let tool = Style::BOLD.and(Style::YELLOW);
    if let Some(review) = &question.review {
        return review_lines(question, review, detail);
    }
    if question.call_id.is_empty() {
        let mut out = vec![Line::new(&format!("{}?", question.tool), tool)];
        let text = question.confirm.as_deref().unwrap_or_default();
        out.extend(text.lines().map(|line| Line::plain(&format!("  {line}"))));
        return out;
    }
    let mut out = vec![match question.confirm {
        Some(_) => Line::new(&question.tool, tool)
            .and(" is running and asks before it continues:", Style::PLAIN),
        None => Line::new("Allow ", Style::PLAIN)
            .and(&question.tool, tool)
            .and(&format!(" to {}?", action(question)), Style::PLAIN),
    }];
    if let Some(agent) = &question.agent {
        out.push(fact("agent", agent));
    }
    if let Some(text) = &question.confirm {
        out.extend(block("question", text, None, columns));
    }
    let mut printed: Vec<String> = Vec::new();
    for resource in &question.resources {
        let (name, whole) = match resource {
            Resource::Command(line) => ("command", line.clone()),
            Resource::Program(argv) => ("program", Value::from(argv.clone()).to_string()),
            Resource::Path(path, _) => ("path", path.clone()),
            Resource::Host(host) => ("host", host.clone()),
            _ => continue,
        };
        out.extend(block(name, &whole, None, columns));
        printed.push(whole);
    }
    let change = requested_diff(&question.arguments);
    if let Some(diff) = &change {
        let names = ["path", "file_path"].iter();
        let mut paths = names.filter_map(|name| question.arguments.get(*name)?.as_str());
        out.extend(diff_block(diff, paths.next().unwrap_or_default(), columns));
    }
    if let Value::Object(arguments) = &question.arguments {
        let in_change = ["old_text", "new_text", "old_string", "new_string"];
        for (name, value) in arguments {
            let value = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let is_printed = printed.contains(&value)
                || (change.is_some() && in_change.contains(&name.as_str()));
            if !is_printed {
                let most = (detail == Detail::Brief).then_some(MAX_BRIEF_ARGUMENT);
                out.extend(block(name, &value, most, columns));
            }
        }
    }
    out.extend(asking_rules(question));
    if let Some(sandbox) = &context.sandbox {
        out.push(fact(
            "sandbox",
            sandbox.strip_prefix("sandbox: ").unwrap_or(sandbox),
        ));
    }
    if let Some(rules) = &question.suggestion {
        let scopes = match &question.rules_file {
            Some(file) => format!("for this session, or always in {}", file.display()),
            None => "for this session".to_owned(),
        };
        out.push(fact("rule", &format!("{rules} ({scopes})")));
    }
    out
}

/// A question in few lines.
pub(crate) struct Summary {
    pub(crate) lines: Vec<Line>,
    /// Whether something is left out.
    pub(crate) has_more: bool,
}

/// Formats a question in at most `room` rows. What runs comes first; if not all of it fits,
/// a line says so.
pub(crate) fn summary(
    question: &Question,
    context: &QuestionContext,
    columns: usize,
    room: usize,
) -> Summary {
    let (head, body, footer) = match question.call_id.is_empty() || question.review.is_some() {
        true => {
            let mut lines = question_lines(question, context, Detail::Brief, columns);
            let body = lines.split_off(1.min(lines.len()));
            (lines, body, Vec::new())
        }
        false => parts(question, context, columns),
    };
    let rows = |lines: Vec<Line>| -> Vec<Line> {
        lines
            .iter()
            .flat_map(|line| line.all_rows(columns))
            .collect()
    };
    let (mut lines, mut body) = (rows(head), rows(body));
    // The reasons take one row each, and are left out before what runs.
    let is_cut = footer.iter().any(|line| line.width() > columns);
    let reasons = footer.len();
    let mut footer: Vec<Line> = footer.iter().map(|line| line.truncated(columns)).collect();
    footer.truncate(room.saturating_sub(lines.len() + body.len().min(2)));
    let space = room.saturating_sub(lines.len() + footer.len()).max(1);
    let is_long = body.len() > space;
    let has_more = is_long || is_cut || footer.len() < reasons;
    if is_long {
        // The end is shown too: it may be what matters.
        let kept = space - 1;
        let ends = body.split_off(body.len() - (kept / 2).min(3));
        let hidden = body.len() + ends.len() - kept;
        body.truncate(kept - ends.len());
        let name = if hidden == 1 { "line" } else { "lines" };
        let words = format!("  … {hidden} more {name}: press v");
        body.push(Line::new(&words, Style::YELLOW));
        body.extend(ends);
    }
    lines.extend(body);
    lines.extend(footer);
    Summary { lines, has_more }
}

/// The question, what would run, and the reasons.
fn parts(
    question: &Question,
    context: &QuestionContext,
    columns: usize,
) -> (Vec<Line>, Vec<Line>, Vec<Line>) {
    let tool = Style::BOLD.and(Style::YELLOW);
    let mut head = match question.confirm {
        Some(_) => Line::new(&question.tool, tool).and(" asks before it continues", Style::BOLD),
        None => Line::new("Allow ", Style::BOLD)
            .and(&question.tool, tool)
            .and(&format!(" to {}?", action(question)), Style::BOLD),
    };
    if let Some(agent) = &question.agent {
        head.push(&format!(" · for {agent}"), Style::DIM);
    }
    let mut body = Vec::new();
    if let Some(text) = &question.confirm {
        body.extend(coloured_block(text, "", columns));
    }
    let mut printed: Vec<String> = Vec::new();
    for resource in &question.resources {
        let (text, language) = match resource {
            Resource::Command(line) => (line.clone(), "sh"),
            Resource::Program(argv) => (Value::from(argv.clone()).to_string(), "json"),
            Resource::Path(path, _) => (path.clone(), ""),
            Resource::Host(host) => (host.clone(), ""),
            _ => continue,
        };
        body.extend(coloured_block(&text, language, columns));
        printed.push(text);
    }
    let change = requested_diff(&question.arguments);
    let names = ["path", "file_path"].iter();
    let mut paths = names.filter_map(|name| question.arguments.get(*name)?.as_str());
    let path = paths.next().unwrap_or_default();
    if let Some(diff) = &change {
        let room = columns.saturating_sub(2);
        body.extend(diff_lines(
            diff,
            path,
            Numbers::Hidden,
            RowLimit::NONE,
            room,
        ));
    }
    if let Value::Object(arguments) = &question.arguments {
        let in_change = ["old_text", "new_text", "old_string", "new_string"];
        for (name, value) in arguments {
            let value = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let is_printed = printed.contains(&value)
                || (change.is_some() && in_change.contains(&name.as_str()));
            if is_printed {
                continue;
            }
            let value = value.strip_suffix('\n').unwrap_or(&value);
            match value.contains('\n') || value.chars().count() > SHOW_LENGTH_FROM {
                true => {
                    body.push(Line::new(&format!("  {name}:"), Style::DIM));
                    let language = path.rsplit('.').next().unwrap_or_default();
                    body.extend(coloured_block(value, language, columns));
                }
                false => body.push(fact(name, value)),
            }
        }
    }
    let mut footer = Vec::new();
    if let Some(rules) = &question.suggestion {
        let scopes = match &question.rules_file {
            Some(file) => format!("for this session, or always in {}", file.display()),
            None => "for this session".to_owned(),
        };
        footer.push(fact("rule", &format!("{rules} ({scopes})")));
    }
    footer.extend(asking_rules(question));
    if let Some(sandbox) = &context.sandbox {
        let sandbox = sandbox.strip_prefix("sandbox: ").unwrap_or(sandbox);
        footer.push(fact("sandbox", sandbox));
    }
    (vec![head], body, footer)
}

/// A text behind bars, in the colours of a language. Letters that may look like others are
/// named above it.
fn coloured_block(text: &str, language: &str, columns: usize) -> Vec<Line> {
    let mut out = Vec::new();
    let non_ascii = non_ascii(text);
    if !non_ascii.is_empty() {
        out.push(Line::new(
            &format!("  not ASCII: {non_ascii}"),
            Style::YELLOW,
        ));
    }
    let mut highlighter = Highlighter::named(language);
    let text = text.strip_suffix('\n').unwrap_or(text);
    for row in text.split('\n') {
        let pieces = highlighter.line(row);
        let line = crate::diff::painted(Line::default(), row, &pieces, Style::PLAIN, &None);
        out.extend(barred(&line, columns));
    }
    out
}

/// Subject of a question, in one line.
pub(crate) fn subject(question: &Question) -> String {
    let mut resources = question.resources.iter();
    let first = resources.find_map(|resource| match resource {
        Resource::Command(line) => Some(line.clone()),
        Resource::Program(argv) => Some(argv.join(" ")),
        Resource::Path(path, _) => Some(path.clone()),
        Resource::Host(host) => Some(host.clone()),
        _ => None,
    });
    match first {
        Some(first) => format!("{} {}", question.tool, first.replace('\n', " ⏎ ")),
        None => question.tool.clone(),
    }
}

/// Maximum number of changes that are listed before the user asks for all. All of them are
/// counted.
const MAX_BRIEF_CHANGES: usize = 20;

/// The changes of a call that has run, deletions first.
fn review_lines(question: &Question, review: &Review, detail: Detail) -> Vec<Line> {
    let mut out = vec![
        Line::new(&question.tool, Style::BOLD.and(Style::YELLOW))
            .and(" has run. Keep what it changed?", Style::PLAIN),
    ];
    if let Some(agent) = &question.agent {
        out.push(fact("agent", agent));
    }
    out.extend(asking_rules(question));
    out.push(fact("changed", &review.summary()));
    let change = |line: &str| {
        let style = match line.starts_with("deleted") {
            true => Style::RED,
            false => Style::PLAIN,
        };
        Line::new(&format!("  {line}"), style).hanging(13)
    };
    match detail {
        Detail::Brief => {
            let lines = review.lines();
            out.extend(
                lines
                    .iter()
                    .take(MAX_BRIEF_CHANGES)
                    .map(|line| change(line)),
            );
            if lines.len() > MAX_BRIEF_CHANGES {
                let more = lines.len() - MAX_BRIEF_CHANGES;
                out.push(Line::plain(&format!("  … and {more} more")));
            }
        }
        Detail::Full => {
            for (line, diff) in review.diffs() {
                out.push(change(&line));
                match diff {
                    Diff::Lines { text, .. } => {
                        out.extend(crate::card::coloured_diff(&text, "    "))
                    }
                    Diff::Opaque(why) => out.push(Line::new(&format!("    {why}"), Style::DIM)),
                    Diff::Same => {}
                }
            }
        }
    }
    out
}

/// The action of a call, as the end of the question.
fn action(question: &Question) -> &'static str {
    let mut resources = question.resources.iter();
    let action = resources.find_map(|resource| match resource {
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
    action.unwrap_or(match has_arguments {
        true => "run with these arguments",
        false => "run",
    })
}

/// Whether [`Detail::Full`] would show more than [`Detail::Brief`].
pub(crate) fn has_more(question: &Question, columns: usize) -> bool {
    if question.review.is_some() {
        return true;
    }
    let context = QuestionContext::default();
    question_lines(question, &context, Detail::Brief, columns)
        != question_lines(question, &context, Detail::Full, columns)
}

/// The rules that ask for approval, each with what it applies to.
fn asking_rules(question: &Question) -> Vec<Line> {
    let mut asking: Vec<(String, Vec<String>)> = Vec::new();
    for part in question.judgement.decisive() {
        let by = part.by.to_string();
        match asking.iter_mut().find(|(known, _)| *known == by) {
            Some((_, things)) => things.push(short_subject(part)),
            None => asking.push((by, vec![short_subject(part)])),
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
            // A rule about the whole call needs no subject.
            let about = match things.join("; ") {
                call if call == Subject::Call.to_string() => String::new(),
                things => format!(", about {things}{more}"),
            };
            fact("asked by", &format!("{by}{about}"))
        })
        .collect()
}

/// The subject of a part, shortened: it is shown in full above.
fn short_subject(part: &haft::JudgedPart) -> String {
    let text = part.subject.to_string();
    match text.char_indices().nth(SHOW_LENGTH_FROM) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// A fact about the call: `name: words`.
pub(crate) fn fact(name: &str, words: &str) -> Line {
    Line::new(&format!("  {name}: "), Style::DIM)
        .and(words, Style::PLAIN)
        .hanging(4)
}

fn diff_block(diff: &str, path: &str, columns: usize) -> Vec<Line> {
    let mut out = vec![Line::new("  change:", Style::DIM)];
    let room = columns.saturating_sub(2);
    for line in diff_lines(diff, path, Numbers::Hidden, RowLimit::NONE, room) {
        out.extend(barred(&line, columns));
    }
    out
}

/// A named text: its lines, wrapped, each behind a bar, so that none can be mistaken for a
/// line of haft.
pub(super) fn block(name: &str, whole: &str, most: Option<usize>, columns: usize) -> Vec<Line> {
    let count = whole.chars().count();
    let cut = most.filter(|most| count > *most);
    let text: String = match cut {
        Some(most) => whole.chars().take(most).collect(),
        None => whole.to_owned(),
    };
    let mut notes = Vec::new();
    if count > SHOW_LENGTH_FROM {
        notes.push(format!("{count} characters"));
    }
    if let Some(most) = cut {
        notes.push(format!("first {most} shown"));
    }
    let non_ascii = non_ascii(&text);
    if !non_ascii.is_empty() {
        notes.push(format!("not ASCII: {non_ascii}"));
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

/// Wraps a line and puts a bar before each row. All spaces are kept.
fn barred(line: &Line, columns: usize) -> Vec<Line> {
    let bar = || Line::new("  |", Style::DIM);
    if line.is_empty() {
        return vec![bar()];
    }
    line.broken_at(columns.saturating_sub(4).max(8))
        .into_iter()
        .map(|piece| piece.with_margin(bar().and(" ", Style::PLAIN)))
        .collect()
}

/// The first few non-ASCII characters with their code points: they may look like others.
fn non_ascii(text: &str) -> String {
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
