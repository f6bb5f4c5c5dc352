//! Text that the shell evaluates: a number may be `a[$(command)]`, which runs the command
//! in the subscript.
//!
//! Only text that the script itself can put into a variable matters. Quoted text in the
//! words of an ordinary command matters only if the output of commands gets into a
//! variable.

use super::word::{EMPTY, Item, Word};

/// Findings about evaluated text.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says that something was seen anywhere in the text"
)]
pub(super) struct Numbers {
    /// Whether a variable is evaluated as a number or as the name of another one.
    pub(super) evaluates: bool,
    /// Whether an assigned value contains `[`.
    pub(super) bracket: bool,
    /// Whether an assigned value contains a quoted `$` or backtick.
    pub(super) dollar: bool,
    /// Whether a value is not literal, or is the output of a command.
    pub(super) unknown: bool,
    /// Whether any word contains text that runs a command when it is evaluated.
    pub(super) subscript: bool,
    /// Whether any word contains a quoted `$` or backtick.
    pub(super) quoted: bool,
    /// Whether any word starts with a quoted parenthesis and contains a quoted `$` or
    /// backtick.
    pub(super) paren: bool,
    /// Whether there is an array.
    pub(super) arrays: bool,
    /// Whether an array has a subscript that is not literal.
    pub(super) index: bool,
    /// Whether a command like `declare` gets a value that is not literal. If the variable
    /// is an array, a value in parentheses is expanded again.
    pub(super) list: bool,
    /// Whether `export` gets the output of a command.
    pub(super) exports: bool,
}

impl Numbers {
    /// Returns why a command could be run that was not found.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let runs = (self.bracket && self.dollar) || (self.unknown && self.subscript);
        if self.evaluates && runs {
            return Some(
                "the shell evaluates a variable as a number, and its value could run a command",
            );
        }
        if self.index && (self.dollar || (self.unknown && self.quoted)) {
            return Some("the subscript of an array is not literal, and could run a command");
        }
        if self.list && self.arrays && (self.dollar || (self.unknown && self.paren)) {
            return Some("a value may become an array, and its words could run a command");
        }
        (self.exports && self.quoted)
            .then_some("\"export\" may set a variable that decides what is run")
    }

    /// Records that a variable gets a value with these parts.
    pub(super) fn assign(&mut self, value: &[Item]) {
        for item in value {
            match item {
                Item::Plain('[') | Item::Quoted('[') => self.bracket = true,
                Item::Quoted('$' | '`') => self.dollar = true,
                Item::Hole { .. } | Item::Output | Item::Folder | Item::Pattern | Item::List => {
                    self.unknown = true
                }
                _ => {}
            }
        }
    }

    /// Records that a variable gets the value of a word.
    pub(super) fn assign_word(&mut self, word: &Word) {
        self.bracket |= word.is_pattern() || word.has(&['[', '\\']);
        self.dollar |= word.is_pattern() || word.has(&['$', '`', '\\']);
        self.unknown |= word.known().is_none();
    }

    /// Examines the text of a here-document.
    pub(super) fn look_at_document(&mut self, items: &[Item]) {
        for line in items.split(|item| *item == Item::Quoted('\n')) {
            self.look_at(&subscripts(line));
        }
    }

    /// Searches for text that would run a command as the subscript of an array.
    pub(super) fn look_at(&mut self, items: &[Item]) {
        let mut open = None;
        let mut paren = false;
        for (at, item) in items.iter().enumerate() {
            match item {
                // A parenthesis where a word can start.
                Item::Quoted('(')
                    if at.checked_sub(1).and_then(|at| items.get(at)).is_none_or(
                        |item| matches!(item, Item::Quoted(c) if c.is_whitespace() || *c == EMPTY),
                    ) =>
                {
                    paren = true;
                }
                // A color sequence for the terminal.
                Item::Quoted('[') if is_escape(items.get(..at).unwrap_or_default()) => {}
                Item::Plain('[') | Item::Quoted('[') => open = Some(item),
                Item::Plain(']') | Item::Quoted(']') => open = None,
                Item::Quoted('$' | '`') => {
                    self.quoted = true;
                    self.paren |= paren;
                    self.subscript |= open.is_some();
                }
                _ => {}
            }
        }
        self.subscript |= open == Some(&Item::Quoted('['));
        // Escapes that `printf` and `echo -e` turn into a special character.
        let backslashes = items.iter().enumerate();
        let backslashes = backslashes.filter(|(_, item)| **item == Item::Quoted('\\'));
        let mut escapes = backslashes.filter_map(|(at, _)| items.get(at + 1..));
        self.subscript |= escapes.any(|behind| {
            let escaped = escaped(behind);
            escaped.is_some_and(|c| matches!(c, '$' | '`' | '[' | '\\'))
        });
    }
}

