//! Colours for code: keywords, strings, comments, numbers, calls and types, line by line.
//!
//! Not a library. Those with grammars for all languages take a tenth of a second and more to
//! prepare a language, while the user types, and 3 MB of the program. Code in a chat is short,
//! often incomplete, and arrives line by line, so a scanner with tables is enough.

mod languages;
#[cfg(test)]
mod tests;

use crate::style::Colour;
use languages::{Language, Quote, Words};
use std::ops::Range;

/// A piece of a line, in bytes, and its colour.
pub(crate) type Piece = (Range<usize>, Colour);

/// Longer lines stay plain: they are data.
const MAX_LINE: usize = 4 << 10;

/// Scanner for the lines of one text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Highlighter {
    language: Option<&'static Language>,
    /// Comment or text that an earlier line has opened.
    open: Option<Open>,
}

#[derive(Debug, Clone, Copy)]
enum Open {
    Comment(&'static str),
    Text(&'static Quote),
}

impl Highlighter {
    /// For a name of a language, such as the one after a fence.
    pub(crate) fn named(name: &str) -> Self {
        let name = name.trim_matches(['{', '}', '.']).to_ascii_lowercase();
        let name = name.split([',', ' ', ':']).next().unwrap_or_default();
        Self::of(languages::named(name))
    }

    /// For the file with this path.
    pub(crate) fn of_file(path: &str) -> Self {
        let file = path.rsplit('/').next().unwrap_or_default();
        let end = file.rsplit('.').next().unwrap_or_default();
        Self::of(languages::named(&file.to_ascii_lowercase()).or_else(|| languages::named(end)))
    }

    fn of(language: Option<&'static Language>) -> Self {
        Self {
            language,
            open: None,
        }
    }

    /// Returns the coloured pieces of the next line, in order.
    pub(crate) fn line(&mut self, line: &str) -> Vec<Piece> {
        let Some(language) = self.language.filter(|_| line.len() <= MAX_LINE) else {
            return Vec::new();
        };
        let mut scan = Scan {
            language,
            line,
            at: 0,
            pieces: Vec::new(),
        };
        if let Some(open) = self.open.take() {
            self.open = scan.continue_open(open);
        }
        while self.open.is_none() && scan.at < line.len() {
            self.open = scan.step();
        }
        scan.pieces
    }
}

struct Scan<'a> {
    language: &'static Language,
    line: &'a str,
    at: usize,
    pieces: Vec<Piece>,
}

impl Scan<'_> {
    fn rest(&self) -> &str {
        self.line.get(self.at..).unwrap_or_default()
    }

    fn before(&self) -> Option<char> {
        self.line.get(..self.at)?.chars().next_back()
    }

    /// Takes this many bytes.
    fn take(&mut self, length: usize, colour: Option<Colour>) {
        let end = (self.at + length).min(self.line.len());
        if let Some(colour) = colour
            && end > self.at
        {
            self.pieces.push((self.at..end, colour));
        }
        self.at = end;
    }

    /// Goes on in a comment or text of an earlier line.
    fn continue_open(&mut self, open: Open) -> Option<Open> {
        match open {
            Open::Comment(close) => self.comment(close, 0),
            Open::Text(quote) => self.text(quote, 0),
        }
    }

    /// Takes a comment to its end, after the `opened` bytes that open it.
    fn comment(&mut self, close: &'static str, opened: usize) -> Option<Open> {
        let inside = self.rest().get(opened..).unwrap_or_default();
        let end = inside.find(close).map(|end| opened + end + close.len());
        let length = end.unwrap_or(self.rest().len());
        self.take(length, Some(Colour::Comment));
        end.is_none().then_some(Open::Comment(close))
    }

    /// Takes a quoted text to its end, after the `opened` bytes that open it.
    fn text(&mut self, quote: &'static Quote, opened: usize) -> Option<Open> {
        let rest = self.rest();
        let mut at = opened;
        let mut is_closed = false;
        while let Some(inside) = rest.get(at..).filter(|inside| !inside.is_empty()) {
            if quote.has_escapes && inside.starts_with('\\') {
                let escaped = inside.chars().nth(1).map_or(0, char::len_utf8);
                at += 1 + escaped;
            } else if inside.starts_with(quote.close) {
                at += quote.close.len();
                is_closed = true;
                break;
            } else {
                at += inside.chars().next().map_or(1, char::len_utf8);
            }
        }
        // In data, a quoted name before a colon is a key.
        let after = rest.get(at..).unwrap_or_default().trim_start();
        let is_key = self.language.words == Words::Keys && after.starts_with([':', '=']);
        let colour = if is_key {
            Colour::Function
        } else {
            Colour::Literal
        };
        self.take(at, Some(colour));
        (!is_closed && quote.spans_lines).then_some(Open::Text(quote))
    }

