//! A tool call as a person wants to see it: one line that says what is done, and as
//! much of what came of it as helps.

mod body;
#[cfg(test)]
mod tests;

pub(crate) use body::{Bound, diff_lines, wanted};

use super::ink::{Line, Style};
use super::screen::squeezed;
use serde_json::{Map, Value};
use std::time::{Duration, Instant};

/// How much is remembered of what a running tool says.
const TAIL: usize = 8 << 10;

/// Rows of that which are shown.
const TAIL_ROWS: usize = 4;

/// Faster calls need no time beside them.
const NOTABLE: Duration = Duration::from_secs(1);

/// How much of a result is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// The part that matters.
    Short,
    /// The same, where no key shows the rest.
    ShortForGood,
    /// Most of it: the person asked for it themselves.
    Long,
    /// All of it.
    Whole,
}

/// A call that runs.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) since: Instant,
    /// The session of the sub-agent that makes it, if one does.
    pub(crate) child: Option<String>,
    /// Whether that one works in the background.
    pub(crate) is_background: bool,
    /// The name of that one, where several may work and nothing else says whose call it is.
    pub(crate) by: Option<String>,
    /// Whether a person is being asked about it: it does not run yet.
    pub(crate) is_asked: bool,
    pub(crate) length: Length,
    tail: String,
}

/// How it ended.
#[derive(Debug, Clone)]
pub(crate) struct End {
    pub(crate) is_error: bool,
    pub(crate) details: Map<String, Value>,
    pub(crate) took: Duration,
    pub(crate) bytes: u64,
    /// What it answered, where that is known.
    pub(crate) output: Option<String>,
}

impl Call {
    pub(crate) fn new(id: &str, tool: &str, arguments: Value, since: Instant) -> Self {
        Self {
            id: id.to_owned(),
            tool: tool.to_owned(),
            arguments,
            since,
            child: None,
            is_background: false,
            by: None,
            is_asked: false,
            length: Length::Short,
            tail: String::new(),
        }
    }

    /// It shows what it has so far: a command what is new, others how far they are.
    pub(crate) fn update(&mut self, text: &str) {
        if !self.is_command() {
            self.tail.clear();
        }
        self.tail.push_str(text);
        if self.tail.len() > 2 * TAIL {
            let kept = haft::ops::text::decode::suffix(&self.tail, TAIL);
            self.tail = kept.to_owned();
        }
    }

    /// Whether it is this one. Ids are distinct within a session only.
    pub(crate) fn is(&self, id: &str, child: Option<&str>) -> bool {
        self.id == id && self.child.as_deref() == child
    }

    fn is_child(&self) -> bool {
        self.child.is_some()
    }

    fn is_command(&self) -> bool {
        self.arguments.get("command").is_some()
    }

    /// What it is done to, in one line.
    fn subject(&self) -> String {
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
        // The facts are worth more than the end of a long command; a narrow screen
        // gets a second row.
        let used = line.width() + 1 + beside;
        let room = match columns.saturating_sub(used) {
            room if room >= 16 => room,
            _ => columns.saturating_sub(line.width() + 1).max(8),
        };
        let subject = squeezed(&self.subject(), room);
        if !subject.is_empty() {
            line.push(&format!(" {subject}"), Style::PLAIN);
        }
        for (fact, style) in facts {
            line.push(" · ", Style::DIM);
            line.push(fact, *style);
        }
        line.hanging(2)
    }

    fn whose(&self) -> Vec<(String, Style)> {
        self.by.iter().map(|by| (by.clone(), Style::DIM)).collect()
    }

    /// As it looks while it runs.
    pub(crate) fn running(&self, spinner: &str, now: Instant, columns: usize) -> Vec<Line> {
        let elapsed = now.saturating_duration_since(self.since);
        let mut facts = self.whose();
        if elapsed >= NOTABLE {
            facts.push((spoken(elapsed), Style::DIM));
        }
        let mark = match self.is_child() {
            true => format!("  {spinner}"),
            false => spinner.to_owned(),
        };
        let header = self.header(&mark, Style::CYAN, columns, &facts);
        let mut lines = vec![header.cut(columns)];
        if !self.is_child() {
            let tail: Vec<&str> = body::lines(&self.tail);
            let first = tail.len().saturating_sub(TAIL_ROWS);
            for text in tail.into_iter().skip(first) {
                let line = Line::new(text, Style::DIM).indented("  ", Style::PLAIN);
                lines.push(line.cut(columns));
            }
        }
        lines
    }

    /// As it stays.
    pub(crate) fn finished(&self, end: &End, columns: usize) -> Vec<Line> {
        let mut facts = self.whose();
        facts.extend(body::facts(self, end));
        if end.took >= NOTABLE {
            facts.push((spoken(end.took), Style::DIM));
        }
        let failed = end.is_error || body::exit_code(end).is_some_and(|code| code != 0);
        let (mark, style) = match (self.is_child(), end.is_error, failed) {
            (true, _, false) => ("  ↳", Style::DIM),
            (true, _, true) => ("  ↳", Style::RED),
            (false, true, _) => ("✗", Style::RED),
            (false, false, true) => ("●", Style::RED),
            (false, false, false) => ("●", Style::GREEN),
        };
        let header = self.header(mark, style, columns, &facts);
        if self.is_child() {
            return vec![header.cut(columns)];
        }
        let mut lines = vec![header];
        lines.extend(body::of(self, end, self.length));
        lines
    }

    /// All that came of it.
    pub(crate) fn whole(&self, end: &End, columns: usize) -> Vec<Line> {
        let mut lines = vec![self.header("●", Style::CYAN, columns, &[])];
        if let Some(Value::String(command)) = self.arguments.get("command") {
            for line in command.lines() {
                lines.push(Line::verbatim(line, Style::BOLD).behind(Line::plain("  ")));
            }
        }
        lines.extend(body::of(self, end, Length::Whole));
        lines
    }

    /// As it looks when it was not allowed.
    pub(crate) fn refused(&self, reason: &str, columns: usize) -> Vec<Line> {
        let mark = if self.is_child() { "  ↳" } else { "✗" };
        let mut facts = self.whose();
        facts.push(("refused".to_owned(), Style::YELLOW));
        // One row is all that a sub-agent gets, so it says why as well.
        let why = reason.lines().next().filter(|_| self.is_child());
        facts.extend(why.map(|why| (why.to_owned(), Style::DIM)));
        let mut lines = vec![self.header(mark, Style::YELLOW, columns, &facts)];
        if self.is_child() {
            lines = lines.iter().map(|line| line.cut(columns)).collect();
        }
        for line in reason.lines().filter(|_| !self.is_child()) {
            lines.push(
                Line::new(line, Style::DIM)
                    .indented("  ", Style::PLAIN)
                    .hanging(2),
            );
        }
        lines
    }

    /// What it said last, for when nobody knows its answer.
    fn tail(&self) -> &str {
        &self.tail
    }
}

/// The first line of a text, and how many follow.
fn one_line(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default().to_owned();
    match lines.count() {
        0 => first,
        1 => format!("{first} (+1 line)"),
        more => format!("{first} (+{more} lines)"),
    }
}

/// A duration, as short as it can be understood.
pub(crate) fn spoken(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} m", seconds / 3600, seconds / 60 % 60),
    }
}
