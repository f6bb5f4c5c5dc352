//! Assembles the text of a page: collapses whitespace, separates blocks with blank lines, and
//! starts each line with the markers of its lists and quotations.

/// Maximum nesting of line prefixes. Deeper ones are left out, because they help no reader and
/// could make up most of a page.
const MAX_DEPTH: usize = 12;

/// Maximum size of the text. A page can expand on purpose: with a cell that spans a thousand
/// rows, or with prefixes on every line.
pub(super) const MAX_BYTES: usize = 8 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Break {
    None,
    Line,
    Blank,
}

/// A prefix of lines, for example a list marker.
#[derive(Debug)]
struct Prefix {
    /// Prefix of the first line, until that line is written.
    first: Option<String>,
    /// Prefix of the following lines.
    rest: &'static str,
    /// Number of repetitions of `rest`.
    width: usize,
    /// Whether nothing was written with this prefix yet; a blank line before the first line does
    /// not get it.
    is_new: bool,
}

/// An open span of text that will be wrapped in something when it ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenSpan(usize);

/// A text under construction.
#[derive(Debug)]
pub(super) struct Writer {
    out: String,
    pending: Break,
    blank: bool,
    prefixes: Vec<Prefix>,
    /// Number of prefixes left out because they are nested too deeply.
    deeper: usize,
    /// Start of each open span, once something was written in it.
    open_spans: Vec<Option<usize>>,
}

impl Writer {
    pub(super) fn new() -> Self {
        Self {
            out: String::new(),
            pending: Break::None,
            blank: false,
            prefixes: Vec::new(),
            deeper: 0,
            open_spans: Vec::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.out.len() > MAX_BYTES
    }

    pub(super) fn finish(self) -> String {
        let mut out = self.out;
        out.truncate(out.trim_end().len());
        out
    }

    /// Starts the next text on a new line.
    pub(super) fn line(&mut self) {
        self.break_line(Break::Line);
    }

    /// Starts the next text on a new line after a blank one.
    pub(super) fn block(&mut self) {
        self.break_line(Break::Blank);
    }

    fn break_line(&mut self, kind: Break) {
        self.blank = false;
        // The text of a list item follows its marker on the same line.
        if self
            .prefixes
            .last()
            .is_some_and(|prefix| prefix.first.is_some())
        {
            return;
        }
        self.pending = self.pending.max(kind);
    }

    /// Adds a prefix: `first` for the next line, `rest` repeated `width` times for those after
    /// it.
    pub(super) fn push(&mut self, first: Option<String>, rest: &'static str, width: usize) {
        if self.prefixes.len() >= MAX_DEPTH {
            self.deeper += 1;
            return;
        }
        self.prefixes.push(Prefix {
            first,
            rest,
            width,
            is_new: true,
        });
    }

    /// Removes the innermost prefix.
    pub(super) fn pop(&mut self) {
        if self.deeper > 0 {
            self.deeper -= 1;
        } else {
            self.prefixes.pop();
        }
    }

    /// Writes text in which any whitespace means one space.
    pub(super) fn text(&mut self, text: &str) {
        let mut is_first = true;
        for word in text.split(is_blank) {
            if !is_first {
                self.blank = true;
            }
            is_first = false;
            if !word.is_empty() {
                self.word(word);
            }
        }
    }

    fn word(&mut self, word: &str) {
        if self.is_full() {
            return;
        }
        // Fast path: nearly all words are printable ASCII.
        if word.bytes().all(|byte| byte.is_ascii_graphic()) {
            self.begin();
            self.out.push_str(word);
            return;
        }
        let mut is_begun = false;
        for c in word.chars().filter(|c| !is_invisible(*c)) {
            if !is_begun {
                self.begin();
                is_begun = true;
            }
            self.out.push(c);
        }
    }

    /// Writes text unchanged on the current line.
    pub(super) fn verbatim(&mut self, text: &str) {
        if !text.is_empty() && !self.is_full() {
            self.begin();
            self.out.push_str(text);
        }
    }

    /// Writes whole lines with all their whitespace.
    pub(super) fn lines(&mut self, text: &str) {
        for line in text.split('\n') {
            self.pending = self.pending.max(Break::Line);
            if line.is_empty() {
                // An empty line gets no trailing spaces from its prefix.
                self.begin();
                self.out.truncate(self.out.trim_end_matches(' ').len());
            } else {
                self.verbatim(line);
            }
            if self.is_full() {
                return;
            }
        }
    }

    /// Writes the pending line breaks, prefixes and space before the next character.
    fn begin(&mut self) {
        let breaks = if self.out.is_empty() {
            Break::None
        } else {
            self.pending
        };
        if breaks > Break::None {
            self.out.truncate(self.out.trim_end_matches(' ').len());
            self.out.push('\n');
        }
        if breaks == Break::Blank {
            // A blank line inside a quotation keeps the quotation's prefix.
            let start = self.out.len();
            for prefix in self.prefixes.iter().take_while(|prefix| !prefix.is_new) {
                for _ in 0..prefix.width {
                    self.out.push_str(prefix.rest);
                }
            }
            let end = self.out.trim_end_matches(' ').len().max(start);
            self.out.truncate(end);
            self.out.push('\n');
        }
        let fresh = self.prefixes.iter().any(|prefix| prefix.first.is_some());
        if breaks > Break::None || self.out.is_empty() || fresh {
            let is_line = breaks > Break::None || self.out.is_empty();
            for prefix in &mut self.prefixes {
                prefix.is_new = false;
                match prefix.first.take() {
                    Some(first) => self.out.push_str(&first),
                    None if is_line => {
                        for _ in 0..prefix.width {
                            self.out.push_str(prefix.rest);
                        }
                    }
                    None => {}
                }
            }
        } else if self.blank && !self.out.ends_with(['\n', ' ']) {
            self.out.push(' ');
        }
        self.blank = false;
        self.pending = Break::None;
        let here = self.out.len();
        for start in self.open_spans.iter_mut().rev() {
            if start.is_some() {
                break;
            }
            *start = Some(here);
        }
    }

    /// Opens a span.
    pub(super) fn open_span(&mut self) -> OpenSpan {
        self.open_spans.push(None);
        OpenSpan(self.open_spans.len())
    }

    /// Closes a span and returns it, unless it is empty.
    pub(super) fn close_span(&mut self, span: OpenSpan) -> Option<ClosedSpan<'_>> {
        self.open_spans.truncate(span.0);
        let start = self.open_spans.pop()??;
        Some(ClosedSpan {
            writer: self,
            start,
        })
    }
}

/// A closed span of text.
pub(super) struct ClosedSpan<'a> {
    writer: &'a mut Writer,
    start: usize,
}

impl ClosedSpan<'_> {
    pub(super) fn text(&self) -> &str {
        self.writer.out.get(self.start..).unwrap_or_default()
    }

    /// Inserts text before and after the span.
    pub(super) fn surround(self, before: &str, behind: &str) {
        self.writer.out.insert_str(self.start, before);
        self.writer.out.push_str(behind);
    }

    /// Replaces the span.
    pub(super) fn replace(self, text: &str) {
        self.writer.out.truncate(self.start);
        self.writer.out.push_str(text);
    }
}

/// Whether a character separates words.
pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}' | '\u{a0}')
}

/// Whether a character is invisible: soft hyphens and zero-width spaces, characters that change
/// the writing direction, and those that can hide text from people but not from a model.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'
            ..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}'
    ) || (c.is_control() && !matches!(c, '\n' | '\t'))
}