    /// Takes the next token, and returns what it leaves open.
    fn step(&mut self) -> Option<Open> {
        let rest = self.rest();
        let language = self.language;
        if let Some((open, close)) = language.block_comment
            && rest.starts_with(open)
        {
            return self.comment(close, open.len());
        }
        // In a shell, `#` starts a comment only at the start of a word.
        let at_word = self.before().is_none_or(|c| c.is_whitespace() || c == ';');
        let starts = |mark: &&&str| rest.starts_with(**mark) && (**mark != "#" || at_word);
        if language.line_comments.iter().find(starts).is_some() {
            self.take(rest.len(), Some(Colour::Comment));
            return None;
        }
        if language.has_lifetimes && rest.starts_with('\'') {
            self.take_tick();
            return None;
        }
        let quote = language
            .quotes
            .iter()
            .find(|quote| rest.starts_with(quote.open));
        if let Some(quote) = quote {
            return self.text(quote, quote.open.len());
        }
        let first = rest.chars().next().unwrap_or_default();
        if first.is_ascii_digit() {
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            self.take(length, Some(Colour::Number));
        } else if first.is_alphabetic() || matches!(first, '_' | '$' | '@') {
            self.take_word(first);
        } else {
            self.take(first.len_utf8(), None);
        }
        None
    }

    /// Takes a lifetime or a character of Rust.
    fn take_tick(&mut self) {
        let mut letters = self.rest().chars().skip(1);
        let (first, second) = (letters.next(), letters.next());
        let is_letter = first == Some('\\') || second == Some('\'');
        if is_letter {
            let escaped = second.map_or(0, char::len_utf8);
            let from = if first == Some('\\') { 2 + escaped } else { 1 };
            let rest = self.rest().get(from..).unwrap_or_default();
            let length = rest.find('\'').map_or(rest.len(), |end| end + 1);
            self.take(from + length, Some(Colour::Literal));
        } else {
            self.take(1, None);
        }
    }

    fn take_word(&mut self, first: char) {
        let rest = self.rest();
        let dashes = self.language.words == Words::Keys;
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || (dashes && c == '-');
        let head = first.len_utf8();
        let tail = rest.get(head..).unwrap_or_default();
        let length = head + tail.find(|c| !is_part(c)).unwrap_or(tail.len());
        let word = rest.get(..length).unwrap_or_default();
        let after = rest.get(length..).unwrap_or_default();
        let colour = self.colour_of_word(word, after, first);
        self.take(length, colour);
    }

    fn colour_of_word(&self, word: &str, after: &str, first: char) -> Option<Colour> {
        let language = self.language;
        let ends = |c: char| c.is_whitespace() || ";|&()`".contains(c);
        let is_alone = self.before().is_none_or(ends) && after.chars().next().is_none_or(ends);
        // In a shell most words are parts of paths and options.
        if language.words == Words::Commands && !is_alone && !matches!(first, '$' | '@') {
            return None;
        }
        let known = |words: &[&str]| match language.ignores_case {
            true => words.iter().any(|known| known.eq_ignore_ascii_case(word)),
            false => words.contains(&word),
        };
        if known(language.keywords) {
            return Some(Colour::Keyword);
        }
        if known(language.constants) {
            return Some(Colour::Number);
        }
        if matches!(first, '$' | '@') {
            return (word.len() > 1).then_some(Colour::Type);
        }
        match language.words {
            Words::Keys => {
                let is_key = after.trim_start().starts_with([':', '=']);
                is_key.then_some(Colour::Function)
            }
            Words::Commands => None,
            Words::Code if after.starts_with('(') || after.starts_with("!(") => {
                Some(Colour::Function)
            }
            Words::Code => first.is_uppercase().then_some(Colour::Type),
        }
    }
}
