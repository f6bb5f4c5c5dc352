//! Text as it is put together: blanks become one, blocks get a line between them,
//! lists and quotations their marks at the beginning of each line.

/// Marks at the beginning of lines beyond that are left out: nobody reads them, and a
/// page could be all marks.
const DEEPEST: usize = 12;

/// How much is written at most. A page of some megabytes can be made to grow: by a
/// cell that counts for a thousand rows, or by marks on each of its lines.
pub(super) const MOST: usize = 8 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Break {
    None,
    Line,
    Blank,
}

/// What stands at the beginning of lines.
#[derive(Debug)]
struct Prefix {
    /// Before the first line, until that is written.
    first: Option<String>,
    /// Before the others.
    rest: &'static str,
    /// How often.
    width: usize,
    /// Whether nothing was written with it yet: an empty line that comes first
    /// stands before it.
    is_new: bool,
}

/// A mark around a piece of a line that was begun.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark(usize);

/// A text that grows.
#[derive(Debug)]
pub(super) struct Writer {
    out: String,
    pending: Break,
    blank: bool,
    prefixes: Vec<Prefix>,
    /// Prefixes that are not written, being too deep.
    deeper: usize,
    /// Where each open mark begins, once something was written in it.
    marks: Vec<Option<usize>>,
}

impl Writer {
    pub(super) fn new() -> Self {
        Self {
            out: String::new(),
            pending: Break::None,
            blank: false,
            prefixes: Vec::new(),
            deeper: 0,
            marks: Vec::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.out.len() > MOST
    }

    pub(super) fn finish(self) -> String {
        let mut out = self.out;
        out.truncate(out.trim_end().len());
        out
    }

    /// The next text begins a line.
    pub(super) fn line(&mut self) {
        self.want(Break::Line);
    }

    /// The next text begins a line, and an empty one is before it.
    pub(super) fn block(&mut self) {
        self.want(Break::Blank);
    }

    fn want(&mut self, wanted: Break) {
        self.blank = false;
        // After the mark of an item its text follows on the same line.
        if self
            .prefixes
            .last()
            .is_some_and(|prefix| prefix.first.is_some())
        {
            return;
        }
        self.pending = self.pending.max(wanted);
    }

    /// From now on lines begin with this: `first` the next one, `width` times `rest`
    /// those after it.
    pub(super) fn push(&mut self, first: Option<String>, rest: &'static str, width: usize) {
        if self.prefixes.len() >= DEEPEST {
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

    /// No longer.
    pub(super) fn pop(&mut self) {
        if self.deeper > 0 {
            self.deeper -= 1;
        } else {
            self.prefixes.pop();
        }
    }

    /// Text whose blanks mean nothing but an end of a word.
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
        // Nearly all words are, and nothing in them is unseen.
        if word.bytes().all(|byte| byte.is_ascii_graphic()) {
            self.begin();
            self.out.push_str(word);
            return;
        }
        let mut is_begun = false;
        for c in word.chars().filter(|c| !is_unseen(*c)) {
            if !is_begun {
                self.begin();
                is_begun = true;
            }
            self.out.push(c);
        }
    }

    /// Text as it is, on the line that is being written.
    pub(super) fn exact(&mut self, text: &str) {
        if !text.is_empty() && !self.is_full() {
            self.begin();
            self.out.push_str(text);
        }
    }

    /// Whole lines, with all their blanks.
    pub(super) fn lines(&mut self, text: &str) {
        for line in text.split('\n') {
            self.pending = self.pending.max(Break::Line);
            if line.is_empty() {
                // A line that is empty has nothing that would begin it.
                self.begin();
                self.out.truncate(self.out.trim_end_matches(' ').len());
            } else {
                self.exact(line);
            }
            if self.is_full() {
                return;
            }
        }
    }

    /// Writes what has to be there before the next character.
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
            // Within a quotation the empty line is one of the quotation.
            let start = self.out.len();
            for prefix in self.prefixes.iter().take_while(|prefix| !prefix.is_new) {
                for _ in 0..prefix.width {
                    self.out.push_str(prefix.rest);
                }
            }
            let kept = self.out.trim_end_matches(' ').len().max(start);
            self.out.truncate(kept);
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
        for mark in self.marks.iter_mut().rev() {
            if mark.is_some() {
                break;
            }
            *mark = Some(here);
        }
    }

    /// Begins a piece that will get something around it.
    pub(super) fn mark(&mut self) -> Mark {
        self.marks.push(None);
        Mark(self.marks.len())
    }

    /// Ends it, and says what was written in it.
    pub(super) fn marked(&mut self, mark: Mark) -> Option<Marked<'_>> {
        self.marks.truncate(mark.0);
        let start = self.marks.pop()??;
        Some(Marked {
            writer: self,
            start,
        })
    }
}

/// A piece of text that was written.
pub(super) struct Marked<'a> {
    writer: &'a mut Writer,
    start: usize,
}

impl Marked<'_> {
    pub(super) fn text(&self) -> &str {
        self.writer.out.get(self.start..).unwrap_or_default()
    }

    /// Puts something before and behind it.
    pub(super) fn surround(self, before: &str, behind: &str) {
        self.writer.out.insert_str(self.start, before);
        self.writer.out.push_str(behind);
    }

    /// Writes something else in its place.
    pub(super) fn replace(self, text: &str) {
        self.writer.out.truncate(self.start);
        self.writer.out.push_str(text);
    }
}

/// What separates words.
pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}' | '\u{a0}')
}

/// What nobody sees: it breaks words for the eye alone, turns the direction of
/// writing, or hides text from people that a model would read.
pub(crate) fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'
            ..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}'
    ) || (c.is_control() && !matches!(c, '\n' | '\t'))
}
