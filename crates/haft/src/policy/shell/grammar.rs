//! Lists, pipelines and simple commands.

use super::cursor::{Reader, is_meta};
use super::dollar::MOVING;
use super::redirect::Redirected;
use super::variable::{is_number, run_by};
use super::word::{Item, Word, assigned, is_open_subscript, plain};
use super::{Dialect, Input, Simple, Stop};

/// Tokens that end a list of commands.
pub(super) struct Ends {
    end_of_text: bool,
    paren: bool,
    /// `;;`, `;&` and `;;&`, after a branch of `case`.
    branch: bool,
    words: &'static [&'static str],
}

impl Ends {
    const TEXT: Self = Self {
        end_of_text: true,
        paren: false,
        branch: false,
        words: &[],
    };
    pub(super) const PAREN: Self = Self {
        end_of_text: false,
        paren: true,
        ..Self::TEXT
    };
    pub(super) const BRANCH: Self = Self {
        branch: true,
        ..Self::words(&["esac"])
    };

    /// Creates an end at one of these reserved words.
    pub(super) const fn words(words: &'static [&'static str]) -> Self {
        Self {
            end_of_text: false,
            paren: false,
            branch: false,
            words,
        }
    }
}

const MISSING: Stop = "a command is missing";

/// Reserved words that cannot start a command.
const MISPLACED: &[&str] = &["then", "else", "elif", "fi", "do", "done", "esac", "}"];

/// Returns the source of the input after another redirection of this file descriptor.
fn redirected(input: Input, from: Option<Input>, number: Option<String>) -> Input {
    match (from, number) {
        (Some(from), None) => from,
        (None, None) => input,
        (from, Some(number)) if number.chars().all(|c| c == '0') => {
            from.unwrap_or(Input::File(Word::unknown()))
        }
        _ => input,
    }
}

/// Whether the words after a command can be arrays.
fn declares(command: &Word) -> bool {
    let names = [
        "alias", "declare", "eval", "export", "let", "local", "readonly", "typeset",
    ];
    command.known().is_some_and(|name| names.contains(&name))
}

