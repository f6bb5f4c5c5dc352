//! Kinds of lines in Markdown, as far as they decide where a block ends.

use super::Look;
use crate::diff;
use crate::highlight::Highlighter;
use crate::styled_text::{Background, Line, Style};

/// Fence of a code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    /// The text after the mark: a language, and perhaps more.
    info: String,
}

impl Fence {
    /// Returns the fence that a line opens.
    pub(super) fn opened_by(line: &str) -> Option<Self> {
        let indent = indent(line);
        let rest = line.trim_start_matches(' ');
        let mark = rest.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = rest.chars().take_while(|c| *c == mark).count();
        let name = rest.trim_start_matches(mark).trim();
        // Inline code may start with as many backticks.
        let is_one = length >= 3 && indent <= 3 && !(mark == '`' && name.contains('`'));
        is_one.then(|| Self {
            mark,
            length,
            indent,
            info: name.to_owned(),
        })
    }

    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let rest = line.trim();
        indent(line) <= 3
            && rest.chars().count() >= self.length
            && rest.chars().all(|c| c == self.mark)
    }

    /// The line that closes the fence, as the model would have written it.
    pub(super) fn closing(&self) -> String {
        self.mark.to_string().repeat(self.length)
    }

    /// The block that starts here.
    pub(super) fn code(&self, look: Look) -> Code {
        Code::new(&self.info, look)
    }

    /// A line of the code without the indentation of the fence.
    pub(super) fn dedented<'a>(&self, line: &'a str) -> &'a str {
        let spaces = indent(line).min(self.indent);
        line.get(spaces..).unwrap_or(line)
    }
}

/// A block of code, whose lines arrive one after the other.
#[derive(Debug, Clone)]
pub(super) struct Code {
    look: Look,
    info: String,
    highlighter: Highlighter,
}

impl Code {
    pub(super) fn new(info: &str, look: Look) -> Self {
        Self {
            look,
            info: info.to_owned(),
            highlighter: Highlighter::named(info),
        }
    }

    /// The line above the code; `fence` is the line of the model.
    pub(super) fn opening(&self, fence: &str) -> Option<Line> {
        let label = format!("╭ {}", self.info);
        match self.look {
            Look::Plain => Some(Line::new(fence, Style::DIM)),
            Look::Lined => Some(Line::new(label.trim_end(), Style::DIM)),
            Look::Shaded if self.info.is_empty() => None,
            Look::Shaded => Some(Line::new(&self.info, Style::DIM).filled(Background::Code)),
        }
    }

    /// The line below the code.
    pub(super) fn closing(&self, fence: &str) -> Option<Line> {
        match self.look {
            Look::Plain => Some(Line::new(fence, Style::DIM)),
            Look::Lined => Some(Line::new("╰", Style::DIM)),
            Look::Shaded => None,
        }
    }

    /// A line of code, which can be copied as it is.
    pub(super) fn line(&mut self, line: &str) -> Line {
        if matches!(self.info.split(' ').next(), Some("diff" | "patch")) {
            return match line.chars().next() {
                Some('+') => Line::verbatim(line, Style::PLAIN).filled(Background::Added),
                Some('-') => Line::verbatim(line, Style::PLAIN).filled(Background::Removed),
                Some('@') => Line::verbatim(line, Style::CYAN).filled(Background::Code),
                _ => Line::verbatim(line, Style::PLAIN).filled(Background::Code),
            };
        }
        let pieces = self.highlighter.line(line);
        let empty = Line::verbatim("", Style::PLAIN);
        diff::painted(empty, line, &pieces, Style::PLAIN, &None).filled(Background::Code)
    }
}

/// Kind of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LineKind {
    Blank,
    Fence(Fence),
    Heading,
    /// A thematic break, or the underline of a heading.
    Underline,
    /// A list item, which may or may not interrupt a paragraph.
    Item {
        interrupts: bool,
    },
    Other,
}

impl LineKind {
    pub(super) fn of(line: &str) -> Self {
        let text = line.trim();
        if text.is_empty() {
            return Self::Blank;
        }
        if indent(line) > 3 {
            return Self::Other;
        }
        if let Some(fence) = Fence::opened_by(line) {
            return Self::Fence(fence);
        }
        let hashes = text.chars().take_while(|c| *c == '#').count();
        let behind = text.chars().nth(hashes);
        if (1..=6).contains(&hashes) && behind.is_none_or(|c| c == ' ') {
            return Self::Heading;
        }
        if is_rule(text) {
            return Self::Underline;
        }
        item(text)
    }
}

/// Whether a line is a thematic break or the underline of a heading.
fn is_rule(text: &str) -> bool {
    let letters = || text.chars().filter(|c| *c != ' ');
    let Some(mark) = letters().next() else {
        return false;
    };
    match mark {
        '=' => text.chars().all(|c| c == '='),
        '-' | '*' | '_' => letters().count() >= 3 && letters().all(|c| c == mark),
        _ => false,
    }
}

fn item(text: &str) -> LineKind {
    let (marker, rest) = text.split_once(' ').unwrap_or((text, ""));
    let has_text = !rest.trim().is_empty();
    if matches!(marker, "-" | "*" | "+") {
        return LineKind::Item {
            interrupts: has_text,
        };
    }
    let number = marker.strip_suffix(['.', ')']).unwrap_or_default();
    if !number.is_empty() && number.len() <= 9 && number.bytes().all(|c| c.is_ascii_digit()) {
        return LineKind::Item {
            interrupts: has_text && number == "1",
        };
    }
    LineKind::Other
}

/// Indentation in spaces; a tab counts as four.
pub(super) fn indent(line: &str) -> usize {
    line.chars()
        .take_while(|c| matches!(c, ' ' | '\t'))
        .map(|c| if c == '\t' { 4 } else { 1 })
        .sum()
}

pub(super) fn is_link_definition(line: &str) -> bool {
    let name = line.trim_start().strip_prefix('[');
    indent(line) <= 3 && name.and_then(|name| name.split_once("]:")).is_some()
}
