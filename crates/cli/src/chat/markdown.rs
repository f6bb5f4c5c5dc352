//! Markdown that is still being written. Finished blocks become lines at once and for
//! good; what is unfinished can be looked at, and looks the way it will if nothing
//! more comes.
//!
//! A block is judged only by whole lines, so that the same text gives the same lines
//! however it was cut into pieces on its way.

mod block;
mod page;
mod table;
#[cfg(test)]
mod tests;

use super::ink::{Line, Style};
use block::{Fence, Opening};
use haft::ops::text::decode::suffix;
use page::{Numbering, Page};

/// How much of an unfinished block is looked at, for a screen that shows less.
const PENDING: usize = 16 << 10;

/// A text on its way.
#[derive(Debug, Clone)]
pub(crate) struct Markdown {
    columns: usize,
    /// The line that has not ended.
    line: String,
    /// The lines of the block that has not ended.
    block: String,
    place: Place,
    numbering: Numbering,
    /// Whether anything was shown, and whether the next thing stands apart from it.
    begun: bool,
    apart: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Between,
    Paragraph,
    /// In an item of a list: in code that it holds, or after an empty line.
    Item {
        fence: Option<Fence>,
        gap: bool,
    },
    Code(Fence),
}

impl Markdown {
    /// For a screen of so many columns.
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            columns: columns.max(8),
            line: String::new(),
            block: String::new(),
            place: Place::Between,
            numbering: Numbering::default(),
            begun: false,
            apart: false,
        }
    }

    /// The screen has another width now.
    pub(crate) fn resize(&mut self, columns: usize) {
        self.columns = columns.max(8);
    }

    /// More of it; the lines that are finished by that.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Line> {
        let mut out = Vec::new();
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece);
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                let line = line.trim_end_matches('\n');
                self.take(line.strip_suffix('\r').unwrap_or(line), &mut out);
            }
        }
        out
    }

    /// It is over; the lines that are left.
    pub(crate) fn finish(&mut self) -> Vec<Line> {
        let mut out = self.rest();
        if let Place::Code(fence) = &self.place {
            out.push(Line::new(&fence.closing(), Style::DIM));
        }
        *self = Self::new(self.columns);
        out
    }

    /// What is unfinished, as it looks now; of very much the end.
    pub(crate) fn pending(&self) -> Vec<Line> {
        let mut rest = self.clone();
        for text in [&mut rest.block, &mut rest.line] {
            if text.len() > PENDING {
                *text = suffix(text, PENDING).to_owned();
            }
        }
        rest.rest()
    }

    fn rest(&mut self) -> Vec<Line> {
        let mut out = Vec::new();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take(line.strip_suffix('\r').unwrap_or(&line), &mut out);
        }
        self.end_block(&mut out);
        out
    }

    /// One whole line.
    fn take(&mut self, line: &str, out: &mut Vec<Line>) {
        let opening = Opening::of(line);
        match &mut self.place {
            Place::Code(fence) => {
                if fence.is_closed_by(line) {
                    out.push(Line::new(line.trim_start(), Style::DIM));
                    self.place = Place::Between;
                } else {
                    out.push(fence.code(line));
                }
            }
            Place::Between => self.begin(line, opening, out),
            Place::Paragraph => match opening {
                Opening::Blank => {
                    self.end_block(out);
                    self.apart = true;
                }
                Opening::Underline => {
                    self.add(line);
                    self.end_block(out);
                }
                Opening::Fence(_) | Opening::Heading | Opening::Item { interrupts: true } => {
                    self.end_block(out);
                    self.begin(line, opening, out);
                }
                Opening::Item { .. } | Opening::Other => self.add(line),
            },
            Place::Item { fence, gap } => {
                let inside = block::indent(line) >= 2;
                if let Some(open) = fence {
                    if open.is_closed_by(line.trim_start()) {
                        *fence = None;
                    }
                    self.add(line);
                } else if opening == Opening::Blank {
                    *gap = true;
                    self.add(line);
                } else if inside {
                    *gap = false;
                    *fence = Fence::opened_by(line.trim_start());
                    self.add(line);
                } else if *gap || !matches!(opening, Opening::Other | Opening::Underline) {
                    let apart = *gap;
                    self.end_block(out);
                    self.apart = apart;
                    self.begin(line, opening, out);
                } else {
                    // The paragraph of the item goes on without its indent.
                    self.add(line);
                }
            }
        }
    }

    /// The first line of something.
    fn begin(&mut self, line: &str, opening: Opening, out: &mut Vec<Line>) {
        match opening {
            Opening::Blank => self.apart = true,
            Opening::Fence(fence) => {
                self.numbering = Numbering::default();
                self.stand_apart(out);
                out.push(Line::new(line.trim_start(), Style::DIM));
                self.place = Place::Code(fence);
            }
            Opening::Heading => {
                self.apart = true;
                self.add(line);
                self.end_block(out);
            }
            Opening::Item { .. } => {
                self.add(line);
                let text = line
                    .trim_start()
                    .split_once(' ')
                    .map_or("", |(_, text)| text);
                self.place = Place::Item {
                    fence: Fence::opened_by(text.trim_start()),
                    gap: false,
                };
            }
            // Nothing that was said is hidden, also where it only says what a link is.
            Opening::Other if block::is_definition(line) => {
                self.stand_apart(out);
                out.push(Line::plain(line));
            }
            Opening::Underline | Opening::Other => {
                self.add(line);
                self.place = Place::Paragraph;
                // Nothing can follow a rule.
                if opening == Opening::Underline {
                    self.end_block(out);
                }
            }
        }
    }

    fn add(&mut self, line: &str) {
        self.block.push_str(line);
        self.block.push('\n');
    }

    fn end_block(&mut self, out: &mut Vec<Line>) {
        let block = std::mem::take(&mut self.block);
        if !matches!(self.place, Place::Code(_)) {
            self.place = Place::Between;
        }
        if block.trim().is_empty() {
            return;
        }
        let mut lines = Page::new(self.columns, &mut self.numbering).read(&block);
        if lines.is_empty() {
            lines = block.lines().map(Line::plain).collect();
        }
        self.stand_apart(out);
        out.append(&mut lines);
    }

    /// An empty line, where one is due before what comes now.
    fn stand_apart(&mut self, out: &mut Vec<Line>) {
        if self.begun && self.apart {
            out.push(Line::default());
        }
        self.begun = true;
        self.apart = false;
    }
}