/// Returns the parts of a line without brackets that cannot start a subscript: a subscript
/// follows a name, and its substitution follows the bracket directly.
fn subscripts(line: &[Item]) -> Vec<Item> {
    let is_name = |item: &Item| match item {
        Item::Plain(c) | Item::Quoted(c) => c.is_ascii_alphanumeric() || *c == '_',
        _ => true,
    };
    let can_begin = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| line.get(at));
        before.is_some_and(is_name) || matches!(line.get(at + 1), Some(Item::Quoted('$' | '`')))
    };
    let parts = line.iter().copied().enumerate();
    parts
        .filter(|(at, item)| *item != Item::Quoted('[') || can_begin(*at))
        .map(|(_, item)| item)
        .collect()
}

/// Whether the parts end with a spelling of the escape character that starts a terminal
/// sequence. No name ends with it.
fn is_escape(parts: &[Item]) -> bool {
    let start = parts.len().saturating_sub(5);
    let quoted = |item: &Item| match item {
        Item::Quoted(c) => *c,
        _ => ' ',
    };
    let text: String = parts.iter().skip(start).map(quoted).collect();
    let ways = ["\\033", "\\0033", "\\x1b", "\\x1B", "\\e", "\\E", "\u{1b}"];
    ways.iter().any(|way| text.ends_with(way))
}

/// Returns the character that an escape stands for, given the text after the backslash.
/// Programs differ in the number of digits they use: the first digits that make a special
/// character count.
fn escaped(behind: &[Item]) -> Option<char> {
    let quoted = |item: &Item| match item {
        Item::Quoted(c) => Some(*c),
        _ => None,
    };
    let text: String = behind.iter().take(9).map_while(quoted).collect();
    let (digits, radix) = match text.chars().next()? {
        'x' | 'u' | 'U' => (text.get(1..)?, 16),
        '0'..='7' => (text.as_str(), 8),
        _ => return None,
    };
    let count = digits.chars().take_while(|c| c.is_digit(radix)).count();
    let values = (1..=count).filter_map(|end| {
        let value = u32::from_str_radix(digits.get(..end)?, radix).ok()?;
        char::from_u32(value)
    });
    let matters = |c: &char| matches!(c, '$' | '`' | '[' | '\\');
    values.into_iter().find(matters)
}

/// Whether evaluated text names a variable that the shell itself sets to words of earlier
/// commands.
pub(in crate::policy) fn names_words(text: &str) -> bool {
    let mut names = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    names.any(|name| name == "_" || name.starts_with("BASH_"))
}

/// Whether the shell evaluates the text after the name in `${name…}`.
pub(super) fn evaluates(operator: &str) -> bool {
    let mut rest = operator;
    if let Some(subscript) = operator.strip_prefix('[') {
        let Some((index, behind)) = subscript.split_once(']') else {
            return true;
        };
        if !matches!(index, "@" | "*") && !index.chars().all(|c| c.is_ascii_digit()) {
            return true;
        }
        rest = behind;
    }
    rest.strip_prefix(':').is_some_and(|slice| {
        !slice.starts_with(['-', '=', '?', '+'])
            && slice.contains(|c: char| c.is_alphabetic() || matches!(c, '_' | '$' | '`' | '['))
    })
}
