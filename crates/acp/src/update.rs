//! Updates about a session, in a form that all versions of the protocol share.

use serde_json::Value;
use std::path::PathBuf;

/// A change that the client shows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Update {
    /// A part of what the user said, when a session is replayed.
    User {
        block: Block,
        /// Whether a message starts with it.
        is_first: bool,
    },
    /// Text of the answer.
    Answer(String),
    /// Reasoning of the model.
    Thought(String),
    /// Remark of haft about the run, such as a retry.
    Note(String),
    /// A tool call, or a change of one.
    Call(Box<CallUpdate>),
    /// The todo list, as a whole.
    Plan(Vec<PlanEntry>),
    /// Tokens in the context window, its size, and the cost so far in USD.
    Usage {
        used: u64,
        size: u64,
        cost: Option<f64>,
    },
    /// Title of the session.
    Title(String),
}

/// A piece of content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Block {
    Text(String),
    Image { data: String, media_type: String },
}

/// A tool call. Fields that are `None` have not changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CallUpdate {
    /// Whether the client does not know the call yet.
    pub(crate) is_new: bool,
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) title: Option<String>,
    pub(crate) kind: Option<Kind>,
    pub(crate) status: Option<Status>,
    pub(crate) content: Option<Vec<CallContent>>,
    pub(crate) locations: Option<Vec<Location>>,
    pub(crate) raw_input: Option<Value>,
}

/// Kind of a tool, for an icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Edit,
    Delete,
    Search,
    Execute,
    Think,
    Fetch,
    Other,
}

/// State of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Pending,
    Running,
    Done,
    Failed,
}

/// Something that a call shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallContent {
    Block(Block),
    /// A change of a file. Without `old`, the file is new; without `new`, it is deleted.
    Diff {
        path: PathBuf,
        old: Option<String>,
        new: Option<String>,
    },
}

/// A place that a call is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) path: PathBuf,
    /// Line, from 1.
    pub(crate) line: Option<u32>,
}

/// An entry of the todo list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanEntry {
    pub(crate) text: String,
    pub(crate) status: PlanStatus,
}

/// State of a todo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanStatus {
    Pending,
    Running,
    Done,
}

impl CallUpdate {
    /// Creates the first update of a call.
    pub(crate) fn first(id: &str, tool: &str) -> Self {
        Self {
            is_new: true,
            id: id.to_owned(),
            tool: tool.to_owned(),
            ..Self::default()
        }
    }

    /// Creates a later one.
    pub(crate) fn later(id: &str, tool: &str) -> Self {
        Self {
            is_new: false,
            ..Self::first(id, tool)
        }
    }
}

/// Creates a block of text.
pub(crate) fn text(text: impl Into<String>) -> CallContent {
    CallContent::Block(Block::Text(text.into()))
}
