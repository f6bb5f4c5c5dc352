//! Redirections and their targets.

use super::cursor::Reader;
use super::word::{Item, Word, plain};
use super::{Dialect, Input, Stop};

const NO_NUMBER: Stop = "what stands before a redirection is not the number of a file everywhere";

/// The meaning of an operator with `<` or `>`.
pub(super) enum Redirected {
    /// A redirection, with the input it sets.
    To(Option<Input>),
    /// The start of a word: a process substitution.
    Word(Item),
}

impl Reader<'_> {
    /// Parses a redirection, at `<`, `>` or `&>`.
    pub(super) fn redirection(&mut self) -> Result<Redirected, Stop> {
        if self.take('&') {
            if self.dialect == Dialect::Posix {
                return Err("a redirection (&>) in text for sh");
            }
            self.bump();
            self.take('>');
            self.written()?;
            return Ok(Redirected::To(None));
        }
        if self.take('>') {
            if self.peek() == Some('(') {
                return self.process_substitution().map(Redirected::Word);
            }
            if self.take('&') {
                self.duplicate()?;
            } else {
                let _ = self.take('>') || self.take('|');
                self.written()?;
            }
            return Ok(Redirected::To(None));
        }
        self.bump();
        if self.peek() == Some('(') {
            return self.process_substitution().map(Redirected::Word);
        }
        if self.take('<') {
            if self.take('<') {
                if self.dialect == Dialect::Posix {
                    return Err("a here-string in text for sh");
                }
                return Ok(Redirected::To(Some(Input::Text(self.target()?))));
            }
            let tabs = self.take('-');
            let id = self.document(tabs)?;
            return Ok(Redirected::To(Some(Input::Document(id))));
        }
        if self.take('&') {
            self.target()?;
            return Ok(Redirected::To(Some(Input::File(Word::unknown()))));
        }
        if self.take('>') {
            self.written()?;
            return Ok(Redirected::To(Some(Input::File(Word::unknown()))));
        }
        let target = self.target()?;
        if is_network(&target) {
            self.doubt("a redirection from or to another machine");
        }
        Ok(Redirected::To(Some(Input::File(target))))
    }

    /// Parses the file that a redirection writes.
    fn written(&mut self) -> Result<(), Stop> {
        self.blanks();
        let start = self.at;
        let target = self.target()?;
        let text = self.since(start);
        let homes = ["~", "$HOME", "${HOME}", "\"$HOME", "\"${HOME}"];
        if homes.iter().any(|home| text.starts_with(home)) {
            self.doubt("a redirection to a file outside the work folder");
        }
        self.script.targets.push(target);
        Ok(())
    }

    /// Parses what follows `>&`: the number of an open file, or a file.
    fn duplicate(&mut self) -> Result<(), Stop> {
        let target = self.target()?;
        let number = target.known().map(|text| text.trim_end_matches('-'));
        let is_open = number.is_some_and(|text| text.chars().all(|c| c.is_ascii_digit()));
        if !is_open {
            self.script.targets.push(target);
        }
        Ok(())
    }

    /// Parses the word after an operator.
    fn target(&mut self) -> Result<Word, Stop> {
        self.blanks();
        let start = self.at;
        let items = self.items(Vec::new())?;
        if self.at == start {
            return Err("a redirection to nothing");
        }
        Ok(self.word(&items))
    }

    /// Whether the word just read is a file descriptor, or `{name}`, for the redirection
    /// right after it.
    ///
    /// # Errors
    /// When shells disagree about it.
    pub(super) fn is_file_number(&mut self, items: &[Item]) -> Result<bool, Stop> {
        if !matches!(self.peek(), Some('<' | '>')) {
            return Ok(false);
        }
        let in_braces = |items: &[Item]| {
            items.first() == Some(&Item::Plain('{')) && items.last() == Some(&Item::Plain('}'))
        };
        if in_braces(items) && items.contains(&Item::Plain('[')) {
            return Err("an element of an array as the number of a file");
        }
        let Some(text) = plain(items) else {
            return Ok(false);
        };
        let name = text
            .strip_prefix('{')
            .and_then(|text| text.strip_suffix('}'));
        if let Some(name) = name {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            return match !name.is_empty() && name.chars().all(is_name) {
                true if name.starts_with(|c: char| c.is_ascii_digit())
                    || self.dialect == Dialect::Posix =>
                {
                    Err(NO_NUMBER)
                }
                true => {
                    self.sets(name);
                    Ok(true)
                }
                false => Ok(false),
            };
        }
        self.is_number(&text)
    }

    /// Whether text right before a redirection is a file descriptor.
    fn is_number(&self, text: &str) -> Result<bool, Stop> {
        if text.is_empty() || !text.chars().all(|c| c.is_ascii_digit()) {
            return Ok(false);
        }
        let is_too_long = self.dialect == Dialect::Posix && text.len() > 1;
        match is_too_long || text.parse::<i32>().is_err() {
            true => Err(NO_NUMBER),
            false => Ok(true),
        }
    }

    /// Parses the redirections after a compound command. Returns whether there are any.
    pub(super) fn redirections(&mut self) -> Result<bool, Stop> {
        let mut any = false;
        loop {
            self.blanks();
            let start = self.at;
            let mut number = String::new();
            while let Some(digit) = self.peek().filter(char::is_ascii_digit) {
                number.push(digit);
                self.bump();
            }
            match self.peek() {
                Some('<' | '>') => {
                    self.is_number(&number)?;
                }
                Some('&') if self.at == start && self.at_both('&', '>') => {}
                _ => {
                    self.at = start;
                    return Ok(any);
                }
            }
            if let Redirected::Word(_) = self.redirection()? {
                return Err("a word behind a compound command");
            }
            any = true;
        }
    }

    /// Whether these two characters come next.
    pub(super) fn at_both(&mut self, first: char, second: char) -> bool {
        let start = self.at;
        let both = self.take_both(first, second);
        self.at = start;
        both
    }
}

/// Whether the shell opens a connection instead of a file.
pub(in crate::policy) fn is_network(target: &Word) -> bool {
    let prefix = target.prefix();
    prefix.starts_with("/dev/tcp") || prefix.starts_with("/dev/udp")
}
