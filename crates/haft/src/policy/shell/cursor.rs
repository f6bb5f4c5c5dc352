//! The position in a text, and helpers for all parts of the parser.

use super::heredoc::Pending;
use super::{DEPTH, Dialect, Script, Stop, TOO_DEEP};

/// Parser of one text.
pub(in crate::policy) struct Reader<'s> {
    chars: Vec<char>,
    pub(super) at: usize,
    pub(super) script: &'s mut Script,
    pub(super) dialect: Dialect,
    pub(super) depth: usize,
    /// Here-documents whose bodies start after this line.
    pub(super) pending: Vec<Pending>,
    /// Number of `$(` and `<(` around the current position.
    pub(super) substitutions: usize,
    /// Whether the output of the commands becomes part of another command.
    pub(super) substituted: bool,
    /// Whether `name=(` starts an array here. Elsewhere the parenthesis is an operator.
    pub(super) arrays: bool,
}

impl<'s> Reader<'s> {
    pub(super) fn new(
        text: &str,
        dialect: Dialect,
        depth: usize,
        script: &'s mut Script,
    ) -> Result<Self, Stop> {
        if depth > DEPTH {
            return Err(TOO_DEEP);
        }
        script.charge(text.len())?;
        if text.contains('\0') {
            return Err("a NUL character");
        }
        let substituted = script.substituted;
        Ok(Self {
            chars: text.chars().collect(),
            at: 0,
            script,
            dialect,
            depth,
            pending: Vec::new(),
            substitutions: 0,
            substituted,
            arrays: false,
        })
    }

    /// Returns a parser for a text inside this one.
    pub(super) fn inner(&mut self, text: &str) -> Result<Reader<'_>, Stop> {
        let mut inner = Reader::new(text, self.dialect, self.depth + 1, self.script)?;
        inner.substituted = self.substituted;
        Ok(inner)
    }

    /// Runs a step one level deeper.
    pub(super) fn nested<T>(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        if self.depth >= DEPTH {
            return Err(TOO_DEEP);
        }
        self.depth += 1;
        let result = step(self);
        self.depth -= 1;
        result
    }

    /// Returns the next character. A backslash before a newline disappears with it.
    pub(super) fn peek(&mut self) -> Option<char> {
        while self.raw() == Some('\\') && self.chars.get(self.at + 1) == Some(&'\n') {
            self.at += 2;
        }
        self.raw()
    }

    /// Returns the next character, even a backslash before a newline.
    pub(super) fn raw(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn bump(&mut self) {
        self.at += 1;
    }

    /// Returns the variable name that comes next, without consuming it.
    pub(super) fn name(&self) -> String {
        let is_name = |c: &&char| c.is_ascii_alphanumeric() || **c == '_';
        let rest = self.chars.get(self.at..).unwrap_or_default();
        rest.iter().take_while(is_name).collect()
    }

    /// Consumes the next character, whatever it is.
    pub(super) fn next_raw(&mut self) -> Option<char> {
        let c = self.raw()?;
        self.bump();
        Some(c)
    }

    pub(super) fn take(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        if there {
            self.bump();
        }
        there
    }

    /// Consumes two characters, or none.
    pub(super) fn take_both(&mut self, first: char, second: char) -> bool {
        let start = self.at;
        let both = self.take(first) && self.take(second);
        if !both {
            self.at = start;
        }
        both
    }

    /// Returns the text from a position to here.
    pub(super) fn since(&self, start: usize) -> String {
        self.chars
            .get(start..self.at)
            .unwrap_or_default()
            .iter()
            .collect()
    }

    /// Consumes the rest of the line and its newline; `None` at the end of the text.
    pub(super) fn rest_of_line(&mut self) -> Option<String> {
        self.raw()?;
        let start = self.at;
        while self.raw().is_some_and(|c| c != '\n') {
            self.bump();
        }
        let line = self.since(start);
        self.bump();
        Some(line)
    }

    pub(super) fn doubt(&mut self, why: &str) {
        self.script.doubt(why);
    }

    /// Skips blanks, and a comment up to its newline.
    pub(super) fn blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.bump();
        }
        if self.peek() == Some('#') {
            while self.raw().is_some_and(|c| c != '\n') {
                self.bump();
            }
        }
    }

    /// Skips blanks, comments and newlines, and reads the here-documents after them.
    pub(super) fn newlines(&mut self) -> Result<(), Stop> {
        loop {
            self.blanks();
            if self.peek() != Some('\n') {
                return Ok(());
            }
            self.bump();
            self.documents()?;
        }
    }

    /// Returns the plain word at this position, if it is short and followed by a separator,
    /// without consuming it.
    pub(super) fn plain_word(&mut self) -> Option<String> {
        let start = self.at;
        let mut word = String::new();
        while let Some(c) = self.peek() {
            if is_meta(c) {
                break;
            }
            if word.len() > 8 || !(c.is_ascii_lowercase() || "!{}[]".contains(c)) {
                word.clear();
                break;
            }
            word.push(c);
            self.bump();
        }
        self.at = start;
        (!word.is_empty()).then_some(word)
    }

    /// Consumes a reserved word.
    pub(super) fn take_word(&mut self, wanted: &str) -> bool {
        if self.plain_word().as_deref() != Some(wanted) {
            return false;
        }
        for _ in wanted.chars() {
            self.peek();
            self.bump();
        }
        true
    }
}

/// Whether a character ends a word.
pub(super) fn is_meta(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')'
    )
}
