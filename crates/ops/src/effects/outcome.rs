//! Selecting what to undo, and the result.

use super::change::Change;
use std::io;
use std::path::PathBuf;

/// Sets to take back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The calls.
    pub calls: Calls,
    /// Absolute paths of files and folders; everything else stays as it is. Empty: all.
    pub paths: Vec<PathBuf>,
}

/// Calls to undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Calls {
    /// The last call that changed something and is not undone.
    Last,
    /// These calls, by id, such as those of a turn.
    Ids(Vec<String>),
    /// This call and everything after it.
    Since(String),
    /// The whole session.
    All,
}

/// Care taken by an undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoMode {
    /// Changes nothing; returns what would happen.
    DryRun,
    /// Acts only if everything is as the calls left it.
    Careful,
    /// Moves what changed since aside, and restores what was kept.
    Force,
}

/// Result of an undo.
#[derive(Debug, Clone, Default)]
pub struct Undone {
    /// Id under which the undo itself is recorded, such as `undo-1`; empty after a dry run.
    pub call_id: String,
    /// Ids of the calls that were undone, newest first.
    pub calls: Vec<String>,
    /// Changes that the undo made, sorted by path.
    pub changes: Vec<Change>,
    /// Versions that were moved aside.
    pub aside: Vec<Aside>,
    /// Files that have been written since, and keep that: the calls only moved them, or gave
    /// them other attributes.
    pub edited: Vec<PathBuf>,
    /// Folders that the calls made and that stay, because others have put something in them.
    pub left: Vec<PathBuf>,
}

/// A present version that was moved aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aside {
    /// Path of the entry.
    pub path: PathBuf,
    /// Path of its version now.
    pub now: PathBuf,
}

/// A path that is not as a call left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPath {
    /// Absolute path.
    pub path: PathBuf,
    /// The difference, such as `changed since` or `no longer there`.
    pub what: String,
}

/// Reason why nothing was undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// No call is left that changed anything.
    #[error("nothing to undo")]
    Nothing,
    /// The session has no set of this call.
    #[error("no changes recorded for call: {0}")]
    UnknownCall(String),
    /// A selected call, or a process it started, still runs.
    #[error("still running: {0}")]
    Running(String),
    /// A limit removed the content that these calls had kept.
    #[error("no longer kept, because of a limit: {}", .0.join(", "))]
    NoLongerKept(Vec<String>),
    /// Calls outside the selection changed the same files afterwards.
    #[error("changed by later calls: {}", calls.join(", "))]
    LaterCalls {
        /// Ids of these calls, oldest first.
        calls: Vec<String>,
        /// Absolute paths.
        paths: Vec<PathBuf>,
    },
    /// Something else changed the files since.
    #[error("changed since: {}", names(paths.iter().map(|changed| &changed.path)))]
    Changed {
        /// The paths, sorted.
        paths: Vec<ChangedPath>,
    },
    /// The content before was not kept.
    #[error("not kept: {}", names(paths))]
    NotKept {
        /// Absolute paths, sorted.
        paths: Vec<PathBuf>,
    },
    /// Another undo of this session is in progress.
    #[error("another undo of this session is in progress")]
    Busy,
    /// An error of the system. What was done so far was taken back, or is completed when the
    /// session is next opened.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The action that failed, as a verb.
        action: &'static str,
        /// Absolute path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

fn names<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> String {
    let names: Vec<String> = paths
        .into_iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(", ")
}

/// Result of copying a tree as it was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TreeAt {
    /// Number of files, links and folders.
    pub entries: u64,
    /// Bytes of their content.
    pub bytes: u64,
}
