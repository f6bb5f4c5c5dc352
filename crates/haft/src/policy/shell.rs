//! Reading the text of a shell script: which commands are in it, wherever they stand.
//!
//! The reader follows bash's grammar: quoting, expansions, here-documents, compound
//! commands. It never guesses. Whatever it cannot follow stops it with a reason, and the
//! caller treats the script as unreadable. Nesting, size and the number of commands are
//! bounded, so that hostile text costs little.

mod ansi;
mod brace;
mod compound;
mod cursor;
mod dollar;
mod grammar;
mod heredoc;
mod number;
mod redirect;
mod word;

pub(super) use dollar::MOVING;
pub(super) use grammar::{is_number, is_run, run_by};
pub(super) use number::names_words;
pub(super) use word::Word;

use cursor::Reader;
use number::Numbers;

/// Why reading stopped.
pub(super) type Stop = &'static str;

/// Maximum nesting of substitutions, groups and texts inside other texts.
pub(super) const DEPTH: usize = 40;
/// Maximum number of characters read, counting text that is read again.
const WORK: usize = 4 << 20;
/// Maximum size of a text in bytes. No program can be given a longer word.
const LONGEST: usize = 128 << 10;
/// What a word counts, in characters, when it is copied.
const WORD: usize = 64;
/// Maximum number of simple commands.
const COMMANDS: usize = 20_000;

const TOO_LARGE: Stop = "it is too large";
const TOO_DEEP: Stop = "it is nested too deeply";
const TOO_MANY: Stop = "it has too many commands";

/// The shell that a text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Bash,
    /// A plain `sh`. It may or may not be bash, so text that the two read differently
    /// stops the reader.
    Posix,
}

/// Where a command reads its input from, as far as the command itself says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// Nothing is said: a pipe, a group around it, or what the session gives.
    Inherited,
    /// A file.
    File(Word),
    /// The here-document of this number in [`Script::documents`].
    Document(usize),
    /// A here-string.
    Text(Word),
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Simple {
    /// Its words after brace expansion; never empty.
    pub(super) words: Vec<Word>,
    pub(super) input: Input,
    /// How deeply it is nested.
    pub(super) depth: usize,
    /// The shell that runs it.
    pub(super) dialect: Dialect,
}

/// Text that the shell or a program takes from a variable and runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hidden {
    /// A command line.
    Line(String),
    /// Text in which the shell runs the substitutions.
    Expanded(String),
    /// A file, of which the name is not known, that an interactive shell reads.
    Startup,
}

/// What was found in a text, and in all texts within it.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says that something was seen anywhere in the text"
)]
pub(super) struct Script {
    pub(super) commands: Vec<Simple>,
    /// Here-documents, once their bodies have been read.
    pub(super) documents: Vec<Option<Word>>,
    /// Values of variables that are run later.
    pub(super) hidden: Vec<Hidden>,
    /// The first construct that is more than literal words and plain operators.
    pub(super) obstacle: Option<String>,
    /// The first reason why some command could not be made out.
    pub(super) unreadable: Option<String>,
    /// What the shell evaluates as arithmetic or as the name of a variable.
    numbers: Numbers,
    /// A variable that holds a folder gets another value.
    pub(super) moves: bool,
    /// A variable that holds a folder is taken for a single word.
    pub(super) relies: bool,
    /// An interactive shell would read a file of which the name is not known.
    pub(super) startup: bool,
    /// An interactive shell is started.
    pub(super) interactive: bool,
    /// Characters read so far.
    work: usize,
}

impl Script {
    /// Notes that the text is more than plain commands.
    pub(super) fn note(&mut self, why: &str) {
        if self.obstacle.is_none() {
            self.obstacle = Some(why.to_owned());
        }
    }

    /// Notes that a command could not be made out.
    pub(super) fn fault(&mut self, why: impl Into<String>) {
        if self.unreadable.is_none() {
            self.unreadable = Some(why.into());
        }
    }

    /// Takes a command, which may be one too many.
    pub(super) fn push(&mut self, command: Simple) -> Result<(), Stop> {
        if self.commands.len() >= COMMANDS {
            return Err(TOO_MANY);
        }
        self.commands.push(command);
        Ok(())
    }

    /// Takes a command whose words are part of one that was taken before.
    pub(super) fn push_again(&mut self, command: Simple) -> Result<(), Stop> {
        let size: usize = command.words.iter().map(|word| WORD + word.len()).sum();
        self.charge(size)?;
        self.push(command)
    }

    /// Counts characters before they are read or copied.
    pub(super) fn charge(&mut self, size: usize) -> Result<(), Stop> {
        self.work = self.work.saturating_add(size);
        match self.work > WORK {
            true => Err(TOO_LARGE),
            false => Ok(()),
        }
    }

    /// Reads a text that a shell runs, at this depth.
    pub(super) fn read(&mut self, text: &str, dialect: Dialect, depth: usize) {
        self.attempt(text, dialect, depth, |reader| reader.script());
    }

    /// Reads a text in which only substitutions are run.
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
            self.note(TOO_LARGE);
            self.fault(TOO_LARGE);
            return;
        }
        let ended =
            Reader::new(text, dialect, depth, self).and_then(|mut reader| read(&mut reader));
        if let Err(why) = ended {
            self.note(why);
            self.fault(why);
        }
        self.check_evaluation();
    }

    /// The shell evaluates a variable as arithmetic.
    pub(super) fn evaluate(&mut self) {
        self.numbers.evaluates = true;
        self.check_evaluation();
    }

    /// A variable gets the value in a word.
    pub(super) fn assign(&mut self, value: &Word) {
        self.numbers.assign_word(value);
        self.check_evaluation();
    }

    /// There is an array.
    pub(super) fn array(&mut self) {
        self.numbers.arrays = true;
        self.check_evaluation();
    }

    /// A command like `declare` is given a value that may be the text of an array.
    pub(super) fn list(&mut self) {
        self.numbers.list = true;
        self.check_evaluation();
    }

    /// A command like `export` is given what a program prints.
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
