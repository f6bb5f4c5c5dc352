//! Changes that a call made.

use std::fmt;
use std::path::PathBuf;
use std::time::SystemTime;

/// Everything one call changed.
#[derive(Debug, Clone)]
pub struct ChangeSet {
    /// The set without its changes.
    pub summary: SetSummary,
    /// Changed entries, sorted by path.
    pub changes: Vec<Change>,
}

/// A set without its changes.
#[derive(Debug, Clone)]
pub struct SetSummary {
    /// Id of the session.
    pub session: String,
    /// Number of the set in its session. Rises with time; also tells apart the sets of calls
    /// with the same id.
    pub number: u64,
    /// Id of the call.
    pub call_id: String,
    /// Name of the tool; `undo` and `redo` for the sets that these make.
    pub tool: String,
    /// Start of the call.
    pub time: SystemTime,
    /// State of the set.
    pub state: SetState,
    /// Number of changes of each kind, and whether all were recorded.
    pub counts: Counts,
    /// Calls that this set undid, if it is an undo.
    pub undoes: Vec<String>,
    /// Name that the undos of several sessions share if they were one for the user; or empty.
    pub group: String,
}

/// State of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetState {
    /// The call has ended.
    Done,
    /// The call, or a process it left behind, still runs.
    Running,
    /// The call ended by a timeout, a cancellation or a kill.
    Interrupted,
    /// All of it was undone.
    Undone,
    /// Its content was removed because of a limit; it cannot be undone.
    NoLongerKept,
}

/// Number of changes of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// New entries.
    pub created: u64,
    /// Files with other content, links with another target, entries of another type.
    pub modified: u64,
    /// Entries that are gone.
    pub deleted: u64,
    /// Entries with another name or in another folder.
    pub renamed: u64,
    /// Entries with only another mode, owner, time or extended attribute.
    pub attributes: u64,
    /// Whether everything was recorded.
    pub complete: bool,
    /// Reason why something was not recorded.
    pub why: Option<String>,
}

impl Counts {
    /// Number of changes of any kind.
    #[must_use]
    pub fn total(&self) -> u64 {
        [
            self.created,
            self.modified,
            self.deleted,
            self.renamed,
            self.attributes,
        ]
        .iter()
        .fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// One changed entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Absolute path: of a deleted entry where it was, of any other where it is.
    pub path: PathBuf,
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Type of the entry now, or before if it was deleted.
    pub entry: EntryKind,
    /// The entry before, unless it is new.
    pub before: Option<Side>,
    /// The entry after, unless it was deleted.
    pub after: Option<Side>,
    /// Whether undo has everything it needs to restore the entry.
    pub kept: bool,
}

/// Kind of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    /// The entry is new.
    Created,
    /// Its content, target or type is another.
    Modified,
    /// The entry is gone.
    Deleted,
    /// It has another path; its content may have changed too.
    Renamed {
        /// Absolute path before.
        from: PathBuf,
    },
    /// Only its mode, owner, time or extended attributes changed.
    Attributes,
}

/// Type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Dir,
    /// A symbolic link.
    Link,
    /// A FIFO, socket or device.
    Other,
}

/// An entry before or after the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// Type of the entry.
    pub entry: EntryKind,
    /// Size in bytes; 0 for a folder.
    pub bytes: u64,
    /// Permission bits.
    pub mode: u32,
    /// Target, if it is a symbolic link.
    pub target: Option<PathBuf>,
}

/// One of the two versions of a changed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Before the call.
    Before,
    /// After the call.
    After,
}

/// Reason why a set does not contain everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incomplete {
    /// Commands of this call ran without the sandbox, which records them.
    SandboxOff,
    /// The call changed files on another machine.
    OtherMachine,
    /// This kernel, or what haft runs in, cannot record commands.
    Unsupported(String),
    /// The file is larger than `max_file`.
    TooLarge(PathBuf),
    /// A pattern of `skip` matches the file.
    Skipped(PathBuf),
    /// Everything else was removed already, and the session would still exceed `max_session`.
    SessionFull(PathBuf),
    /// The state before could not be read or kept.
    Failed {
        /// Path of the entry.
        path: PathBuf,
        /// The system's message.
        error: String,
    },
    /// Another reason, as a sentence without a period.
    Other(String),
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SandboxOff => f.write_str("commands are recorded only in the sandbox"),
            Self::OtherMachine => f.write_str("commands on another machine are not recorded"),
            Self::Unsupported(why) => write!(f, "commands cannot be recorded here: {why}"),
            Self::TooLarge(path) => {
                write!(f, "{}: larger than effects.max_file", path.display())
            }
            Self::Skipped(path) => write!(f, "{}: matched by effects.skip", path.display()),
            Self::SessionFull(path) => {
                write!(f, "{}: effects.max_session is reached", path.display())
            }
            Self::Failed { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Other(why) => f.write_str(why),
        }
    }
}