impl Reader<'_> {
    /// Parses the whole text.
    pub(in crate::policy) fn script(&mut self) -> Result<(), Stop> {
        self.list(&Ends::TEXT)?;
        if self.pending.is_empty() {
            Ok(())
        } else {
            Err("a here-document without a body")
        }
    }

    /// Parses commands up to their end. A parenthesis is not consumed; a reserved word is
    /// consumed and returned.
    pub(super) fn list(&mut self, ends: &Ends) -> Result<&'static str, Stop> {
        // Whether the last operator needs another command.
        let mut expects_word = false;
        let mut any = false;
        loop {
            self.newlines()?;
            let end = self.end(ends);
            if let Some(end) = end {
                if expects_word {
                    return Err("it ends before its last command");
                }
                if !any && !ends.end_of_text && !ends.branch && !ends.paren {
                    return Err(MISSING);
                }
                return Ok(end);
            }
            match self.peek() {
                None => return Err("a group or compound command that does not end"),
                Some(';' | '&' | '|') if !self.at_both('&', '>') => return Err(MISSING),
                Some(')') => return Err("a parenthesis that closes nothing"),
                _ => {}
            }
            let is_compound = self.command()?;
            any = true;
            expects_word = false;
            self.blanks();
            match self.peek() {
                None | Some('\n' | ')') => {}
                Some(';') => {
                    if ends.branch && (self.at_both(';', ';') || self.at_both(';', '&')) {
                        continue;
                    }
                    self.bump();
                }
                Some('&') => {
                    self.bump();
                    if self.take('&') {
                        expects_word = true;
                    } else {
                        self.blanks();
                        if self.peek() == Some(';') && !(ends.branch && self.at_both(';', ';')) {
                            return Err(MISSING);
                        }
                    }
                }
                Some('|') => {
                    self.bump();
                    if self.take('&') {
                        if self.dialect == Dialect::Posix {
                            return Err("a redirection (|&) in text for sh");
                        }
                    } else {
                        self.take('|');
                    }
                    expects_word = true;
                }
                // A reserved word may follow directly: `do (make) done`.
                Some(_) if is_compound && self.at_end(ends) => {}
                Some(_) => return Err("a word where a separator should be"),
            }
        }
    }

    /// Whether a reserved word that ends the list comes next.
    fn at_end(&mut self, ends: &Ends) -> bool {
        let word = self.plain_word();
        word.is_some_and(|word| ends.words.contains(&word.as_str()))
    }

    /// Returns the token that ends the list here, if there is one.
    fn end(&mut self, ends: &Ends) -> Option<&'static str> {
        match self.peek() {
            None if ends.end_of_text => return Some(""),
            Some(')') if ends.paren => return Some(")"),
            Some(';') if ends.branch => {
                if self.take_both(';', ';') {
                    self.take('&');
                    return Some(";;");
                }
                return self.take_both(';', '&').then_some(";&");
            }
            _ => {}
        }
        let found = self.plain_word()?;
        let word = ends.words.iter().find(|word| **word == found)?;
        self.take_word(word);
        Some(word)
    }

    /// Parses one command of a pipeline, with `!` and `time` before it. Returns whether it
    /// ended with a compound command without redirections.
    fn command(&mut self) -> Result<bool, Stop> {
        let word = self.plain_word();
        if let Some(word) = word.as_deref() {
            if MISPLACED.contains(&word) {
                return Err("a reserved word in the wrong place");
            }
            match word {
                "!" => {
                    self.take_word("!");
                    return self.after_prefix();
                }
                "time" => {
                    self.take_word("time");
                    self.blanks();
                    // Any other option belongs to the program `time`.
                    while self.peek() == Some('-') {
                        let known = self.take_both('-', 'p') || self.take_both('-', '-');
                        if !known || !self.peek().is_none_or(is_meta) {
                            return Err("options of time");
                        }
                        self.blanks();
                    }
                    return self.after_prefix();
                }
                _ => {}
            }
        }
        if self.nested(|reader| reader.compound(word.as_deref()))? {
            let is_definition = matches!(word.as_deref(), Some("function" | "coproc"));
            return Ok(!self.redirections()? && !is_definition);
        }
        self.simple()?;
        Ok(false)
    }

    /// Parses the command after `!` or `time`, which may be missing.
    fn after_prefix(&mut self) -> Result<bool, Stop> {
        self.blanks();
        match self.peek() {
            None | Some('\n' | ';' | '&' | '|' | ')') => Ok(false),
            _ => self.nested(Self::command),
        }
    }

    /// Parses a simple command, or the definition of a function.
    pub(super) fn simple(&mut self) -> Result<(), Stop> {
        let mut words = Vec::new();
        let mut input = Input::Inherited;
        let mut number = None;
        let mut assigns = false;
        let mut names = Vec::new();
        loop {
            self.blanks();
            let mut items = Vec::new();
            match self.peek() {
                None | Some('\n' | ';' | '|' | ')') => break,
                Some('&') if !self.at_both('&', '>') => break,
                Some('<' | '>' | '&') => match self.redirection()? {
                    Redirected::To(from) => {
                        input = redirected(input, from, number.take());
                        continue;
                    }
                    Redirected::Word(item) => items.push(item),
                },
                Some('(') if words.len() == 1 && !assigns => {
                    self.bump();
                    self.blanks();
                    if !self.take(')') {
                        return Err("a parenthesis in a command");
                    }
                    return self.function();
                }
                Some('(') => return Err("a parenthesis in a command"),
                Some(_) => {}
            }
            self.arrays = words.first().is_none_or(declares);
            let items = self.items(items)?;
            if self.is_file_number(&items)? {
                number = plain(&items);
                continue;
            }
            if words.is_empty() {
                if let Some((name, value)) = assigned(&items) {
                    assigns = true;
                    let subscript = items.get(..items.len() - value.len()).unwrap_or_default();
                    if subscript
                        .iter()
                        .any(|item| matches!(item, Item::Quoted('$' | '`')))
                    {
                        return Err("a quoted substitution in the subscript of an array");
                    }
                    let is_element = items.get(name.len()) == Some(&Item::Plain('['));
                    self.script.numbers.evaluates |= is_element || is_number(&name);
                    self.script.numbers.unknown |= is_element
                        && subscript.iter().any(|item| {
                            !matches!(item, Item::Plain(_) | Item::Quoted(_) | Item::Number)
                        });
                    match subscript.ends_with(&[Item::Plain('+'), Item::Plain('=')]) {
                        true => self.append(&name, value),
                        false => self.assign(&name, value),
                    }
                    names.push(name);
                    continue;
                }
                if is_open_subscript(&items) {
                    return Err("an element of an array");
                }
            }
            words.extend(self.words(&items)?);
        }
        // `IFS= read` splits only what it reads.
        let reads = words.first().and_then(Word::known) == Some("read");
        for name in names.iter().filter(|name| !(reads && *name == "IFS")) {
            self.script.set(name);
        }
        if words.is_empty() {
            return Ok(());
        }
        let (depth, dialect, substituted) = (self.depth, self.dialect, self.substituted);
        self.script.push(Simple {
            words,
            input,
            depth,
            substituted,
            parent: self.script.parent,
            dialect,
        })
    }

    /// Records that a variable gets a value.
    fn assign(&mut self, name: &str, value: &[Item]) {
        self.script.moves |= MOVING.contains(&name);
        self.script.numbers.assign(value);
        let value = self.word(value);
        match run_by(name, value.known()) {
            Ok(hidden) => self.script.hidden.extend(hidden),
            Err(why) => self.script.fault(why),
        }
    }

    /// Records that text is appended to a variable, whose value is not known here.
    fn append(&mut self, name: &str, value: &[Item]) {
        self.script.numbers.assign(value);
        self.changes(name);
    }

    /// Records that a variable gets an unknown value.
    pub(super) fn sets(&mut self, name: &str) {
        self.script.set(name);
        self.changes(name);
    }

    fn changes(&mut self, name: &str) {
        self.script.moves |= MOVING.contains(&name);
        self.script.numbers.evaluates |= is_number(name);
        match run_by(name, None) {
            Ok(hidden) => self.script.hidden.extend(hidden),
            Err(why) => self.script.fault(why),
        }
    }
}
