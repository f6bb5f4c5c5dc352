//! Text for the screen. [`Line`] sanitizes everything that is put on it, and nothing else
//! reaches the terminal.

pub(crate) use crate::style::{Background, Colour, Palette, Style};
use haft::ops::text::decode::visible;
use std::fmt::Write as _;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Columns between tab stops.
const TAB_WIDTH: usize = 8;

/// Whether to output styles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Styling {
    /// Escape sequences for colours and attributes.
    Ansi(Palette),
    /// No escape sequences.
    Plain,
}

/// How to wrap a line that is wider than the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrapping {
    /// Between words; further rows start at this column.
    AtWords(usize),
    /// By the terminal, so that it is copied as one line.
    ByTerminal,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    text: String,
    style: Style,
}

/// One line: pieces of sanitized text, each with a style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    spans: Vec<Span>,
    wrapping: Wrapping,
    /// Background behind the rest of the row.
    fill: Option<Background>,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            spans: Vec::new(),
            wrapping: Wrapping::AtWords(0),
            fill: None,
        }
    }
}

impl Line {
    /// A line with one piece.
    pub(crate) fn new(text: &str, style: Style) -> Self {
        Self::default().and(text, style)
    }

    /// A line of plain text.
    pub(crate) fn plain(text: &str) -> Self {
        Self::new(text, Style::PLAIN)
    }

    /// Appends a piece.
    #[must_use]
    pub(crate) fn and(mut self, text: &str, style: Style) -> Self {
        self.push(text, style);
        self
    }

    /// Sets the column at which further rows start.
    #[must_use]
    pub(crate) fn hanging(mut self, column: usize) -> Self {
        self.wrapping = Wrapping::AtWords(column);
        self
    }

    /// A line that is copied as one line and keeps its tabs.
    pub(crate) fn verbatim(text: &str, style: Style) -> Self {
        Self {
            spans: Vec::new(),
            wrapping: Wrapping::ByTerminal,
            fill: None,
        }
        .and(text, style)
    }

    /// Puts a background behind the text and the rest of the row.
    #[must_use]
    pub(crate) fn filled(mut self, background: Background) -> Self {
        self.fill = Some(background);
        for span in &mut self.spans {
            span.style = Style::PLAIN.on(background).and(span.style);
        }
        self
    }

    /// Makes the line wrap between words.
    #[must_use]
    pub(crate) fn wrapping_at_words(self) -> Self {
        let mut line = Self {
            fill: self.fill,
            ..Self::default()
        };
        for span in &self.spans {
            line.push(&span.text, span.style);
        }
        line
    }

    /// Appends a piece. It cannot control the terminal or end the line.
    pub(crate) fn push(&mut self, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        let mut shown = visible(text).replace('\n', "\\n");
        if self.wrapping != Wrapping::ByTerminal && shown.contains('\t') {
            shown = without_tabs(&shown, self.width());
        }
        match self.spans.last_mut().filter(|last| last.style == style) {
            Some(last) => last.text.push_str(&shown),
            None => self.spans.push(Span { text: shown, style }),
        }
    }

