//! Words: quoting, and what is known about a word before the shell expands it.

use super::cursor::{Reader, is_meta};
use super::{Dialect, Stop, brace};
use haft_ops::text::decode::visible;

/// Stands for an unknown part of a word. No parsed text contains it.
const HOLE: char = '\0';

pub(super) const UNQUOTED: Stop = "a quote that does not end";

/// A word, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::policy) struct Word {
    /// Text, with a mark for each unknown part.
    text: String,
    /// Whether it can become any number of words.
    splits: bool,
    /// Whether it is a pattern: it can become several matching names, or none.
    pattern: bool,
    /// Origin of the unknown part, if it matters.
    source: Source,
}

/// Origin of the unknown part of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Any,
    /// All of it is the output of a command.
    Output,
    /// It starts with a folder in a well-known variable; the rest is known.
    Folder,
    /// It ends in an array, whose words have been parsed.
    List,
}

impl Word {
    pub(in crate::policy) fn literal(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            splits: false,
            pattern: false,
            source: Source::Any,
        }
    }

    /// Whether it is a pattern for everything in a folder, such as `*` or `build/*`.
    pub(in crate::policy) fn is_whole_folder(&self) -> bool {
        let front = self.text.strip_suffix(HOLE);
        self.pattern && front.is_some_and(|front| front.is_empty() || front.ends_with('/'))
    }

    /// Whether it may become options: an unquoted variable, for example.
    pub(in crate::policy) fn may_be_options(&self) -> bool {
        self.splits && !self.pattern && self.text.starts_with(HOLE)
    }

    /// Returns any number of unknown words.
    pub(in crate::policy) fn unknown() -> Self {
        Self {
            text: HOLE.to_string(),
            splits: true,
            pattern: false,
            source: Source::Any,
        }
    }

    /// Returns the text, if all of it is known.
    pub(in crate::policy) fn known(&self) -> Option<&str> {
        (!self.splits && !self.text.contains(HOLE)).then_some(&self.text)
    }

    /// Returns the text before the first unknown part.
    pub(in crate::policy) fn prefix(&self) -> &str {
        self.text.split(HOLE).next().unwrap_or_default()
    }

    /// Returns the text after the last unknown part, if the word stays one word.
    pub(in crate::policy) fn suffix(&self) -> &str {
        if self.splits {
            return "";
        }
        self.text.rsplit(HOLE).next().unwrap_or_default()
    }

    /// Whether it can become any number of words.
    pub(in crate::policy) fn splits(&self) -> bool {
        self.splits
    }

    /// Whether it can become several file names, or none.
    pub(in crate::policy) fn is_pattern(&self) -> bool {
        self.pattern
    }

    /// Returns the name of the program without its folder, if known.
    pub(in crate::policy) fn program(&self) -> Option<&str> {
        if let Some(text) = self.known() {
            return Some(base(text));
        }
        let suffix = match self.is_folder() {
            true => self.text.trim_start_matches(HOLE),
            false => self.suffix(),
        };
        (suffix.contains('/') && !self.pattern).then(|| base(suffix))
    }

    /// Whether it can be this text.
    pub(in crate::policy) fn can_be(&self, text: &str) -> bool {
        match self.known() {
            Some(known) => known == text,
            None => text
                .strip_prefix(self.prefix())
                .is_some_and(|rest| rest.ends_with(self.suffix())),
        }
    }

    /// Returns the word with every occurrence of a mark replaced by an unknown part.
    pub(in crate::policy) fn without(&self, mark: &str) -> Self {
        Self {
            text: self.text.replace(mark, &HOLE.to_string()),
            splits: self.splits,
            pattern: self.pattern,
            source: Source::Any,
        }
    }

    /// Whether all of it is the output of a command.
    pub(in crate::policy) fn is_output(&self) -> bool {
        self.source == Source::Output
    }

    /// Whether it starts with a well-known folder.
    pub(in crate::policy) fn is_folder(&self) -> bool {
        self.source == Source::Folder
    }

    /// Whether it ends in an array whose words have been parsed.
    pub(in crate::policy) fn is_list(&self) -> bool {
        self.source == Source::List
    }

    /// Returns the names of variables that may be in it, and parts of words that look like
    /// one.
    pub(in crate::policy) fn names(&self) -> impl Iterator<Item = &str> {
        self.text
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
    }

    /// Whether it contains one of these characters.
    pub(in crate::policy) fn has(&self, characters: &[char]) -> bool {
        self.text.contains(characters)
    }

    /// Returns the size of its text in bytes.
    pub(in crate::policy) fn len(&self) -> usize {
        self.text.len()
    }
}

/// Returns the name of a program without its folder.
pub(in crate::policy) fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// A part of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// A character that may still have a special meaning.
    Plain(char),
    /// A literal character.
    Quoted(char),
    /// An unknown part; it may split the word.
    Hole { splits: bool },
    /// A part of a file name pattern.
    Pattern,
    /// The unquoted output of a command.
    Output,
    /// The unquoted value of a variable with a folder.
    Folder,
    /// The result of arithmetic.
    Number,
    /// The words of an array.
    List,
}

