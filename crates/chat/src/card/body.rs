//! Excerpts of a result: a diff, the end of an output, the beginning of an error.

use super::{Call, CallResult, Length};
use crate::ansi::Ansi;
use crate::diff::{self, Numbers, Row};
use crate::styled_text::{Line, Style};
use haft::ops::text::diff::unified;
use haft::truncate::format_size;
use serde_json::Value;

/// Maximum rows of a diff or of new content.
const MAX_DIFF_ROWS: usize = 12;

const MAX_OUTPUT_ROWS: usize = 5;

/// Maximum rows of output of a command that the user ran.
const MAX_LONG_OUTPUT_ROWS: usize = 40;

const MAX_ERROR_ROWS: usize = 6;

/// Part of a long text to show.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Beginning,
    End,
}

/// Maximum number of rows, and a hint at the key that shows the rest.
#[derive(Clone, Copy)]
pub(crate) struct RowLimit {
    max_rows: usize,
    hint: &'static str,
}

impl RowLimit {
    /// No limit.
    pub(crate) const NONE: Self = Self {
        max_rows: usize::MAX,
        hint: "",
    };

    fn new(length: Length, short: usize) -> Self {
        match length {
            Length::Short => Self {
                max_rows: short,
                hint: " (Ctrl-O shows all)",
            },
            Length::ShortWithoutHint => Self {
                max_rows: short,
                hint: "",
            },
            Length::Long | Length::Whole => Self::NONE,
        }
    }
}

/// Facts in the header of a finished call.
pub(super) fn facts(call: &Call, result: &CallResult) -> Vec<(String, Style)> {
    let mut facts = Vec::new();
    let number = |name: &str| result.details.get(name).and_then(Value::as_u64);
    if let Some(ended) = result.details.get("ended").and_then(Value::as_str) {
        facts.push((ended.replace('_', " "), Style::RED));
    } else if let Some(code) = exit_code(result).filter(|code| *code != 0) {
        facts.push((format!("exit {code}"), Style::RED));
    } else if result.is_error {
        facts.push(("failed".to_owned(), Style::RED));
    }
    if let Some((diff, _)) = diff_of(call, result).filter(|_| !result.is_error) {
        let rows = diff::parse(&diff);
        let count = |is: fn(&Row) -> bool| rows.iter().filter(|row| is(row)).count();
        let added = count(|row| matches!(row, Row::Added(..)));
        let removed = count(|row| matches!(row, Row::Removed(..)));
        facts.push((format!("+{added}"), Style::GREEN));
        facts.push((format!("−{removed}"), Style::RED));
    } else if let Some(matches) = number("matches") {
        let (one, many) = match call.arguments.get("pattern") {
            Some(_) if number("searched").is_some() => ("match", "matches"),
            _ => ("entry", "entries"),
        };
        let name = if matches == 1 { one } else { many };
        facts.push((format!("{matches} {name}"), Style::DIM));
    } else if let Some(content) = content(call).filter(|_| !result.is_error) {
        let verb = match result.details.get("created") {
            Some(Value::Bool(true)) => "new, ",
            _ => "",
        };
        let lines = content.lines().count();
        let name = if lines == 1 { "line" } else { "lines" };
        facts.push((format!("{verb}{lines} {name}"), Style::DIM));
    } else if exit_code(result).is_none() && !result.is_error && result.bytes > 0 {
        facts.push((format_size(result.bytes), Style::DIM));
    }
    facts
}

/// The exit code, if the call was a command.
pub(super) fn exit_code(result: &CallResult) -> Option<i64> {
    result.details.get("exit_code").and_then(Value::as_i64)
}

/// Lines below the header, for a screen with this many columns.
pub(super) fn result_lines(
    call: &Call,
    result: &CallResult,
    length: Length,
    columns: usize,
) -> Vec<Line> {
    let output = result.output.as_deref().unwrap_or_else(|| &call.tail);
    let output = readable_part(output);
    if exit_code(result).is_some() || call.is_command() {
        let text = without_exit_code(&output);
        let rows = terminal_lines(&text);
        let rows: Vec<&str> = rows
            .into_iter()
            .filter(|row| *row != "(no output)")
            .collect();
        let limit = match length {
            Length::Long => RowLimit::new(Length::Short, MAX_LONG_OUTPUT_ROWS),
            _ => RowLimit::new(length, MAX_OUTPUT_ROWS),
        };
        let style = if result.is_error {
            Style::RED
        } else {
            Style::DIM
        };
        let mut ansi = Ansi::default();
        let shown = rows.iter().map(|row| ansi.line(row, style)).collect();
        return indented(limited(shown, limit, Part::End));
    }
    if result.is_error {
        let limit = RowLimit::new(length, MAX_ERROR_ROWS);
        let mut ansi = Ansi::default();
        let rows = terminal_lines(&output);
        let rows = rows.iter().map(|row| ansi.line(row, Style::RED)).collect();
        // Prose may be wrapped between words, unlike the rows of a file.
        let flowing = |line: Line| line.wrapping_at_words().indented("  ", Style::PLAIN);
        let shown = limited(rows, limit, Part::Beginning);
        return shown.into_iter().map(flowing).collect();
    }
    if let Some((diff, numbers)) = diff_of(call, result) {
        let limit = RowLimit::new(length, MAX_DIFF_ROWS);
        return indented(diff_lines(&diff, call.path(), numbers, limit, columns));
    }
    if let Some(content) = content(call) {
        let limit = RowLimit::new(length, MAX_DIFF_ROWS);
        let rows = diff::of_new_file(content);
        let lines = row_lines(&rows, call.path(), Numbers::Shown, limit, columns);
        return indented(lines);
    }
    match length {
        Length::Whole => {
            let mut ansi = Ansi::default();
            let rows = terminal_lines(&output);
            indented(
                rows.iter()
                    .map(|row| ansi.line(row, Style::PLAIN))
                    .collect(),
            )
        }
        _ => Vec::new(),
    }
}

