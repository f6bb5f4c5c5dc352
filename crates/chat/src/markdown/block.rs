//! Kinds of lines in Markdown, as far as they decide where a block ends.

use crate::styled_text::{Line, Style};

/// Fence of a code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    is_diff: bool,
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
            is_diff: matches!(name.split_whitespace().next(), Some("diff" | "patch")),
        })
    }

    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let rest = line.trim();
        indent(line) <= 3
            && rest.chars().count() >= self.length
            && rest.chars().all(|c| c == self.mark)
    }

    /// The line that closes the fence.
    pub(super) fn closing(&self) -> String {
        self.mark.to_string().repeat(self.length)
    }

    /// A line of the code, unchanged so that it can be copied.
    pub(super) fn code(&self, line: &str) -> Line {
        let spaces = indent(line).min(self.indent);
        let line = line.get(spaces..).unwrap_or(line);
        code(line, self.is_diff)
    }
}

/// A line of code. In a diff, added and removed lines are coloured.
pub(super) fn code(line: &str, is_diff: bool) -> Line {
    let style = match line.chars().next() {
        Some('+') if is_diff => Style::GREEN,
        Some('-') if is_diff => Style::RED,
        Some('@') if is_diff => Style::CYAN,
        _ => Style::PLAIN,
    };
    Line::verbatim(line, style)
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
