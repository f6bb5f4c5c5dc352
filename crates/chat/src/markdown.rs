//! Streamed Markdown. Finished blocks become lines that never change; the unfinished rest
//! can be previewed, and looks as it will if nothing more arrives.
//!
//! Blocks are parsed in whole lines, so the result does not depend on how the text was
//! split into pieces.

mod block;
mod render;
mod table;
#[cfg(test)]
mod tests;

use crate::styled_text::{Line, Styling};
use block::{Code, Fence, LineKind};
use haft::ops::text::decode::suffix;
use render::{BlockRenderer, Numbering};

/// Only this much of an unfinished block is previewed; a screen shows less.
const MAX_PREVIEW_BYTES: usize = 16 << 10;

/// How to show what has no letters of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// As the model wrote it.
    Plain,
    /// With lines around code.
    Lined,
    /// With a background behind code.
    Shaded,
}

impl Look {
    fn of(styling: Styling) -> Self {
        match styling {
            Styling::Plain => Self::Plain,
            Styling::Ansi(palette) if palette.has_backgrounds() => Self::Shaded,
            Styling::Ansi(_) => Self::Lined,
        }
    }
}

/// A Markdown text that arrives in pieces.
#[derive(Debug, Clone)]
pub(crate) struct Markdown {
    columns: usize,
    look: Look,
    /// Unfinished line.
    line: String,
    /// Lines of the unfinished block.
    block: String,
    state: BlockState,
    numbering: Numbering,
    /// Whether anything was output, and whether an empty line is due before the next block.
    has_output: bool,
    needs_gap: bool,
}

#[derive(Debug, Clone)]
enum BlockState {
    Between,
    Paragraph,
    /// In a list item: perhaps in a code block of it, or after an empty line.
    Item {
        fence: Option<Fence>,
        gap: bool,
    },
    Code(Fence, Code),
}

impl Markdown {
    /// Creates a parser for a screen with this many columns.
    pub(crate) fn new(columns: usize, styling: Styling) -> Self {
        Self::looking(columns, Look::of(styling))
    }

    fn looking(columns: usize, look: Look) -> Self {
        Self {
            columns: columns.max(8),
            look,
            line: String::new(),
            block: String::new(),
            state: BlockState::Between,
            numbering: Numbering::default(),
            has_output: false,
            needs_gap: false,
        }
    }

    /// Changes the look of what comes.
    pub(crate) fn restyle(&mut self, styling: Styling) {
        self.look = Look::of(styling);
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
                self.add_line(line.strip_suffix('\r').unwrap_or(line), &mut out);
            }
        }
        out
    }

    /// Ends the text and returns the remaining lines.
    pub(crate) fn finish(&mut self) -> Vec<Line> {
        let mut out = self.flush();
        if let BlockState::Code(fence, code) = &self.state {
            out.extend(code.closing(&fence.closing()));
        }
        *self = Self::looking(self.columns, self.look);
        out
    }

    /// Previews the unfinished rest; only its end if it is long.
    pub(crate) fn pending(&self) -> Vec<Line> {
        let mut rest = self.clone();
        for text in [&mut rest.block, &mut rest.line] {
            if text.len() > MAX_PREVIEW_BYTES {
                *text = suffix(text, MAX_PREVIEW_BYTES).to_owned();
            }
        }
        rest.flush()
    }

    fn flush(&mut self) -> Vec<Line> {
        let mut out = Vec::new();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.add_line(line.strip_suffix('\r').unwrap_or(&line), &mut out);
        }
        self.end_block(&mut out);
        out
    }

    /// Handles one whole line.
    fn add_line(&mut self, line: &str, out: &mut Vec<Line>) {
        let kind = LineKind::of(line);
        match &mut self.state {
            BlockState::Code(fence, code) => {
                if fence.is_closed_by(line) {
                    out.extend(code.closing(line.trim_start()));
                    // A background has no line that ends it.
                    self.needs_gap |= self.look == Look::Shaded;
                    self.state = BlockState::Between;
                } else {
                    out.push(code.line(fence.dedented(line)));
                }
            }
            BlockState::Between => self.start_block(line, kind, out),
            BlockState::Paragraph => match kind {
                LineKind::Blank => {
                    self.end_block(out);
                    self.needs_gap = true;
                }
                LineKind::Underline => {
                    self.push_line(line);
                    self.end_block(out);
                }
                LineKind::Fence(_) | LineKind::Heading | LineKind::Item { interrupts: true } => {
                    self.end_block(out);
                    self.start_block(line, kind, out);
                }
                LineKind::Item { .. } | LineKind::Other => self.push_line(line),
            },
            BlockState::Item { fence, gap } => {
                let inside = block::indent(line) >= 2;
                if let Some(open) = fence {
                    if open.is_closed_by(line.trim_start()) {
                        *fence = None;
                    }
                    self.push_line(line);
                } else if kind == LineKind::Blank {
                    *gap = true;
                    self.push_line(line);
                } else if inside {
                    *gap = false;
                    *fence = Fence::opened_by(line.trim_start());
                    self.push_line(line);
                } else if *gap || !matches!(kind, LineKind::Other | LineKind::Underline) {
                    let needs_gap = *gap;
                    self.end_block(out);
                    self.needs_gap = needs_gap;
                    self.start_block(line, kind, out);
                } else {
                    // A lazy continuation of the item's paragraph.
                    self.push_line(line);
                }
            }
        }
    }

    /// Handles the first line of a block.
    fn start_block(&mut self, line: &str, kind: LineKind, out: &mut Vec<Line>) {
        match kind {
            LineKind::Blank => self.needs_gap = true,
            LineKind::Fence(fence) => {
                self.numbering = Numbering::default();
                self.needs_gap |= self.look == Look::Shaded;
                self.push_gap(out);
                let code = fence.code(self.look);
                out.extend(code.opening(line.trim_start()));
                self.state = BlockState::Code(fence, code);
            }
            LineKind::Heading => {
                self.needs_gap = true;
                self.push_line(line);
                self.end_block(out);
            }
            LineKind::Item { .. } => {
                self.push_line(line);
                let text = line
                    .trim_start()
                    .split_once(' ')
                    .map_or("", |(_, text)| text);
                self.state = BlockState::Item {
                    fence: Fence::opened_by(text.trim_start()),
                    gap: false,
                };
            }
            // Link definitions are shown too: nothing the model wrote is hidden.
            LineKind::Other if block::is_link_definition(line) => {
                self.push_gap(out);
                out.push(Line::plain(line));
            }
            LineKind::Underline | LineKind::Other => {
                self.push_line(line);
                self.state = BlockState::Paragraph;
                // A rule is a block of its own.
                if kind == LineKind::Underline {
                    self.end_block(out);
                }
            }
        }
    }

    fn push_line(&mut self, line: &str) {
        self.block.push_str(line);
        self.block.push('\n');
    }

    fn end_block(&mut self, out: &mut Vec<Line>) {
        let block = std::mem::take(&mut self.block);
        if !matches!(self.state, BlockState::Code(..)) {
            self.state = BlockState::Between;
        }
        if block.trim().is_empty() {
            return;
        }
        let mut lines =
            BlockRenderer::new(self.columns, self.look, &mut self.numbering).render(&block);
        if lines.is_empty() {
            lines = block.lines().map(Line::plain).collect();
        }
        self.push_gap(out);
        out.append(&mut lines);
    }

    /// Outputs an empty line if one is due before the next block.
    fn push_gap(&mut self, out: &mut Vec<Line>) {
        if self.has_output && self.needs_gap {
            out.push(Line::default());
        }
        self.has_output = true;
        self.needs_gap = false;
    }
}
