//! Parsing shell scripts: finds all commands in a script, wherever they are.
//!
//! The parser follows bash's grammar: quoting, expansions, here-documents, compound
//! commands. It never guesses. Anything it cannot follow stops it with a reason, and the
//! caller treats the script as unreadable. Nesting, size and the number of commands are
//! limited, so that hostile text is cheap.

mod ansi;
mod brace;
mod compound;
mod cursor;
mod dollar;
mod grammar;
mod heredoc;
mod number;
mod redirect;
mod variable;
mod word;

pub(super) use dollar::MOVING;
pub(super) use number::names_words;
pub(super) use variable::{changes_programs, is_number, is_run, run_by};
pub(super) use word::Word;

use cursor::Reader;
use number::Numbers;

/// The reason why the parser stopped.
pub(super) type Stop = &'static str;

/// Maximum nesting of substitutions, groups and texts inside other texts.
pub(super) const DEPTH: usize = 40;
/// Maximum number of characters read, counting text that is read again.
const WORK: usize = 4 << 20;
/// Maximum size of a text in bytes. No program can be given a longer word.
const LONGEST: usize = 128 << 10;
/// Cost of copying a word, in characters.
const WORD: usize = 64;
/// Maximum number of simple commands.
const COMMANDS: usize = 20_000;

const TOO_LARGE: Stop = "it is too large";
const TOO_DEEP: Stop = "it is nested too deeply";
const TOO_MANY: Stop = "it has too many commands";

/// The shell that runs a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Bash,
    /// A plain `sh`, which may or may not be bash. Text that the two parse differently
    /// stops the parser.
    Posix,
}

/// Source of a command's input, as far as the command itself tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// Not redirected: from a pipe, a surrounding group, or the session.
    Inherited,
    /// A redirected file.
    File(Word),
    /// The here-document with this index in [`Script::documents`].
    Document(usize),
    /// A here-string.
    Text(Word),
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Simple {
    /// Words after brace expansion; never empty.
    pub(super) words: Vec<Word>,
    pub(super) input: Input,
    /// Nesting depth within the script.
    pub(super) depth: usize,
    /// Whether its output becomes part of another command.
    pub(super) substituted: bool,
    /// Index of the command that runs it.
    pub(super) parent: Option<usize>,
    /// The shell that runs it.
    pub(super) dialect: Dialect,
}

/// Text in a variable that the shell or a program runs later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hidden {
    /// A command line.
    Line(String),
    /// Text whose substitutions the shell runs.
    Expanded(String),
    /// A file with an unknown name that an interactive shell reads.
    Startup,
}

/// Everything found in a text and in all texts inside it.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says that something was seen anywhere in the text"
)]
pub(super) struct Script {
    pub(super) commands: Vec<Simple>,
    /// Here-documents; `None` until the body has been read.
    pub(super) documents: Vec<Option<Word>>,
    /// Values of variables that are run later.
    pub(super) hidden: Vec<Hidden>,
    /// The first reason why the commands may do more than they seem to.
    pub(super) doubt: Option<String>,
    /// The first reason why a rule that allows the commands does not cover the text.
    pub(super) excess: Option<String>,
    /// Files that redirections write.
    pub(super) targets: Vec<Word>,
    /// The first reason why some command is not known.
    pub(super) unreadable: Option<String>,
    /// Text that the shell evaluates as arithmetic or as a variable name.
    numbers: Numbers,
    /// Whether the command that runs the text that is read now is substituted.
    pub(super) substituted: bool,
    /// Index of the command that runs the text that is read now.
    pub(super) parent: Option<usize>,
    /// Whether a variable with a folder gets another value.
    pub(super) moves: bool,
    /// Whether a variable with a folder is assumed to be a single word.
    pub(super) relies: bool,
    /// Whether an interactive shell would read a file with an unknown name.
    pub(super) startup: bool,
    /// Whether an interactive shell is started.
    pub(super) interactive: bool,
    /// Characters read so far.
    work: usize,
}

impl Script {
    /// Records that commands may do more than they seem to.
    pub(super) fn doubt(&mut self, why: impl Into<String>) {
        if self.doubt.is_none() {
            self.doubt = Some(why.into());
        }
    }

    /// Records that the text does more than run its commands.
    pub(super) fn exceed(&mut self, why: impl Into<String>) {
        if self.excess.is_none() {
            self.excess = Some(why.into());
        }
    }

    /// Records that a variable gets another value.
    pub(super) fn set(&mut self, name: &str) {
        if changes_programs(name) {
            self.doubt(format!("the variable {name} may decide which program runs"));
        } else if variable::loads_code(name) {
            self.exceed(format!(
                "the variable {name} may make a program load other code"
            ));
        }
    }

    /// Records that a command is not known.
    pub(super) fn fault(&mut self, why: impl Into<String>) {
        if self.unreadable.is_none() {
            self.unreadable = Some(why.into());
        }
    }

    /// Adds a command, unless there are too many.
    pub(super) fn push(&mut self, command: Simple) -> Result<(), Stop> {
        if self.commands.len() >= COMMANDS {
            return Err(TOO_MANY);
        }
        self.commands.push(command);
        Ok(())
    }

    /// Adds a command whose words are part of one that was added before.
    pub(super) fn push_again(&mut self, command: Simple) -> Result<(), Stop> {
        let size: usize = command.words.iter().map(|word| WORD + word.len()).sum();
        self.charge(size)?;
        self.push(command)
    }

    /// Counts characters before they are read or copied, and stops at the limit.
    pub(super) fn charge(&mut self, size: usize) -> Result<(), Stop> {
        self.work = self.work.saturating_add(size);
        match self.work > WORK {
            true => Err(TOO_LARGE),
            false => Ok(()),
        }
    }

    /// Parses a text that a shell runs, at this depth.
    pub(super) fn read(&mut self, text: &str, dialect: Dialect, depth: usize) {
        self.attempt(text, dialect, depth, |reader| reader.script());
    }

    /// Parses a text in which only substitutions are run.
    pub(super) fn read_expanded(&mut self, text: &str, depth: usize) {
        self.attempt(text, Dialect::Bash, depth, |reader| {
            reader.document_text().map(drop)
        });
    }

    fn attempt(
        &mut self,
        text: &str,
        dialect: Dialect,
        depth: usize,
        read: impl FnOnce(&mut Reader<'_>) -> Result<(), Stop>,
    ) {
        if text.len() > LONGEST {
            self.fault(TOO_LARGE);
            return;
        }
        let ended =
            Reader::new(text, dialect, depth, self).and_then(|mut reader| read(&mut reader));
        if let Err(why) = ended {
            self.fault(why);
        }
        self.check_evaluation();
    }

    /// Records that the shell evaluates a variable as arithmetic.
    pub(super) fn evaluate(&mut self) {
        self.numbers.evaluates = true;
        self.check_evaluation();
    }

    /// Records that a variable gets the value of a word.
    pub(super) fn assign(&mut self, value: &Word) {
        self.numbers.assign_word(value);
        self.check_evaluation();
    }

    /// Records that there is an array.
    pub(super) fn array(&mut self) {
        self.numbers.arrays = true;
        self.check_evaluation();
    }

    /// Records that a command like `declare` gets a value that may be parsed as an array.
    pub(super) fn list(&mut self) {
        self.numbers.list = true;
        self.check_evaluation();
    }

    /// Records that a command like `export` gets the output of a program.
    pub(super) fn export(&mut self) {
        self.numbers.exports = true;
        self.check_evaluation();
    }

    fn check_evaluation(&mut self) {
        if let Some(why) = self.numbers.fault() {
            self.fault(why);
        }
    }
}