    /// Width in columns.
    pub(crate) fn width(&self) -> usize {
        self.spans.iter().map(|span| width(&span.text)).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Text without styles.
    pub(crate) fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Appends all pieces of another line.
    pub(crate) fn append(&mut self, other: Self) {
        self.spans.extend(other.spans);
    }

    /// Puts a margin in front and keeps the way of wrapping.
    #[must_use]
    pub(crate) fn with_margin(mut self, margin: Self) -> Self {
        let own = std::mem::replace(&mut self.spans, margin.spans);
        self.spans.extend(own);
        self
    }

    /// Puts text in front, and indents further rows by its width.
    #[must_use]
    pub(crate) fn indented(mut self, text: &str, style: Style) -> Self {
        let more = width(text);
        let mut line = Self::new(text, style);
        line.fill = self.fill;
        line.wrapping = match self.wrapping {
            Wrapping::AtWords(column) => Wrapping::AtWords(column + more),
            Wrapping::ByTerminal => Wrapping::ByTerminal,
        };
        line.spans.append(&mut self.spans);
        line
    }

    /// Formats the line for the terminal.
    pub(crate) fn render(&self, styling: Styling) -> String {
        let mut out = String::new();
        for span in &self.spans {
            let code = match styling {
                Styling::Ansi(palette) => span.style.code(palette),
                Styling::Plain => String::new(),
            };
            if code.is_empty() {
                out.push_str(&span.text);
            } else {
                // Writing to a String cannot fail.
                let _ = write!(out, "\x1b[{code}m{}\x1b[0m", span.text);
            }
        }
        out
    }

    /// Formats a row of a screen with this many columns, with its background up to the edge.
    pub(crate) fn render_row(&self, styling: Styling, columns: usize) -> String {
        let mut out = self.render(styling);
        // A row that ends at the edge is full; erasing there would take its last letter.
        let is_full = self.width() > 0 && self.width().is_multiple_of(columns.max(1));
        if let (Styling::Ansi(palette), Some(fill), false) = (styling, self.fill, is_full)
            && let Some(code) = palette.background(fill)
        {
            let _ = write!(out, "\x1b[{code}m\x1b[K\x1b[0m");
        }
        out
    }

    /// Wraps the line into rows. A line that the terminal wraps is one row.
    pub(crate) fn rows(&self, columns: usize) -> Vec<Self> {
        match self.wrapping {
            Wrapping::ByTerminal => vec![self.clone()],
            Wrapping::AtWords(column) => self.refilled(wrap(&self.spans, columns, column)),
        }
    }

    /// Gives rows the background of this line.
    fn refilled(&self, mut rows: Vec<Self>) -> Vec<Self> {
        if let Some(fill) = self.fill {
            rows = rows.into_iter().map(|row| row.filled(fill)).collect();
        }
        rows
    }

    /// Wraps the line into rows, even if the terminal would wrap it.
    pub(crate) fn all_rows(&self, columns: usize) -> Vec<Self> {
        match self.wrapping {
            Wrapping::ByTerminal => {
                let flowing = self.clone().wrapping_at_words();
                let text = flowing.text();
                let margin = text.len() - text.trim_start_matches(' ').len();
                self.refilled(wrap(&flowing.spans, columns, margin))
            }
            Wrapping::AtWords(column) => self.refilled(wrap(&self.spans, columns, column)),
        }
    }

    /// Breaks the line into rows at any column, and keeps every space.
    pub(crate) fn broken_at(&self, columns: usize) -> Vec<Self> {
        let mut rows = vec![Row::default()];
        for span in &self.spans {
            for cluster in span.text.graphemes(true) {
                let full = |row: &Row| row.width > 0 && row.width + width(cluster) > columns;
                if rows.last().is_some_and(full) {
                    rows.push(Row::default());
                }
                if let Some(row) = rows.last_mut() {
                    row.put(cluster, span.style);
                }
            }
        }
        self.refilled(rows.into_iter().map(|row| row.line.unbroken()).collect())
    }

    /// Marks a row that fits, so that it is not wrapped again.
    fn unbroken(mut self) -> Self {
        self.wrapping = Wrapping::ByTerminal;
        self
    }

    /// Truncates the line to one row.
    pub(crate) fn truncated(&self, columns: usize) -> Self {
        if self.width() <= columns {
            return self.clone();
        }
        let mut row = Row::default();
        'all: for span in &self.spans {
            for cluster in span.text.graphemes(true) {
                if row.width + width(cluster) + 1 > columns {
                    break 'all;
                }
                row.put(cluster, span.style);
            }
        }
        row.put("…", Style::DIM);
        row.line.fill = self.fill;
        row.line
    }
}

/// Wraps lines and joins them into text without styles.
pub(crate) fn plain_text(lines: &[Line], columns: usize) -> String {
    let rows = lines.iter().flat_map(|line| line.rows(columns));
    rows.map(|row| row.render(Styling::Plain) + "\n").collect()
}

/// Width of a text in columns.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

fn without_tabs(text: &str, start: usize) -> String {
    let mut out = String::with_capacity(text.len() + TAB_WIDTH);
    let mut column = start;
    for cluster in text.graphemes(true) {
        if cluster == "\t" {
            let to_go = TAB_WIDTH - column % TAB_WIDTH;
            out.extend(std::iter::repeat_n(' ', to_go));
            column += to_go;
        } else {
            out.push_str(cluster);
            column += width(cluster);
        }
    }
    out
}

#[derive(Default)]
struct Row {
    line: Line,
    width: usize,
}

impl Row {
    fn put(&mut self, cluster: &str, style: Style) {
        self.width += width(cluster);
        match self
            .line
            .spans
            .last_mut()
            .filter(|last| last.style == style)
        {
            Some(last) => last.text.push_str(cluster),
            None => self.line.spans.push(Span {
                text: cluster.to_owned(),
                style,
            }),
        }
    }

