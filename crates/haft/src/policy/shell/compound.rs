//! Compound commands and functions.

use super::cursor::{Reader, is_meta};
use super::grammar::Ends;
use super::number::Numbers;
use super::word::{Item, plain};
use super::{Dialect, Stop};

impl Reader<'_> {
    /// Parses a compound command, if one starts here. `word` is the plain word at this
    /// position.
    pub(super) fn compound(&mut self, word: Option<&str>) -> Result<bool, Stop> {
        if self.peek() == Some('(') {
            self.bump();
            if self.take('(') {
                if self.dialect == Dialect::Posix {
                    return Err("two parentheses in text for sh");
                }
                self.arithmetic()?;
                return Ok(true);
            }
            self.list(&Ends::PAREN)?;
            self.bump();
            return Ok(true);
        }
        let Some(word) = word else {
            return Ok(false);
        };
        match word {
            "{" => {
                self.take_word(word);
                self.list(&Ends::words(&["}"]))?;
            }
            "if" => {
                self.take_word(word);
                self.list(&Ends::words(&["then"]))?;
                loop {
                    match self.list(&Ends::words(&["elif", "else", "fi"]))? {
                        "elif" => {
                            self.list(&Ends::words(&["then"]))?;
                        }
                        "else" => {
                            self.list(&Ends::words(&["fi"]))?;
                            break;
                        }
                        _ => break,
                    }
                }
            }
            "while" | "until" => {
                self.take_word(word);
                self.list(&Ends::words(&["do"]))?;
                self.list(&Ends::words(&["done"]))?;
            }
            "for" | "select" => {
                self.take_word(word);
                self.for_loop()?;
            }
            "case" => {
                self.take_word(word);
                self.case()?;
            }
            "[[" => {
                if self.dialect == Dialect::Posix {
                    return Err("[[ in text for sh");
                }
                self.take_word(word);
                self.condition()?;
            }
            "function" => {
                self.take_word(word);
                self.blanks();
                self.items(Vec::new())?;
                self.blanks();
                if self.take('(') {
                    self.blanks();
                    if !self.take(')') {
                        return Err("a function without a body");
                    }
                }
                self.function()?;
            }
            "coproc" => {
                self.take_word(word);
                self.coprocess()?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Parses the body of a function, after its name. It counts as if it ran.
    pub(super) fn function(&mut self) -> Result<(), Stop> {
        self.newlines()?;
        let word = self.plain_word();
        if self.nested(|reader| reader.compound(word.as_deref()))? {
            self.redirections().map(drop)
        } else {
            Err("a function without a body")
        }
    }

    /// Parses a loop, after `for` or `select`.
    fn for_loop(&mut self) -> Result<(), Stop> {
        self.blanks();
        if self.take_both('(', '(') {
            if self.dialect == Dialect::Posix {
                return Err("two parentheses in text for sh");
            }
            self.arithmetic()?;
        } else {
            let name = self.items(Vec::new())?;
            let name = plain(&name).filter(|name| !name.is_empty());
            self.sets(&name.ok_or("a loop without a variable")?);
            self.newlines()?;
            if self.take_word("in") {
                loop {
                    self.blanks();
                    match self.peek() {
                        Some('\n' | ';') => break,
                        Some('<' | '>') if !self.at_process_substitution() => {
                            return Err("a redirection in the words of a loop");
                        }
                        None | Some('&' | '|' | '(' | ')') => {
                            return Err("an operator in the words of a loop");
                        }
                        _ => {
                            let items = self.items(Vec::new())?;
                            self.script.numbers.assign(&items);
                        }
                    };
                }
            } else {
                self.script.numbers.unknown = true;
            }
        }
        self.blanks();
        self.take(';');
        self.newlines()?;
        if self.take_word("do") {
            self.list(&Ends::words(&["done"]))?;
        } else if self.take_word("{") {
            self.list(&Ends::words(&["}"]))?;
        } else {
            return Err("a loop without a body");
        }
        Ok(())
    }

    fn at_process_substitution(&mut self) -> bool {
        self.at_both('<', '(') || self.at_both('>', '(')
    }

    /// Parses a `case`, after the keyword.
    fn case(&mut self) -> Result<(), Stop> {
        self.blanks();
        let start = self.at;
        self.items(Vec::new())?;
        if self.at == start {
            return Err("a case without a word");
        }
        self.newlines()?;
        if !self.take_word("in") {
            return Err("a case without branches");
        }
        loop {
            self.newlines()?;
            if self.take_word("esac") {
                return Ok(());
            }
            self.take('(');
            loop {
                self.blanks();
                let start = self.at;
                self.items(Vec::new())?;
                if self.at == start {
                    return Err("a branch of a case without a pattern");
                }
                self.blanks();
                if self.take(')') {
                    break;
                }
                if !self.take('|') {
                    return Err("a branch of a case without an end");
                }
            }
            if self.list(&Ends::BRANCH)? == "esac" {
                return Ok(());
            }
        }
    }

    /// Parses a condition, after `[[` and up to `]]`.
    fn condition(&mut self) -> Result<(), Stop> {
        let mut begins = true;
        let mut items = Vec::new();
        // Operands that are evaluated, or saved in BASH_REMATCH.
        let mut operands = Numbers::default();
        let mut keeps = false;
        let mut open = 0usize;
        loop {
            let c = self.peek().ok_or("a condition ([[) that does not end")?;
            if begins {
                if c == '#' {
                    return Err("a comment in a condition");
                }
                let word = self.condition_word();
                if word == "]]" {
                    if open > 0 {
                        return Err("a parenthesis in a condition that does not close");
                    }
                    let _ = self.take_both(']', ']');
                    if operands.evaluates || keeps {
                        let numbers = &mut self.script.numbers;
                        numbers.bracket |= operands.bracket;
                        numbers.dollar |= operands.dollar;
                        numbers.unknown |= operands.unknown;
                        numbers.evaluates |= operands.evaluates;
                    }
                    return Ok(());
                }
                let evaluates = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"];
                operands.evaluates |= evaluates.contains(&word.as_str());
                keeps |= word == "=~";
            }
            self.bump();
            begins = is_meta(c);
            match c {
                '(' => open += 1,
                ')' => open = open.saturating_sub(1),
                ';' => return Err("a semicolon in a condition"),
                '\n' => self.documents()?,
                '<' | '>' if self.peek() == Some('(') => {
                    self.process_substitution()?;
                }
                '[' => operands.bracket = true,
                c if begins || matches!(c, '*' | '?' | '{' | '}' | '~') => {}
                c => self.part(c, &mut items)?,
            }
            // A lone dollar sign starts nothing.
            let is_alone = c == '$' && items == [Item::Quoted('$')];
            if !is_alone || matches!(self.peek(), Some('\\' | '\'' | '"')) {
                self.script.numbers.look_at(&items);
                operands.assign(&items);
            }
            items.clear();
        }
    }

    /// Returns the plain characters up to the next separator, without consuming them.
    fn condition_word(&mut self) -> String {
        let start = self.at;
        let mut word = String::new();
        while let Some(c) = self.peek().filter(|c| !is_meta(*c) && word.len() < 4) {
            word.push(c);
            self.bump();
        }
        self.at = start;
        word
    }

    /// Parses a coprocess, after `coproc`: a command, or a name and a compound command.
    fn coprocess(&mut self) -> Result<(), Stop> {
        self.blanks();
        let word = self.plain_word();
        if self.nested(|reader| reader.compound(word.as_deref()))? {
            return Ok(());
        }
        let start = self.at;
        let named = self.items(Vec::new()).map(|items| plain(&items).is_some());
        self.blanks();
        let word = self.plain_word();
        let is_named = named == Ok(true)
            && (self.peek() == Some('(')
                || word.as_deref().is_some_and(|word| {
                    ["{", "if", "while", "until", "for", "select", "case", "[["].contains(&word)
                }));
        if is_named {
            self.nested(|reader| reader.compound(word.as_deref()))?;
            return Ok(());
        }
        self.at = start;
        self.simple()
    }
}