/// Quoting of a part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    None,
    Double,
    Document,
}

impl Reader<'_> {
    /// Parses a word, of which some parts may have been parsed already.
    pub(super) fn items(&mut self, mut items: Vec<Item>) -> Result<Vec<Item>, Stop> {
        let start = self.at;
        let arrays = std::mem::take(&mut self.arrays);
        while let Some(c) = self.peek() {
            match c {
                '<' | '>' => {
                    let before = self.at;
                    self.bump();
                    if self.peek() == Some('(') {
                        items.push(self.process_substitution()?);
                        continue;
                    }
                    self.at = before;
                    break;
                }
                '(' if arrays && is_array(&items) => {
                    self.bump();
                    self.array()?;
                    items.push(Item::List);
                    continue;
                }
                '(' if matches!(items.last(), Some(Item::Plain('@' | '!' | '+')))
                    || (self.at > start && items.last() == Some(&Item::Pattern)) =>
                {
                    return Err("an extended pattern");
                }
                c if is_meta(c) => break,
                _ => {}
            }
            self.bump();
            self.part(c, &mut items)?;
        }
        self.script.numbers.look_at(&items);
        Ok(items)
    }

    /// Parses one part of a word, after its first character.
    pub(super) fn part(&mut self, c: char, items: &mut Vec<Item>) -> Result<(), Stop> {
        match c {
            '\'' => self.single(items)?,
            '"' => self.double(items)?,
            '\\' => {
                let next = self.next_raw().ok_or("it ends in a backslash")?;
                let item = self.quoted(next);
                items.push(item);
            }
            '$' => self.dollar(items, Quote::None)?,
            '`' => {
                self.backticks(Quote::None)?;
                items.push(Item::Output);
            }
            '*' | '?' => items.push(Item::Pattern),
            c => {
                if !c.is_ascii() && (c.is_whitespace() || is_hidden(c)) {
                    self.doubt("a character that looks like a blank or like nothing");
                }
                self.quoted(c);
                items.push(Item::Plain(c));
            }
        }
        Ok(())
    }

    /// Parses text after a single quote.
    pub(super) fn single(&mut self, items: &mut Vec<Item>) -> Result<(), Stop> {
        items.push(Item::Quoted(EMPTY));
        loop {
            match self.next_raw().ok_or(UNQUOTED)? {
                '\'' => break,
                c => {
                    let item = self.quoted(c);
                    items.push(item);
                }
            }
        }
        Ok(())
    }

    /// Parses text after a double quote.
    pub(super) fn double(&mut self, items: &mut Vec<Item>) -> Result<(), Stop> {
        items.push(Item::Quoted(EMPTY));
        loop {
            let c = self.peek().ok_or(UNQUOTED)?;
            self.bump();
            match c {
                '"' => break,
                c => self.quoted_part(c, items, Quote::Double)?,
            }
        }
        Ok(())
    }

    /// Parses one part of text in double quotes or in a here-document.
    pub(super) fn quoted_part(
        &mut self,
        c: char,
        items: &mut Vec<Item>,
        quote: Quote,
    ) -> Result<(), Stop> {
        match c {
            '$' => self.dollar(items, quote)?,
            '`' => {
                self.backticks(quote)?;
                items.push(Item::Hole { splits: false });
            }
            '\\' => {
                let is_special =
                    |c: char| matches!(c, '$' | '`' | '\\') || (c == '"' && quote == Quote::Double);
                match self.raw() {
                    Some(c) if is_special(c) => {
                        self.bump();
                        items.push(Item::Quoted(c));
                    }
                    _ => items.push(Item::Quoted('\\')),
                }
            }
            c => {
                let item = self.quoted(c);
                items.push(item);
            }
        }
        Ok(())
    }

    /// Returns a literal character, and notes one that people cannot see.
    pub(super) fn quoted(&mut self, c: char) -> Item {
        match c {
            '\n' | '\t' => {}
            '\r' => self.doubt("a carriage return"),
            c if c.is_control() => self.doubt("a control character"),
            _ => {}
        }
        Item::Quoted(c)
    }

    /// Parses the words of `name=( … )`, after the parenthesis.
    fn array(&mut self) -> Result<(), Stop> {
        if self.dialect == Dialect::Posix {
            return Err("an array in text for sh");
        }
        self.script.numbers.arrays = true;
        self.nested(|reader| {
            loop {
                reader.newlines()?;
                match reader.peek().ok_or("an array that does not end")? {
                    ')' => {
                        reader.bump();
                        return Ok(());
                    }
                    ';' | '&' | '|' => return Err("an operator in an array"),
                    '(' => return Err("a parenthesis in an array"),
                    _ => {
                        let start = reader.at;
                        let items = reader.items(Vec::new())?;
                        if reader.at == start {
                            return Err("a redirection in an array");
                        }
                        let mut value = items.as_slice();
                        if items.first() == Some(&Item::Plain('[')) {
                            reader.script.numbers.evaluates = true;
                            let end = items.iter().position(|item| *item == Item::Plain(']'));
                            value = end.and_then(|end| items.get(end..)).unwrap_or(value);
                            let subscript = items.get(..items.len() - value.len());
                            reader.script.numbers.index |= subscript.is_none_or(|items| {
                                let is_known = |item: &Item| {
                                    matches!(item, Item::Plain(_) | Item::Quoted(_) | Item::Number)
                                };
                                !items.iter().all(is_known)
                            });
                        }
                        reader.script.numbers.assign(value);
                    }
                }
            }
        })
    }

    /// Returns the words that parts become: several if braces are expanded.
    pub(super) fn words(&mut self, items: &[Item]) -> Result<Vec<Word>, Stop> {
        let lists = brace::expand(items, self.script)?;
        if self.dialect == Dialect::Posix && lists.len() != 1 {
            // Some shells expand braces and some do not.
            return Ok(vec![Word::unknown()]);
        }
        Ok(lists.iter().map(|items| self.word(items)).collect())
    }

    /// Returns the word that parts become without brace expansion.
    pub(super) fn word(&self, items: &[Item]) -> Word {
        let mut word = Word::literal("");
        let mut rest = items;
        let mut brackets = items
            .iter()
            .filter(|item| **item == Item::Plain(']'))
            .count();
        if items.first() == Some(&Item::Plain('~')) {
            let end = items.iter().position(|item| *item == Item::Plain('/'));
            rest = items.get(end.unwrap_or(items.len())..).unwrap_or_default();
            word.text.push(HOLE);
        }
        while let Some((item, behind)) = rest.split_first() {
            rest = behind;
            match item {
                Item::Quoted(EMPTY) => {}
                Item::Plain('[') if brackets > 0 => {
                    let end = behind.iter().position(|item| *item == Item::Plain(']'));
                    rest = end
                        .and_then(|end| behind.get(end + 1..))
                        .unwrap_or_default();
                    brackets -= 1;
                    word.text.push(HOLE);
                    word.pattern = true;
                }
                Item::Plain(']') => {
                    brackets = brackets.saturating_sub(1);
                    word.text.push(']');
                }
                Item::Plain(c) | Item::Quoted(c) => word.text.push(*c),
                Item::Pattern => {
                    word.text.push(HOLE);
                    word.pattern = true;
                }
                Item::Hole { splits } => {
                    word.text.push(HOLE);
                    word.splits |= splits;
                }
                Item::Output | Item::Folder => {
                    word.text.push(HOLE);
                    word.splits = true;
                }
                Item::Number | Item::List => word.text.push(HOLE),
            }
        }
        let is_single = word.text.matches(HOLE).count() == 1;
        word.source = match items.first() {
            Some(Item::Output) if items.len() == 1 => Source::Output,
            Some(Item::Folder) if is_single => Source::Folder,
            Some(_) if items.last() == Some(&Item::List) => Source::List,
            _ => Source::Any,
        };
        word
    }
}

