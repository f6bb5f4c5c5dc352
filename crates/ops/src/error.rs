//! Errors of operations, as facts. Toolsets word them for their models; the `Display` here
//! is the plain wording that most of them share.

use crate::text::nearest::Nearest;
use std::io;
use std::time::Duration;

/// The result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an operation failed. Unless a variant says otherwise, nothing was
/// changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path is outside the scope for this kind of access. It is reported as the caller
    /// wrote it, so that a refusal reveals nothing about which files exist.
    #[error("path not allowed: {path}")]
    NotAllowed {
        /// Path as the caller wrote it.
        path: String,
        /// How to allow it; addressed to the user rather than the model.
        remedy: String,
    },
    /// The path is protected: it can be read but never written.
    #[error("path is in a protected directory: {path}")]
    Protected {
        /// Path as the caller wrote it.
        path: String,
        /// The reason if the path does not make it obvious, and what to do about it.
        reason: Option<String>,
    },
    /// The root folder was moved or replaced after it was opened, so writing below it would
    /// change files elsewhere than its name says.
    #[error(
        "{folder} was moved, replaced or removed while haft was running: restart haft in the folder that you mean"
    )]
    Moved {
        /// Path of the folder when it was opened.
        folder: String,
    },
    /// The text cannot be a path.
    #[error("invalid path: {reason}")]
    InvalidPath {
        /// Path as the caller wrote it.
        path: String,
        /// Completes "invalid path: …".
        reason: &'static str,
    },
    /// The path is not valid in a tree where every path is absolute.
    #[error("{}: {path}", misspelt(*how))]
    Misspelt {
        /// Path as the caller wrote it.
        path: String,
        /// The rule that the path breaks.
        how: crate::scope::spelling::Misspelling,
    },
    /// The file does not exist.
    #[error("file not found: {path}")]
    NotFound {
        /// Path as the caller wrote it.
        path: String,
        /// Similar names nearby, best match first.
        similar: Vec<String>,
    },
    /// The path is a directory, but a file was expected.
    #[error("is a directory: {path}")]
    IsDirectory {
        /// Path as the caller wrote it.
        path: String,
    },
    /// The path is a file, but a directory was expected.
    #[error("not a directory: {path}")]
    NotADirectory {
        /// Path as the caller wrote it.
        path: String,
    },
    /// The path is a FIFO, socket, device or endless file; reading it could hang.
    #[error("not a regular file: {path} is a {kind}")]
    NotRegular {
        /// Path as the caller wrote it.
        path: String,
        /// Its actual type, such as "FIFO".
        kind: &'static str,
    },
    /// The file exists and the request forbids replacing it.
    #[error("file already exists: {path}")]
    AlreadyExists {
        /// Path as the caller wrote it.
        path: String,
    },
    /// The file is not text.
    #[error("binary file: {path}")]
    Binary {
        /// Path as the caller wrote it.
        path: String,
        /// File size in bytes.
        size: u64,
        /// File format, if its first bytes identify it.
        kind: Option<&'static str>,
    },
    /// The text is in an encoding that this operation cannot splice.
    #[error("{path} is {encoding} text")]
    Encoding {
        /// Path as the caller wrote it.
        path: String,
        /// Name of the detected encoding.
        encoding: &'static str,
    },
    /// The file is larger than the operation accepts.
    #[error("file too large: {path} ({size} bytes, max {limit} bytes)")]
    TooLarge {
        /// Path as the caller wrote it.
        path: String,
        /// File size in bytes.
        size: u64,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The backend is full.
    #[error("no room for {path}: all files here together may have at most {}", crate::text::size::size(*most))]
    NoRoom {
        /// Path as the caller wrote it.
        path: String,
        /// Maximum total size of all files, in bytes.
        most: u64,
    },
    /// The window starts after the last line.
    #[error("offset {offset} is beyond end of file ({lines} lines total)")]
    PastEnd {
        /// Requested first line, counted from 1.
        offset: u64,
        /// Number of lines in the file.
        lines: u64,
    },
    /// The file does not contain the text to replace.
    #[error("text not found in {path}")]
    TextNotFound {
        /// Path as the caller wrote it.
        path: String,
        /// Details that help the caller correct the request.
        lesson: Box<Lesson>,
    },
    /// The file contains the text to replace more than once.
    #[error("text found {count} times in {path}")]
    Ambiguous {
        /// Path as the caller wrote it.
        path: String,
        /// Number of occurrences.
        count: usize,
        /// Lines where the occurrences start, counted from 1; the first twenty.
        lines: Vec<usize>,
    },
    /// The text to replace ends or starts inside a line that the new text repeats.
    #[error("the new text repeats the rest of line {line} of {path}")]
    RepeatsLine {
        /// Path as the caller wrote it.
        path: String,
        /// Line of the match, counted from 1.
        line: usize,
        /// The complete line in the file.
        text: String,
    },
    /// The file already has what the edit adds.
    #[error("already there, on line {line} of {path}")]
    AlreadyThere {
        /// Path as the caller wrote it.
        path: String,
        /// Line of the match, counted from 1.
        line: usize,
    },
    /// The old and the new text are the same.
    #[error("no change: old and new text are identical")]
    NoChange {
        /// Path as the caller wrote it.
        path: String,
    },
    /// The text to replace is empty.
    #[error("the text to replace is empty")]
    EmptyOld,
    /// The file does not have the requested range of lines.
    #[error("line range out of bounds")]
    LineRange {
        /// Number of lines in the file.
        lines: usize,
    },
    /// The file changed at every attempt to replace it.
    #[error("{path} keeps changing")]
    Contended {
        /// Path as the caller wrote it.
        path: String,
    },
    /// Another process holds the lock of the directory.
    #[error("{path} is locked by another process")]
    Locked {
        /// Path as the caller wrote it.
        path: String,
    },
    /// Replacing the file would lose a property that must be kept.
    #[error("cannot replace {path}: {reason}")]
    CannotKeep {
        /// Path as the caller wrote it.
        path: String,
        /// The property that would be lost.
        reason: String,
    },
    /// The search engine cannot compile the pattern.
    #[error("invalid pattern: {reason}")]
    InvalidPattern {
        /// Pattern as the caller wrote it.
        pattern: String,
        /// Completes "invalid pattern: …".
        reason: String,
    },
    /// The glob cannot be compiled.
    #[error("invalid glob: {reason}")]
    InvalidGlob {
        /// Glob as the caller wrote it.
        glob: String,
        /// Completes "invalid glob: …".
        reason: String,
    },
    /// The command could not be started.
    #[error("cannot start {program}: {detail}")]
    CannotStart {
        /// Name of the program as the caller wrote it.
        program: String,
        /// The reason as a fact, for callers that react to it.
        refusal: crate::executor::Refusal,
        /// The reason in words.
        detail: String,
    },
    /// The maximum number of processes is running already.
    #[error("too many active processes ({limit}/{limit}), kill some before starting new ones")]
    TooManyProcesses {
        /// Maximum number of running processes.
        limit: usize,
    },
    /// No process has this id.
    #[error("process not found: {id}")]
    NoProcess {
        /// Id as the caller wrote it.
        id: String,
    },
    /// The process runs on another machine, so this one cannot see its ports.
    #[error(
        "cannot wait for port {port}: the process runs on another machine, where it cannot be checked which process listens"
    )]
    PortElsewhere {
        /// The port to wait for.
        port: u16,
    },
    /// No channel has this name.
    #[error("channel not found: {name}")]
    UnknownChannel {
        /// Name as the caller wrote it.
        name: String,
        /// Names of the existing channels, sorted.
        known: Vec<String>,
    },
    /// The message was not delivered completely. Unlike with other errors, a part of it may
    /// have been sent.
    #[error("failed to send message: {reason}")]
    NotSent {
        /// The reason, without secrets, and how much of the message was delivered.
        reason: String,
        /// Number of parts that were certainly delivered.
        delivered: usize,
        /// Number of parts of the message.
        parts: usize,
        /// Number of attempts to send the part that failed.
        tries: usize,
        /// Whether the part that failed may have been delivered after all, so that sending
        /// it again could duplicate it.
        uncertain: bool,
    },
    /// The caller cancelled the operation.
    #[error("cancelled")]
    Cancelled,
    /// The operation exceeded its time limit.
    #[error("timed out after {}", crate::text::seconds(*after))]
    TimedOut {
        /// The time limit.
        after: Duration,
    },
    /// The storage behind the files is unavailable or damaged.
    #[error("cannot {action} {path}: the store {store} {problem}; nothing was changed; {remedy}")]
    Store {
        /// The failed action, as a verb.
        action: &'static str,
        /// Path as the caller wrote it.
        path: String,
        /// Name of the storage that a user can look for: a file or an address.
        store: String,
        /// The problem, as a clause that follows the name.
        problem: String,
        /// How to fix it, as a clause.
        remedy: String,
    },
    /// The operating system reported an error.
    #[error("cannot {action} {path}: {}", plain(source))]
    Io {
        /// The failed action, as a verb.
        action: &'static str,
        /// Path as the caller wrote it.
        path: String,
        /// The underlying error.
        source: io::Error,
    },
    /// A bug in haft: an operation violated its own post-condition.
    #[error("internal fault: {0}")]
    Fault(String),
}

/// Hints about a replacement that failed, so that the model can correct it.
#[derive(Debug, Clone, Default)]
pub struct Lesson {
    /// The most similar text in the file.
    pub nearest: Option<Nearest>,
    /// The hint in words, ready for a model.
    pub text: String,
    /// Lines that already contain the *new* text, counted from 1; the edit may have been
    /// made before.
    pub already: Vec<usize>,
}

impl Error {
    /// Wraps an error of the operating system; common ones become their own variants.
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
        M::Relative => "path is not absolute",
        M::Traversal => "path must not contain `..`",
        M::Home => "path must not start with `~`",
        M::Drive => "path must not start with a drive letter",
        M::Slash => "path must not end with a slash",
        M::CommandsOnly => "path is visible to commands only",
    }
}

/// Returns the text of an I/O error without the `(os error 28)`, which does not help the
/// user.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    // "No space left on device" → "no space left on device", because it follows a colon.
    chars.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(chars).collect()
    })
}
