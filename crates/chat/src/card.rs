//! A tool call in the transcript: a header line, and the useful part of the result.

mod body;
#[cfg(test)]
mod tests;

pub(crate) use body::{RowLimit, coloured_diff, diff_lines, requested_diff};

use crate::ansi::Ansi;
use crate::diff;
use crate::highlight::Highlighter;
use crate::screen::truncate_middle;
use crate::styled_text::{Line, Style};
use serde_json::{Map, Value};
use std::time::{Duration, Instant};

/// Bytes of a running tool's output to keep.
const TAIL_BYTES: usize = 8 << 10;

/// Rows of it to show.
const TAIL_ROWS: usize = 4;

/// Shorter durations are not shown.
const MIN_SHOWN_DURATION: Duration = Duration::from_secs(1);

/// How much of a result to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// The most useful part.
    Short,
    /// Like `Short`, without a hint at a key for the rest.
    ShortWithoutHint,
    /// Most of it, for a command that the user ran.
    Long,
    Whole,
}

/// A call in progress.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) started: Instant,
    /// Session of the sub-agent that made the call, if any.
    pub(crate) sub_agent: Option<String>,
    /// Whether that sub-agent works in the background.
    pub(crate) is_background: bool,
    /// Name of that sub-agent, if several may be working and nothing else identifies it.
    pub(crate) agent: Option<String>,
    /// Whether the call waits for approval and does not run yet.
    pub(crate) awaits_approval: bool,
    pub(crate) length: Length,
    /// Latest output, shown while the call runs and if its reply is not known.
    tail: String,
}

/// Result of a call.
#[derive(Debug, Clone)]
pub(crate) struct CallResult {
    pub(crate) is_error: bool,
    pub(crate) details: Map<String, Value>,
    pub(crate) took: Duration,
    pub(crate) bytes: u64,
    /// Text of the reply, if known.
    pub(crate) output: Option<String>,
}

impl Call {
    pub(crate) fn new(id: &str, tool: &str, arguments: Value, started: Instant) -> Self {
        Self {
            id: id.to_owned(),
            tool: tool.to_owned(),
            arguments,
            started,
            sub_agent: None,
            is_background: false,
            agent: None,
            awaits_approval: false,
            length: Length::Short,
            tail: String::new(),
        }
    }

    /// Adds progress: commands send only new output, other tools their whole progress.
    pub(crate) fn update(&mut self, text: &str) {
        if !self.is_command() {
            self.tail.clear();
        }
        self.tail.push_str(text);
        if self.tail.len() > 2 * TAIL_BYTES {
            let kept = haft::ops::text::decode::suffix(&self.tail, TAIL_BYTES);
            self.tail = kept.to_owned();
        }
    }

    /// Whether this is the call with that id. Ids are unique only within a session.
    pub(crate) fn is(&self, id: &str, sub_agent: Option<&str>) -> bool {
        self.id == id && self.sub_agent.as_deref() == sub_agent
    }

    fn is_by_sub_agent(&self) -> bool {
        self.sub_agent.is_some()
    }

    /// Whether the call may be counted instead of shown: it succeeded, and belongs to a
    /// sub-agent whose work ends with a call of the agent.
    pub(crate) fn is_folded(&self, result: &CallResult) -> bool {
        self.is_by_sub_agent() && !self.is_background && !result.is_error
    }

    fn is_command(&self) -> bool {
        self.arguments.get("command").is_some()
    }

    /// The file that the call is about, if any.
    fn path(&self) -> &str {
        let names = ["path", "file_path"].iter();
        let mut paths = names.filter_map(|name| self.arguments.get(*name)?.as_str());
        paths.next().unwrap_or_default()
    }