/// The diff that a call made or wants to make, if its result or arguments contain one.
pub(super) fn diff_of(call: &Call, result: &CallResult) -> Option<(String, Numbers)> {
    if let Some(Value::String(diff)) = result.details.get("diff") {
        return (!diff.is_empty()).then(|| (diff.clone(), Numbers::Shown));
    }
    requested_diff(&call.arguments).map(|diff| (diff, Numbers::Hidden))
}

/// The diff that the arguments of an edit describe.
pub(crate) fn requested_diff(arguments: &Value) -> Option<String> {
    let text = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|name| arguments.get(*name).and_then(Value::as_str))
    };
    let old = text(["old_text", "old_string"])?;
    let new = text(["new_text", "new_string"])?;
    let path = text(["path", "file_path"]).unwrap_or("file");
    // Edited pieces rarely end with a newline, and that is not a change.
    let ended = |text: &str| format!("{text}\n");
    let diff = unified(&ended(old), &ended(new), path, 1000);
    (!diff.is_empty()).then_some(diff)
}

/// Content of a file that a call writes.
fn content(call: &Call) -> Option<&str> {
    let has_path = ["path", "file_path"]
        .iter()
        .any(|name| call.arguments.get(*name).is_some());
    let content = call.arguments.get("content").and_then(Value::as_str);
    content.filter(|_| has_path)
}

/// Colours the rows of a diff with other lines between them, and changes nothing else.
pub(crate) fn coloured_diff(text: &str, indent: &str) -> Vec<Line> {
    let style = |row: &str| match row.trim_start().chars().next() {
        Some('+') => Style::GREEN,
        Some('-') => Style::RED,
        Some('@') => Style::CYAN,
        _ => Style::PLAIN,
    };
    let rows = text.strip_suffix('\n').unwrap_or(text).split('\n');
    rows.map(|row| Line::new(&format!("{indent}{row}"), style(row)))
        .collect()
}

/// Formats a unified diff of a file.
pub(crate) fn diff_lines(
    diff: &str,
    path: &str,
    numbers: Numbers,
    limit: RowLimit,
    columns: usize,
) -> Vec<Line> {
    row_lines(&diff::parse(diff), path, numbers, limit, columns)
}

fn row_lines(
    rows: &[Row],
    path: &str,
    numbers: Numbers,
    limit: RowLimit,
    columns: usize,
) -> Vec<Line> {
    let shown = rows.get(..limit.max_rows).unwrap_or(rows);
    let mut lines = diff::lines(shown, path, numbers, columns.saturating_sub(2));
    let more = rows.len() - shown.len();
    lines.extend((more > 0).then(|| left_out(more, limit, Part::Beginning)));
    lines
}

fn indented(lines: Vec<Line>) -> Vec<Line> {
    let lines = lines.into_iter();
    lines
        .map(|line| line.with_margin(Line::plain("  ")))
        .collect()
}

/// Says how many lines are hidden.
fn left_out(more: usize, limit: RowLimit, part: Part) -> Line {
    let (name, hint) = (if more == 1 { "line" } else { "lines" }, limit.hint);
    let text = match part {
        Part::Beginning => format!("+{more} more {name}{hint}"),
        Part::End => format!("… {more} {name} before{hint}"),
    };
    Line::new(&text, Style::DIM)
}

/// Limits the lines, and says how many are hidden.
fn limited(mut lines: Vec<Line>, limit: RowLimit, part: Part) -> Vec<Line> {
    let more = lines.len().saturating_sub(limit.max_rows);
    if more == 0 {
        return lines;
    }
    let note = left_out(more, limit, part);
    match part {
        Part::Beginning => {
            lines.truncate(limit.max_rows);
            lines.push(note);
        }
        Part::End => {
            lines.drain(..more);
            lines.insert(0, note);
        }
    }
    lines
}

/// The lines of a text as a terminal shows them: text overwritten after a carriage return
/// is removed, and so are empty lines at the end.
pub(super) fn terminal_lines(text: &str) -> Vec<&str> {
    let text = text.trim_end();
    if text.is_empty() {
        return Vec::new();
    }
    text.split('\n')
        .map(|line| {
            let line = line.trim_end_matches('\r');
            line.rsplit('\r').next().unwrap_or(line)
        })
        .collect()
}

/// The readable parts of a reply that is a JSON document.
fn readable_part(output: &str) -> String {
    let document = match output.trim_start().starts_with('{') {
        true => serde_json::from_str::<Value>(output).ok(),
        false => None,
    };
    let Some(Value::Object(document)) = document else {
        return output.to_owned();
    };
    let words: Vec<&str> = ["output", "stdout", "stderr", "error", "message", "content"]
        .iter()
        .filter_map(|name| document.get(*name).and_then(Value::as_str))
        .filter(|words| !words.is_empty())
        .collect();
    if words.is_empty() {
        output.to_owned()
    } else {
        words.join("\n")
    }
}

/// Removes the line with the exit code: it is in the header.
fn without_exit_code(output: &str) -> String {
    let trimmed = output.trim_end();
    match trimmed.rsplit_once('\n') {
        Some((before, last)) if last.starts_with("Exit code: ") => before.trim_end().to_owned(),
        _ => trimmed.to_owned(),
    }
}
