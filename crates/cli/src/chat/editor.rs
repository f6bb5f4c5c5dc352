//! The line a person types on: a text, a place in it, and what keys do to them. Knows
//! nothing of terminals.
//!
//! Ours because the ready ones own the screen while a line is typed, and here the
//! agent works and shows what it does at the same time.

#[cfg(test)]
mod tests;

use super::ink::{Line, Style, width};
use haft::ops::text::decode::visible;
use unicode_segmentation::UnicodeSegmentation;

/// What is being typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Editor {
    text: String,
    /// A place between two clusters, in bytes.
    at: usize,
    /// What was last cut away, to be put back.
    cut: String,
}

/// Where something goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Back,
    Forth,
}

/// How far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Cluster,
    Word,
    Line,
}

/// The rows of the editor on a screen, and where the cursor stands in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
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

    /// What stands before the cursor.
    pub(crate) fn before(&self) -> &str {
        self.text.get(..self.at).unwrap_or_default()
    }

    fn behind(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Another text, with the cursor at its end.
    pub(crate) fn set(&mut self, text: impl Into<String>) {
        self.text = text.into();
        self.at = self.text.len();
    }

    /// Takes the text away.
    pub(crate) fn take(&mut self) -> String {
        self.at = 0;
        std::mem::take(&mut self.text)
    }

    /// Puts something in. Line ends of any kind become our own.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        self.text.insert_str(self.at, &text);
        self.at += text.len();
        // A mark may have joined the letter before it.
        self.at = self.boundary();
    }

    /// Puts something in place of the end of what stands before the cursor.
    pub(crate) fn replace_before(&mut self, start: usize, text: &str) {
        if start <= self.at && self.text.is_char_boundary(start) {
            self.text.replace_range(start..self.at, text);
            self.at = start + text.len();
        }
    }

    /// Takes away what lies in a direction.
    pub(crate) fn delete(&mut self, way: Way, reach: Reach) {
        let to = self.there(way, reach);
        let (start, end) = (to.min(self.at), to.max(self.at));
        let gone: String = self.text.drain(start..end).collect();
        self.at = start;
        self.at = self.boundary();
        if reach != Reach::Cluster && !gone.is_empty() {
            self.cut = gone;
        }
    }

    /// Puts back what was last taken away.
    pub(crate) fn put_back(&mut self) {
        let cut = self.cut.clone();
        self.insert(&cut);
    }

    pub(crate) fn go(&mut self, way: Way, reach: Reach) {
        self.at = self.there(way, reach);
        self.at = self.boundary();
    }

    /// To the line above or below; no if there is none.
    pub(crate) fn go_line(&mut self, way: Way) -> bool {
        let column = self.before().rsplit('\n').next().unwrap_or_default();
        let column = column.graphemes(true).count();
        let start = match way {
            Way::Back => {
                let Some(end) = self.before().rfind('\n') else {
                    return false;
                };
                let above = self.text.get(..end).unwrap_or_default();
                above.rfind('\n').map_or(0, |at| at + 1)
            }
            Way::Forth => match self.behind().find('\n') {
                Some(end) => self.at + end + 1,
                None => return false,
            },
        };
        let line = self.text.get(start..).unwrap_or_default();
        let line = line.split('\n').next().unwrap_or_default();
        let within: usize = line.graphemes(true).take(column).map(str::len).sum();
        self.at = start + within;
        true
    }

    fn there(&self, way: Way, reach: Reach) -> usize {
        let (before, behind) = (self.before(), self.behind());
        match (way, reach) {
            (Way::Back, Reach::Cluster) => {
                self.at - before.graphemes(true).next_back().map_or(0, str::len)
            }
            (Way::Forth, Reach::Cluster) => {
                self.at + behind.graphemes(true).next().map_or(0, str::len)
            }
            (Way::Back, Reach::Word) => {
                let words = before.trim_end_matches(|c: char| !c.is_alphanumeric());
                words.trim_end_matches(char::is_alphanumeric).len()
            }
            (Way::Forth, Reach::Word) => {
                let words = behind.trim_start_matches(|c: char| !c.is_alphanumeric());
                let rest = words.trim_start_matches(char::is_alphanumeric);
                self.text.len() - rest.len()
            }
            (Way::Back, Reach::Line) => before.rfind('\n').map_or(0, |at| at + 1),
            (Way::Forth, Reach::Line) => behind
                .find('\n')
                .map_or(self.text.len(), |end| self.at + end),
        }
    }

    /// The nearest place between two clusters, from the cursor on.
    fn boundary(&self) -> usize {
        let mut end = 0;
        for cluster in self.text.graphemes(true) {
            if end >= self.at {
                break;
            }
            end += cluster.len();
        }
        end
    }

    /// As rows of a screen, behind a prompt.
    pub(crate) fn shown(&self, prompt: &Line, columns: usize) -> Shown {
        let indent = prompt.width();
        // One column is for the cursor behind the last letter.
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
            if place == self.at {
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
        Shown {
            rows,
            row: cursor.0,
            column: indent + cursor.1,
        }
    }
}