/// Marks the start of a quote, so that an empty quoted word counts as a word. It never
/// becomes part of a text.
pub(super) const EMPTY: char = '\0';

/// Whether a word is `name=` or `name+=`, so that a parenthesis starts an array.
fn is_array(items: &[Item]) -> bool {
    assigned(items).is_some_and(|(_, value)| value.is_empty())
}

/// Returns the variable that a word sets, and the parts of the value.
pub(super) fn assigned(items: &[Item]) -> Option<(String, &[Item])> {
    let mut name = String::new();
    let mut rest = items;
    loop {
        let (item, behind) = rest.split_first()?;
        rest = behind;
        match item {
            Item::Plain(c) if c.is_ascii_alphanumeric() || *c == '_' => name.push(*c),
            Item::Plain('=') => break,
            Item::Plain('+') => {
                rest = rest.strip_prefix(&[Item::Plain('=')])?;
                break;
            }
            Item::Plain('[') => {
                let end = rest.windows(2).position(|pair| {
                    pair.first() == Some(&Item::Plain(']'))
                        && matches!(pair.last(), Some(Item::Plain('=' | '+')))
                })?;
                rest = rest.get(end + 1..)?;
                rest = rest.strip_prefix(&[Item::Plain('+')]).unwrap_or(rest);
                rest = rest.strip_prefix(&[Item::Plain('=')])?;
                break;
            }
            _ => return None,
        }
    }
    let is_name = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
    is_name.then_some((name, rest))
}

/// Whether a word starts like an element of an array but does not contain its end.
pub(super) fn is_open_subscript(items: &[Item]) -> bool {
    let name = items
        .iter()
        .take_while(|item| matches!(item, Item::Plain(c) if c.is_ascii_alphanumeric() || *c == '_'))
        .count();
    name > 0 && items.get(name) == Some(&Item::Plain('[')) && !items.contains(&Item::Plain(']'))
}

/// Returns the text of a word without any quotes or expansions.
pub(super) fn plain(items: &[Item]) -> Option<String> {
    items
        .iter()
        .map(|item| match item {
            Item::Plain(c) => Some(*c),
            _ => None,
        })
        .collect()
}

fn is_hidden(c: char) -> bool {
    let mut own = [0; 4];
    let own: &str = c.encode_utf8(&mut own);
    visible(own) != own
}
