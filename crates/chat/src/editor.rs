//! The input line: a text, a cursor, and the editing keys. Independent of terminals.
//!
//! Not a library, because those own the screen while a line is typed; here the agent works
//! and prints at the same time.

#[cfg(test)]
mod tests;

use crate::styled_text::{Line, Style, width};
use haft::ops::text::decode::visible;
use unicode_segmentation::UnicodeSegmentation;

/// Text being typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Editor {
    text: String,
    /// Cursor, in bytes; always between two grapheme clusters.
    cursor: usize,
    /// Last deleted word or line, for `yank`.
    last_deleted: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Backward,
    Forward,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Grapheme,
    Word,
    Line,
}

/// The rows of the editor on a screen, and the cursor position in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditorView {
    pub(crate) rows: Vec<Line>,
    pub(crate) row: usize,
    pub(crate) column: usize,
}

impl Editor {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn before_cursor(&self) -> &str {
        self.text.get(..self.cursor).unwrap_or_default()
    }

    fn after_cursor(&self) -> &str {
        self.text.get(self.cursor..).unwrap_or_default()
    }

    /// Replaces the text, and puts the cursor at its end.
    pub(crate) fn set(&mut self, text: impl Into<String>) {
        self.text = text.into();
        self.cursor = self.text.len();
    }

    /// Clears the editor and returns its text.
    pub(crate) fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    /// Inserts text at the cursor. All line endings become `\n`.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
        // A combining mark may have joined the letter before it.
        self.cursor = self.next_boundary();
    }

    /// Deletes this many bytes before the cursor.
    pub(crate) fn delete_before(&mut self, length: usize) {
        self.replace_before(self.cursor.saturating_sub(length), "");
    }

    /// Replaces the text from `start` to the cursor.
    pub(crate) fn replace_before(&mut self, start: usize, text: &str) {
        if start <= self.cursor && self.text.is_char_boundary(start) {
            self.text.replace_range(start..self.cursor, text);
            self.cursor = start + text.len();
        }
    }

    pub(crate) fn delete(&mut self, direction: Direction, unit: Unit) {
        let to = self.target(direction, unit);
        let (start, end) = (to.min(self.cursor), to.max(self.cursor));
        let gone: String = self.text.drain(start..end).collect();
        self.cursor = start;
        self.cursor = self.next_boundary();
        if unit != Unit::Grapheme && !gone.is_empty() {
            self.last_deleted = gone;
        }
    }

    /// Inserts the text that was deleted last.
    pub(crate) fn yank(&mut self) {
        let cut = self.last_deleted.clone();
        self.insert(&cut);
    }

    pub(crate) fn move_cursor(&mut self, direction: Direction, unit: Unit) {
        self.cursor = self.target(direction, unit);
        self.cursor = self.next_boundary();
    }

    /// Moves to the line above or below. Returns false if no such line exists.
    pub(crate) fn move_line(&mut self, direction: Direction) -> bool {
        let column = self.before_cursor().rsplit('\n').next().unwrap_or_default();
        let column = column.graphemes(true).count();
        let start = match direction {
            Direction::Backward => {
                let Some(end) = self.before_cursor().rfind('\n') else {
                    return false;
                };
                let above = self.text.get(..end).unwrap_or_default();
                above.rfind('\n').map_or(0, |at| at + 1)
            }
            Direction::Forward => match self.after_cursor().find('\n') {
                Some(end) => self.cursor + end + 1,
                None => return false,
            },
        };
        let line = self.text.get(start..).unwrap_or_default();
        let line = line.split('\n').next().unwrap_or_default();
        let within: usize = line.graphemes(true).take(column).map(str::len).sum();
        self.cursor = start + within;
        true
    }

    fn target(&self, direction: Direction, unit: Unit) -> usize {
        let (before, behind) = (self.before_cursor(), self.after_cursor());
        match (direction, unit) {
            (Direction::Backward, Unit::Grapheme) => {
                self.cursor - before.graphemes(true).next_back().map_or(0, str::len)
            }
            (Direction::Forward, Unit::Grapheme) => {
                self.cursor + behind.graphemes(true).next().map_or(0, str::len)
            }
            (Direction::Backward, Unit::Word) => {
                let words = before.trim_end_matches(|c: char| !c.is_alphanumeric());
                words.trim_end_matches(char::is_alphanumeric).len()
            }
            (Direction::Forward, Unit::Word) => {
                let words = behind.trim_start_matches(|c: char| !c.is_alphanumeric());
                let rest = words.trim_start_matches(char::is_alphanumeric);
                self.text.len() - rest.len()
            }
            (Direction::Backward, Unit::Line) => before.rfind('\n').map_or(0, |at| at + 1),
            (Direction::Forward, Unit::Line) => behind
                .find('\n')
                .map_or(self.text.len(), |end| self.cursor + end),
        }
    }

    /// The nearest grapheme boundary at or after the cursor.
    fn next_boundary(&self) -> usize {
        let mut end = 0;
        for cluster in self.text.graphemes(true) {
            if end >= self.cursor {
                break;
            }
            end += cluster.len();
        }
        end
    }

    /// Lays the text out as rows of a screen, after a prompt.
    pub(crate) fn view(&self, prompt: &Line, columns: usize) -> EditorView {
        let indent = prompt.width();
        // One column is for the cursor after the last letter.
        let room = columns.saturating_sub(indent + 1).max(1);
        let mut rows = vec![prompt.clone()];
        let mut used = 0;
        let mut cursor = (0, 0);
        let mut place = 0;
        let blank = " ".repeat(indent);
        for cluster in self.text.graphemes(true).chain([""]) {
            let looks = match cluster {
                "\t" => "    ".to_owned(),
                other => visible(other),
            };
            if cluster != "\n" && used + width(&looks) > room {
                rows.push(Line::plain(&blank));
                used = 0;
            }
            if place == self.cursor {
                cursor = (rows.len() - 1, used);
            }
            place += cluster.len();
            if cluster == "\n" {
                rows.push(Line::plain(&blank));
                used = 0;
            } else if let Some(row) = rows.last_mut() {
                row.push(&looks, Style::PLAIN);
                used += width(&looks);
            }
        }
        EditorView {
            rows,
            row: cursor.0,
            column: indent + cursor.1,
        }
    }
}
