//! Expansions and substitutions.

use super::cursor::Reader;
use super::grammar::Ends;
use super::number::{evaluates, names_words};
use super::word::{Item, Quote};
use super::{Dialect, Stop};

/// Variables with a folder whose name is assumed to contain no blanks.
pub(super) const FOLDERS: &[&str] = &["HOME", "PWD", "OLDPWD", "TMPDIR"];
/// Variables that decide about the value of those, or whether it is one word.
pub(in crate::policy) const MOVING: &[&str] = &["HOME", "PWD", "OLDPWD", "TMPDIR", "CDPATH", "IFS"];
const UNBALANCED: Stop = "parentheses in arithmetic that do not balance";

impl Reader<'_> {
    /// Parses an expansion, after `$`.
    pub(super) fn dollar(&mut self, items: &mut Vec<Item>, quote: Quote) -> Result<(), Stop> {
        let is_quoted = quote != Quote::None;
        let splits = match self.peek() {
            Some('\'') if !is_quoted => {
                self.bump();
                return self.ansi(items);
            }
            Some('"') if !is_quoted => {
                if self.dialect == Dialect::Posix {
                    return Err("$\"…\" in text for sh");
                }
                self.bump();
                return self.double(items);
            }
            Some('(') => {
                self.bump();
                if self.take('(') {
                    self.arithmetic()?;
                    items.push(Item::Number);
                    return Ok(());
                }
                self.substitution()?;
                if !is_quoted {
                    items.push(Item::Output);
                    return Ok(());
                }
                false
            }
            Some('[') => return Err("old arithmetic ($[)"),
            Some('{') => {
                self.bump();
                let several = self.nested(|reader| reader.parameter(quote))?;
                !is_quoted || several
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let mut name = String::new();
                while let Some(c) = self.peek().filter(|c| is_name(*c)) {
                    name.push(c);
                    self.bump();
                }
                if !is_quoted && FOLDERS.contains(&name.as_str()) {
                    items.push(Item::Folder);
                    return Ok(());
                }
                !is_quoted
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.bump();
                !is_quoted || c == '@'
            }
            _ => {
                items.push(Item::Quoted('$'));
                return Ok(());
            }
        };
        items.push(Item::Hole { splits });
        Ok(())
    }

    /// Parses a substitution, after `$(`, `<(` or `>(`: commands up to the closing
    /// parenthesis.
    fn substitution(&mut self) -> Result<(), Stop> {
        let start = self.at;
        let outside = std::mem::take(&mut self.pending);
        let substituted = std::mem::replace(&mut self.substituted, true);
        self.substitutions += 1;
        self.nested(|reader| reader.list(&Ends::PAREN))?;
        self.substitutions -= 1;
        self.substituted = substituted;
        self.bump();
        if !self.pending.is_empty() {
            return Err("a here-document without a body");
        }
        if !outside.is_empty() && self.since(start).contains('\n') {
            return Err("a here-document around a substitution of several lines");
        }
        self.pending = outside;
        Ok(())
    }

    /// Parses a process substitution, at its parenthesis.
    pub(super) fn process_substitution(&mut self) -> Result<Item, Stop> {
        if self.dialect == Dialect::Posix {
            return Err("a process substitution in text for sh");
        }
        self.bump();
        self.substitution()?;
        Ok(Item::Hole { splits: false })
    }

    /// Parses `${…}`, after the brace. Returns whether it can be several words even in
    /// quotes.
    fn parameter(&mut self, quote: Quote) -> Result<bool, Stop> {
        const ENDS: Stop = "an expansion (${) that does not end";
        if matches!(self.peek(), Some(' ' | '\t' | '\n' | '|' | '(')) {
            return Err("commands in ${ }");
        }
        let start = self.at;
        let mut ignored = Vec::new();
        // `${#x}` and `${x#y}`: neither is a comment, and nothing else starts one here.
        loop {
            let c = self.peek().ok_or(ENDS)?;
            self.bump();
            match c {
                '}' => break,
                '$' => self.dollar(&mut ignored, quote)?,
                '`' => self.backticks(quote)?,
                '\\' => ignored.push(Item::Quoted(self.next_raw().ok_or(ENDS)?)),
                '\'' if quote == Quote::None => self.single(&mut ignored)?,
                '"' if quote != Quote::Document => {
                    self.nested(|reader| reader.double(&mut ignored))?;
                }
                '\'' => self.plain_quotes()?,
                '"' => return Err("a quote in ${ } in quotes"),
                '{' => return Err("a brace in ${ }"),
                '<' | '>' if self.peek() == Some('(') => {
                    if quote != Quote::None {
                        return Err("a process substitution in ${ } in quotes");
                    }
                    self.process_substitution()?;
                }
                _ => {}
            }
        }
        let body = self.since(start).replace("\\\n", "");
        let body = body.strip_suffix('}').unwrap_or(&body);
        if body.ends_with("@P") {
            return Err("an expansion that runs what a variable holds (@P)");
        }
        let inner = match body.strip_prefix(['#', '!']) {
            Some(inner) if !inner.is_empty() => inner,
            _ => body,
        };
        let name: String = inner
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect();
        let operator = inner.get(name.len()..).unwrap_or_default();
        let operator = match name.is_empty() {
            true => operator.strip_prefix(['@', '*']).unwrap_or(operator),
            false => operator,
        };
        let is_indirect = body.starts_with('!') && !matches!(operator, "[@]" | "[*]");
        if body.contains('=') {
            if is_indirect {
                return Err("a value for a variable whose name is not literal");
            }
            self.sets(&name);
            self.script.numbers.bracket |= operator.contains(['[', '\\']);
            self.script.numbers.dollar |= operator.contains(['$', '`', '\\', '\'']);
            self.script.numbers.unknown = true;
        }
        // The text in it may become part of a value.
        let is_element = operator.starts_with('[');
        let has = |wanted: &[char]| {
            let is_wanted = |item: &Item| matches!(item, Item::Quoted(c) if wanted.contains(c));
            ignored.iter().any(is_wanted)
        };
        if is_element && has(&['$', '`']) {
            return Err("a quoted substitution in the subscript of an array");
        }
        let behind = operator.split_once(']').filter(|_| is_element);
        let text = behind.map_or(operator, |(_, behind)| behind);
        self.script.numbers.bracket |= text.contains('[');
        self.script.numbers.dollar |= has(&['$', '`']);
        self.script.numbers.evaluates |= is_indirect || evaluates(operator);
        // `${a[$1]}`, `${b:$1}` and `${!1}`: an argument of a function or of `bash -c` is not
        // assigned anywhere, so its text is unknown.
        self.script.numbers.unknown |= is_indirect
            || (evaluates(operator) && (names_words(operator) || operator.contains(['$', '`'])));
        Ok(body.contains('@'))
    }

    /// Parses text after a single quote in a quoted `${ }`, where it may be a quote or not.
    /// The text between two of them must mean the same either way.
    fn plain_quotes(&mut self) -> Result<(), Stop> {
        loop {
            match self.next_raw() {
                Some('\'') => return Ok(()),
                Some(c) if c.is_ascii_alphanumeric() || " _-./,".contains(c) => {}
                _ => return Err("a quote in ${ } in quotes"),
            }
        }
    }

    /// Parses arithmetic, after `((` and up to `))`.
    pub(super) fn arithmetic(&mut self) -> Result<(), Stop> {
        let start = self.at;
        self.nested(|reader| {
            let mut open = 0usize;
            let mut ignored = Vec::new();
            loop {
                let c = reader.peek().ok_or("arithmetic that does not end")?;
                reader.bump();
                match c {
                    '(' => open += 1,
                    ')' if open > 0 => open -= 1,
                    ')' if reader.take(')') => return reader.balanced(start),
                    ')' => return Err("two parentheses that are not arithmetic"),
                    '$' => {
                        reader.script.numbers.evaluates = true;
                        // The output of a command, or the arguments of a function.
                        reader.script.numbers.unknown |=
                            matches!(reader.peek(), Some('(' | '{' | '@' | '*' | '0'..='9'));
                        reader.evaluated();
                        reader.dollar(&mut ignored, Quote::Double)?;
                    }
                    '`' => {
                        reader.script.numbers.evaluates = true;
                        reader.script.numbers.unknown = true;
                        reader.backticks(Quote::Double)?;
                    }
                    '\'' | '"' | '\\' => return Err("a quote in arithmetic"),
                    c if c.is_ascii_alphabetic() || c == '_' => {
                        reader.at -= 1;
                        let length = reader.evaluated();
                        reader.at += length;
                    }
                    _ => {}
                }
            }
        })
    }

    /// Checks the parentheses of arithmetic, which the shell counts regardless of the text
    /// between them. If they do not balance, the shell parses the text as commands.
    fn balanced(&self, start: usize) -> Result<(), Stop> {
        let mut open = 2usize;
        for c in self.since(start).chars() {
            match c {
                '(' => open += 1,
                ')' => open = open.checked_sub(1).ok_or(UNBALANCED)?,
                _ => {}
            }
        }
        match open {
            0 => Ok(()),
            _ => Err(UNBALANCED),
        }
    }

    /// Handles the name of a variable that is evaluated, without consuming it. The shell
    /// itself sets some variables to words of earlier commands.
    ///
    /// Returns the length of the name.
    fn evaluated(&mut self) -> usize {
        let name = self.name();
        self.script.numbers.evaluates = true;
        self.script.numbers.unknown |= names_words(&name);
        // Arithmetic can also set it.
        self.sets(&name);
        name.len()
    }

    /// Parses a backtick substitution, after the backtick.
    pub(super) fn backticks(&mut self, quote: Quote) -> Result<(), Stop> {
        let mut text = String::new();
        loop {
            match self.next_raw().ok_or("a backtick that does not end")? {
                '`' => break,
                '\\' => match self.next_raw().ok_or("a backtick that does not end")? {
                    c @ ('$' | '`' | '\\') => text.push(c),
                    '"' if quote != Quote::None => {
                        return Err("an escaped quote in backticks in quotes");
                    }
                    c => text.extend(['\\', c]),
                },
                // Whether a comment hides the next backtick is not certain.
                '#' if text.is_empty() || text.ends_with([' ', '\t', '\n', ';', '&', '|', '(']) => {
                    return Err("a comment in backticks");
                }
                c => text.push(c),
            }
        }
        if !self.pending.is_empty() && text.contains('\n') {
            return Err("a here-document around a substitution of several lines");
        }
        let mut inner = self.inner(&text)?;
        inner.substituted = true;
        inner.script()
    }
}