    fn starting_at(column: usize) -> Self {
        let mut row = Self::default();
        if column > 0 {
            row.put(&" ".repeat(column), Style::PLAIN);
        }
        row
    }
}

/// Breaks pieces into rows: between words if possible, otherwise within a word.
fn wrap(spans: &[Span], columns: usize, hanging: usize) -> Vec<Line> {
    let columns = columns.max(1);
    let hanging = if hanging + 8 > columns { 0 } else { hanging };
    let mut rows = Vec::new();
    let mut row = Row::default();
    // The current word; it may continue in the next piece.
    let mut word: Vec<(&str, Style)> = Vec::new();
    let mut word_width = 0;
    let mut fresh = true;
    let clusters = spans.iter().flat_map(|span| {
        span.text
            .graphemes(true)
            .map(move |cluster| (cluster, span.style))
    });
    for (cluster, style) in clusters.chain([(" ", Style::PLAIN)]) {
        if cluster != " " {
            word.push((cluster, style));
            word_width += width(cluster);
            continue;
        }
        if !fresh && row.width + word_width > columns {
            rows.push(trimmed(std::mem::replace(
                &mut row,
                Row::starting_at(hanging),
            )));
        }
        for (cluster, style) in word.drain(..) {
            if row.width + width(cluster) > columns && row.width > 0 {
                rows.push(trimmed(std::mem::replace(
                    &mut row,
                    Row::starting_at(hanging),
                )));
            }
            row.put(cluster, style);
            fresh = false;
        }
        if word_width == 0 && fresh {
            // Keep indentation.
            if row.width < columns {
                row.put(" ", style);
            }
        } else if row.width < columns {
            row.put(" ", style);
        }
        word_width = 0;
    }
    rows.push(trimmed(row));
    rows
}

/// Removes trailing spaces.
fn trimmed(row: Row) -> Line {
    let mut line = row.line;
    while let Some(last) = line.spans.last_mut() {
        let kept = last.text.trim_end_matches(' ').len();
        last.text.truncate(kept);
        if kept > 0 {
            break;
        }
        line.spans.pop();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(text: &str, columns: usize) -> Vec<String> {
        let line = Line::plain(text);
        line.rows(columns).iter().map(Line::text).collect()
    }

    #[test]
    fn wraps_between_words() {
        assert_eq!(rows("one two three", 8), ["one two", "three"]);
        assert_eq!(rows("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(rows("日本語 日本", 5), ["日本", "語", "日本"]);
        assert_eq!(rows("  two in", 80), ["  two in"]);
        assert_eq!(rows("", 80), [""]);
        let hanging = Line::plain("- one two three four").hanging(2).rows(12);
        let hanging: Vec<String> = hanging.iter().map(Line::text).collect();
        assert_eq!(hanging, ["- one two", "  three four"]);
    }

    #[test]
    fn styles_are_reset_after_each_piece() {
        let line = Line::plain("a ").and("b", Style::BOLD.and(Style::RED));
        assert_eq!(
            line.render(Styling::Ansi(Palette::TERMINAL)),
            "a \x1b[1;31mb\x1b[0m"
        );
        assert_eq!(line.render(Styling::Plain), "a b");
    }

    #[test]
    fn expands_tabs_and_escapes_control_characters() {
        assert_eq!(Line::plain("a\tb\t\tc").text(), "a       b               c");
        assert_eq!(
            Line::plain("x\x1b[2J\u{9b}\u{202e}\ny").text(),
            "x\\x1b[2J\\u{9b}\\u{202e}\\ny"
        );
    }

    #[test]
    fn a_truncated_line_ends_with_an_ellipsis() {
        assert_eq!(Line::plain("abcdef").truncated(4).text(), "abc…");
        assert_eq!(Line::plain("日本語").truncated(4).text(), "日…");
        assert_eq!(Line::plain("abcd").truncated(4).text(), "abcd");
    }

    proptest! {
        #[test]
        fn rows_fit_and_keep_all_text(text in "[a-c 日é👍]{0,60}", columns in 2usize..20) {
            let rows = rows(&text, columns);
            for row in &rows {
                prop_assert!(width(row) <= columns, "{row:?}");
            }
            let letters = |text: &str| text.replace(' ', "");
            prop_assert_eq!(letters(&rows.concat()), letters(&text));
        }

        #[test]
        fn output_contains_no_control_characters(text in any::<String>()) {
            let shown = Line::plain(&text).render(Styling::Ansi(Palette::TERMINAL));
            prop_assert_eq!(visible(&shown), shown);
        }
    }
}