    /// Shortened to one line.
    fn main_argument(&self) -> String {
        let text = |name: &str| match self.arguments.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Array(words)) => {
                let words = words.iter().filter_map(Value::as_str);
                Some(words.collect::<Vec<_>>().join(" "))
            }
            _ => None,
        };
        let path = text("path").or_else(|| text("file_path"));
        if let Some(command) = text("command") {
            return one_line(&command);
        }
        if let Some(pattern) = text("pattern") {
            return match path.filter(|path| path != ".") {
                Some(path) => format!("{} in {}", one_line(&pattern), one_line(&path)),
                None => one_line(&pattern),
            };
        }
        let first = || match &self.arguments {
            Value::Object(all) => all.values().find_map(Value::as_str).map(str::to_owned),
            _ => None,
        };
        let named = ["url", "query", "name", "description", "action"];
        let subject = path.or_else(|| named.iter().find_map(|name| text(name)));
        one_line(&subject.or_else(first).unwrap_or_default())
    }

    fn header(&self, mark: &str, style: Style, columns: usize, facts: &[(String, Style)]) -> Line {
        let mut line = Line::new(mark, style).and(" ", Style::PLAIN);
        line.push(&self.tool, Style::BOLD);
        let beside: usize = facts.iter().map(|(fact, _)| fact.chars().count() + 3).sum();
        // The facts matter more than the end of a long command; a narrow screen gets a
        // second row.
        let used = line.width() + 1 + beside;
        let room = match columns.saturating_sub(used) {
            room if room >= 16 => room,
            _ => columns.saturating_sub(line.width() + 1).max(8),
        };
        let subject = truncate_middle(&self.main_argument(), room);
        if !subject.is_empty() {
            line.push(" ", Style::PLAIN);
            let pieces = match self.is_command() {
                true => Highlighter::named("sh").line(&subject),
                false => Vec::new(),
            };
            line = diff::painted(line, &subject, &pieces, Style::PLAIN, &None);
        }
        for (at, (fact, style)) in facts.iter().enumerate() {
            // The counts of added and removed lines belong together.
            let is_pair = at > 0 && fact.starts_with('−');
            line.push(if is_pair { " " } else { " · " }, Style::DIM);
            line.push(fact, *style);
        }
        line.hanging(2)
    }

    fn agent_facts(&self) -> Vec<(String, Style)> {
        self.agent
            .iter()
            .map(|name| (name.clone(), Style::DIM))
            .collect()
    }

    pub(crate) fn running_lines(&self, spinner: &str, now: Instant, columns: usize) -> Vec<Line> {
        let elapsed = now.saturating_duration_since(self.started);
        let mut facts = self.agent_facts();
        if elapsed >= MIN_SHOWN_DURATION {
            facts.push((format_duration(elapsed), Style::DIM));
        }
        let mark = match self.is_by_sub_agent() {
            true => format!("  {spinner}"),
            false => spinner.to_owned(),
        };
        let header = self.header(&mark, Style::CYAN, columns, &facts);
        let mut lines = vec![header.truncated(columns)];
        if !self.is_by_sub_agent() {
            let tail: Vec<&str> = body::terminal_lines(&self.tail);
            let first = tail.len().saturating_sub(TAIL_ROWS);
            let mut ansi = Ansi::default();
            for text in tail.into_iter().skip(first) {
                let line = ansi.line(text, Style::DIM).wrapping_at_words();
                let line = line.indented("  ", Style::PLAIN);
                lines.push(line.truncated(columns));
            }
        }
        lines
    }

    pub(crate) fn finished_lines(&self, result: &CallResult, columns: usize) -> Vec<Line> {
        let mut facts = self.agent_facts();
        facts.extend(body::facts(self, result));
        if result.took >= MIN_SHOWN_DURATION {
            facts.push((format_duration(result.took), Style::DIM));
        }
        let failed = result.is_error || body::exit_code(result).is_some_and(|code| code != 0);
        let (mark, style) = match (self.is_by_sub_agent(), result.is_error, failed) {
            (true, _, false) => ("  ↳", Style::DIM),
            (true, _, true) => ("  ↳", Style::RED),
            (false, true, _) => ("✗", Style::RED),
            (false, false, true) => ("●", Style::RED),
            (false, false, false) => ("●", Style::GREEN),
        };
        let header = self.header(mark, style, columns, &facts);
        if self.is_by_sub_agent() {
            return vec![header.truncated(columns)];
        }
        let mut lines = vec![header];
        lines.extend(body::result_lines(self, result, self.length, columns));
        if let Some(Value::String(why)) = result.details.get("not_reverted") {
            let text = format!("not all of it could be reverted: {why}");
            lines.push(Line::verbatim(&text, Style::YELLOW).with_margin(Line::plain("  ")));
        }
        lines
    }

    pub(crate) fn full_lines(&self, result: &CallResult, columns: usize) -> Vec<Line> {
        let mut lines = vec![self.header("●", Style::CYAN, columns, &[])];
        if let Some(Value::String(command)) = self.arguments.get("command") {
            for line in command.lines() {
                lines.push(Line::verbatim(line, Style::BOLD).with_margin(Line::plain("  ")));
            }
        }
        lines.extend(body::result_lines(self, result, Length::Whole, columns));
        lines
    }

    pub(crate) fn refused_lines(&self, reason: &str, columns: usize) -> Vec<Line> {
        let mark = if self.is_by_sub_agent() {
            "  ↳"
        } else {
            "✗"
        };
        let mut facts = self.agent_facts();
        facts.push(("refused".to_owned(), Style::YELLOW));
        // A sub-agent's call has only one row, so the reason goes there.
        let why = reason.lines().next().filter(|_| self.is_by_sub_agent());
        facts.extend(why.map(|why| (why.to_owned(), Style::DIM)));
        let mut lines = vec![self.header(mark, Style::YELLOW, columns, &facts)];
        if self.is_by_sub_agent() {
            lines = lines.iter().map(|line| line.truncated(columns)).collect();
        }
        for line in reason.lines().filter(|_| !self.is_by_sub_agent()) {
            lines.push(
                Line::new(line, Style::DIM)
                    .indented("  ", Style::PLAIN)
                    .hanging(2),
            );
        }
        lines
    }
}

/// The first line of a text, and the number of further lines.
fn one_line(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default().to_owned();
    match lines.count() {
        0 => first,
        1 => format!("{first} (+1 line)"),
        more => format!("{first} (+{more} lines)"),
    }
}

/// A duration in short form.
pub(crate) fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} m", seconds / 3600, seconds / 60 % 60),
    }
}
