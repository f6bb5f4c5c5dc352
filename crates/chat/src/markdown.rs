//! Streamed Markdown. Finished blocks become lines that never change; the unfinished rest
//! can be previewed, and looks as it will if nothing more arrives.
//!
//! Blocks are parsed in whole lines, so the result does not depend on how the text was
//! split into pieces.

mod block;
mod page;
mod table;
#[cfg(test)]
mod tests;

use crate::styled_text::{Line, Style};
use block::{Fence, Opening};
use haft::ops::text::decode::suffix;
use page::{Numbering, Page};

/// Maximum size of an unfinished block to preview, in bytes; a screen shows less.
const PENDING: usize = 16 << 10;

/// A Markdown text that arrives in pieces.
#[derive(Debug, Clone)]
pub(crate) struct Markdown {
    columns: usize,
    /// Unfinished line.
    line: String,
    /// Lines of the unfinished block.
    block: String,
    place: Place,
    numbering: Numbering,
    /// Whether anything was output, and whether an empty line is due before the next block.
    begun: bool,
    apart: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Between,
    Paragraph,
    /// In a list item: perhaps in a code block of it, or after an empty line.
    Item {
        fence: Option<Fence>,
        gap: bool,
    },
    Code(Fence),
}

impl Markdown {
    /// Creates a parser for a screen with this many columns.
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

    /// Changes the width of the screen.
    pub(crate) fn resize(&mut self, columns: usize) {
        self.columns = columns.max(8);
    }

    /// Adds text and returns the lines that are finished.
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

    /// Ends the text and returns the remaining lines.
    pub(crate) fn finish(&mut self) -> Vec<Line> {
        let mut out = self.rest();
        if let Place::Code(fence) = &self.place {
            out.push(Line::new(&fence.closing(), Style::DIM));
        }
        *self = Self::new(self.columns);
        out
    }

    /// Previews the unfinished rest; only its end if it is long.
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

    /// Handles one whole line.
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
                    // A lazy continuation of the item's paragraph.
                    self.add(line);
                }
            }
        }
    }

    /// Handles the first line of a block.
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
            // Link definitions are shown too: nothing the model wrote is hidden.
            Opening::Other if block::is_definition(line) => {
                self.stand_apart(out);
                out.push(Line::plain(line));
            }
            Opening::Underline | Opening::Other => {
                self.add(line);
                self.place = Place::Paragraph;
                // A rule is a block of its own.
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

    /// Outputs an empty line if one is due before the next block.
    fn stand_apart(&mut self, out: &mut Vec<Line>) {
        if self.begun && self.apart {
            out.push(Line::default());
        }
        self.begun = true;
        self.apart = false;
    }
}
