//! Text that the shell evaluates: a number may be `a[$(command)]`, and then the command
//! in the subscript is run.
//!
//! What matters is what the text itself can put into a variable. Quoted text in the words
//! of an ordinary command matters only if the output of commands gets into a variable.

use super::word::{EMPTY, Item, Word};

/// What was seen of it.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says that something was seen anywhere in the text"
)]
pub(super) struct Numbers {
    /// A variable is evaluated as a number or as the name of another one.
    pub(super) evaluates: bool,
    /// A value that is assigned has `[` in it.
    pub(super) bracket: bool,
    /// A value that is assigned has a quoted `$` or backtick in it.
    pub(super) dollar: bool,
    /// A value is not literal, or is what a command printed.
    pub(super) unknown: bool,
    /// Any word has text in it that runs a command when it is evaluated.
    pub(super) subscript: bool,
    /// Any word has a quoted `$` or backtick in it.
    pub(super) quoted: bool,
    /// Any word begins with a quoted parenthesis and has a quoted `$` or backtick in it.
    pub(super) paren: bool,
    /// There is an array.
    pub(super) arrays: bool,
    /// An array is given a subscript that is not literal.
    pub(super) index: bool,
    /// A command like `declare` is given a value that is not literal. If the variable is an
    /// array, a value in parentheses is expanded once more.
    pub(super) list: bool,
    /// `export` is given what a command prints.
    pub(super) exports: bool,
}

impl Numbers {
    /// Why a command could be run that was not seen.
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

    /// A variable gets a value of these parts.
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

    /// A variable gets a value that is in a word.
    pub(super) fn assign_word(&mut self, word: &Word) {
        self.bracket |= word.is_pattern() || word.has(&['[', '\\']);
        self.dollar |= word.is_pattern() || word.has(&['$', '`', '\\']);
        self.unknown |= word.known().is_none();
    }

    /// Looks at the text of a here-document.
    pub(super) fn look_at_document(&mut self, items: &[Item]) {
        for line in items.split(|item| *item == Item::Quoted('\n')) {
            self.look_at(&subscripts(line));
        }
    }

    /// Looks for text that would run a command as the subscript of an array.
    pub(super) fn look_at(&mut self, items: &[Item]) {
        let mut open = None;
        let mut paren = false;
        for (at, item) in items.iter().enumerate() {
            match item {
                // A parenthesis where a word can begin.
                Item::Quoted('(')
                    if at.checked_sub(1).and_then(|at| items.get(at)).is_none_or(
                        |item| matches!(item, Item::Quoted(c) if c.is_whitespace() || *c == EMPTY),
                    ) =>
                {
                    paren = true;
                }
                // A colour for the terminal.
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
        // Escapes that `printf` and `echo -e` turn into a character that matters.
        let backslashes = items.iter().enumerate();
        let backslashes = backslashes.filter(|(_, item)| **item == Item::Quoted('\\'));
        let mut escapes = backslashes.filter_map(|(at, _)| items.get(at + 1..));
        self.subscript |= escapes.any(|behind| {
            let escaped = escaped(behind);
            escaped.is_some_and(|c| matches!(c, '$' | '`' | '[' | '\\'))
        });
    }
}

/// The parts of a line of a document without the brackets that cannot be the beginning of
/// a subscript: a name stands in front of those, or what they run right behind them.
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

/// Whether the parts end in a way to write the control character that begins a sequence
/// for a terminal. No name ends in it.
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

/// The character that an escape stands for, of which this is what follows the backslash.
/// How many digits count differs between programs: the first that make one that matters do.
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

/// Whether text that is evaluated names a variable that the shell itself sets, to words of
/// the commands before.
pub(in crate::policy) fn names_words(text: &str) -> bool {
    let mut names = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    names.any(|name| name == "_" || name.starts_with("BASH_"))
}

/// Whether the shell evaluates what stands behind the name in `${name…}`.
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
