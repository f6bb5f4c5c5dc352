//! What can go wrong in an operation, as facts. A toolset turns these into its
//! own words; the `Display` here is the plain wording most of them share.

use crate::text::nearest::Nearest;
use std::io;
use std::time::Duration;

/// The result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation did not happen. Unless a variant says otherwise, nothing
/// was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Outside what the scope lets this access reach. The path reads as it was
    /// given, so that a refusal tells nothing about what exists.
    #[error("path not allowed: {path}")]
    NotAllowed {
        /// The path as it was given.
        path: String,
        /// What would allow it, for the person rather than the model.
        remedy: String,
    },
    /// In a protected place: readable, never written.
    #[error("path is in a protected directory: {path}")]
    Protected {
        /// The path as it was given.
        path: String,
        /// Why, where that is not plain from the path, and what to do about it.
        reason: Option<String>,
    },
    /// The folder that paths start from is not where it was when it was opened: what
    /// is done below it would be done elsewhere than its name says.
    #[error(
        "{folder} was moved, replaced or removed while haft was running: restart haft in the folder that you mean"
    )]
    Moved {
        /// The folder, by the name it had.
        folder: String,
    },
    /// No text a path can be made of.
    #[error("invalid path: {reason}")]
    InvalidPath {
        /// The path as it was given.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A path that a tree of absolute paths does not take.
    #[error("{}: {path}", misspelt(*how))]
    Misspelt {
        /// The path as it was given.
        path: String,
        /// What is wrong with it.
        how: crate::scope::spelling::Misspelling,
    },
    /// Nothing there.
    #[error("file not found: {path}")]
    NotFound {
        /// The path as it was given.
        path: String,
        /// Names nearby that may have been meant, best first.
        similar: Vec<String>,
    },
    /// A directory where a file was wanted.
    #[error("is a directory: {path}")]
    IsDirectory {
        /// The path as it was given.
        path: String,
    },
    /// A file where a directory was wanted.
    #[error("not a directory: {path}")]
    NotADirectory {
        /// The path as it was given.
        path: String,
    },
    /// A FIFO, socket, device or endless file: reading it could hang.
    #[error("not a regular file: {path} is a {kind}")]
    NotRegular {
        /// The path as it was given.
        path: String,
        /// What it is instead.
        kind: &'static str,
    },
    /// Something is there already and the request said not to replace it.
    #[error("file already exists: {path}")]
    AlreadyExists {
        /// The path as it was given.
        path: String,
    },
    /// Not text.
    #[error("binary file: {path}")]
    Binary {
        /// The path as it was given.
        path: String,
        /// Its size in bytes.
        size: u64,
        /// What it seems to be, when its beginning tells.
        kind: Option<&'static str>,
    },
    /// Text in an encoding this operation cannot splice.
    #[error("{path} is {encoding} text")]
    Encoding {
        /// The path as it was given.
        path: String,
        /// The encoding found.
        encoding: &'static str,
    },
    /// Larger than the operation takes.
    #[error("file too large: {path} ({size} bytes, max {limit} bytes)")]
    TooLarge {
        /// The path as it was given.
        path: String,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// There is no room for it.
    #[error("no room for {path}: at most {} are kept here", crate::text::size::size(*most))]
    NoRoom {
        /// The path as it was given.
        path: String,
        /// How many bytes all files together may have.
        most: u64,
    },
    /// A window that begins after the last line.
    #[error("offset {offset} is beyond end of file ({lines} lines total)")]
    PastEnd {
        /// The first line asked for, 1-based.
        offset: u64,
        /// How many lines there are.
        lines: u64,
    },
    /// The text to replace is not in the file.
    #[error("text not found in {path}")]
    TextNotFound {
        /// The path as it was given.
        path: String,
        /// What a caller may want to tell about it.
        lesson: Box<Lesson>,
    },
    /// The text to replace is there more than once.
    #[error("text found {count} times in {path}")]
    Ambiguous {
        /// The path as it was given.
        path: String,
        /// How often it is there.
        count: usize,
        /// On which lines it begins, 1-based, the first twenty.
        lines: Vec<usize>,
    },
    /// Old and new text are the same.
    #[error("no change: old and new text are identical")]
    NoChange {
        /// The path as it was given.
        path: String,
    },
    /// The text to replace is empty.
    #[error("the text to replace is empty")]
    EmptyOld,
    /// A range of lines that the file does not have.
    #[error("line range out of bounds")]
    LineRange {
        /// How many lines there are.
        lines: usize,
    },
    /// The file changed each time the operation was about to replace it.
    #[error("{path} keeps changing")]
    Contended {
        /// The path as it was given.
        path: String,
    },
    /// Somebody else holds the directory's lock.
    #[error("{path} is locked by another process")]
    Locked {
        /// The path as it was given.
        path: String,
    },
    /// Replacing the file would lose something that must be kept.
    #[error("cannot replace {path}: {reason}")]
    CannotKeep {
        /// The path as it was given.
        path: String,
        /// What would be lost.
        reason: String,
    },
    /// No pattern the search engine can run.
    #[error("invalid pattern: {reason}")]
    InvalidPattern {
        /// The pattern as it was given.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No glob.
    #[error("invalid glob: {reason}")]
    InvalidGlob {
        /// The glob as it was given.
        glob: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A command that did not begin.
    #[error("cannot start {program}: {detail}")]
    CannotStart {
        /// The program, as it was named.
        program: String,
        /// Why, as a fact.
        refusal: crate::executor::Refusal,
        /// Why, in words.
        detail: String,
    },
    /// As many processes run as may.
    #[error("too many active processes ({limit}/{limit}), kill some before starting new ones")]
    TooManyProcesses {
        /// How many may run.
        limit: usize,
    },
    /// No process has this name.
    #[error("process not found: {id}")]
    NoProcess {
        /// The name as it was given.
        id: String,
    },
    /// The process runs on another machine, whose ports are not seen from here.
    #[error(
        "cannot wait for port {port}: the process runs on another machine, where it cannot be checked which process listens"
    )]
    PortElsewhere {
        /// The port.
        port: u16,
    },
    /// No channel has this name.
    #[error("channel not found: {name}")]
    UnknownChannel {
        /// The name as it was given.
        name: String,
        /// Those there are, sorted.
        known: Vec<String>,
    },
    /// A message that did not arrive, or not whole. Unlike elsewhere, part of
    /// it may be out.
    #[error("failed to send message: {reason}")]
    NotSent {
        /// Why, in words that hold no secret. They say what of it arrived.
        reason: String,
        /// How many parts certainly arrived.
        delivered: usize,
        /// How many parts the message has.
        parts: usize,
        /// How often the part that failed was tried.
        tries: usize,
        /// Whether the part that failed may have arrived all the same, so that
        /// sending it again could show it twice.
        uncertain: bool,
    },
    /// Stopped by the caller.
    #[error("cancelled")]
    Cancelled,
    /// Out of time.
    #[error("timed out after {}", crate::text::seconds(*after))]
    TimedOut {
        /// The limit that was over.
        after: Duration,
    },
    /// What keeps the files cannot be used, now or at all.
    #[error("cannot {action} {path}: the store {store} {problem}; nothing was changed; {remedy}")]
    Store {
        /// What was being done, as a verb.
        action: &'static str,
        /// The path as it was given.
        path: String,
        /// What keeps the files, as a person would look for it: a file, an address.
        store: String,
        /// What is wrong with it, as a clause that follows its name.
        problem: String,
        /// What to do about it, as a clause.
        remedy: String,
    },
    /// The operating system said no.
    #[error("cannot {action} {path}: {}", plain(source))]
    Io {
        /// What was being done, as a verb.
        action: &'static str,
        /// The path as it was given.
        path: String,
        /// The system's own error.
        source: io::Error,
    },
    /// A broken promise of our own: the post-condition of an operation failed.
    #[error("internal fault: {0}")]
    Fault(String),
}

/// What a failed replacement can teach.
#[derive(Debug, Clone, Default)]
pub struct Lesson {
    /// The most similar place in the file.
    pub nearest: Option<Nearest>,
    /// The lesson in words, ready for a model.
    pub text: String,
    /// Lines on which the *new* text already is, 1-based: the edit may have
    /// been made before.
    pub already: Vec<usize>,
}

impl Error {
    /// Wraps an error of the operating system, sorting out the ones that have
    /// a name of their own.
    pub fn io(action: &'static str, path: impl Into<String>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound {
                path,
                similar: Vec::new(),
            },
            io::ErrorKind::IsADirectory => Self::IsDirectory { path },
            io::ErrorKind::NotADirectory => Self::NotADirectory { path },
            io::ErrorKind::AlreadyExists => Self::AlreadyExists { path },
            _ => Self::Io {
                action,
                path,
                source,
            },
        }
    }
}

fn misspelt(how: crate::scope::spelling::Misspelling) -> &'static str {
    use crate::scope::spelling::Misspelling as M;
    match how {
        M::Relative => "not an absolute path",
        M::Traversal => "a path that goes up",
        M::Home => "a path from a home folder",
        M::Drive => "a path from a drive",
        M::Slash => "a path that ends with a slash",
        M::CommandsOnly => "a path of a folder that only commands see",
    }
}

/// An I/O error without the `(os error 28)` that helps nobody.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    // "No space left on device" → "no space left on device": it ends a clause.
    chars.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(chars).collect()
    })
}
