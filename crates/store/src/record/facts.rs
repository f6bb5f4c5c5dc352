//! Data about sessions.

use std::path::PathBuf;
use std::time::SystemTime;

/// Origin of the calls in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionKind {
    /// An agent: the calls come from a model.
    Agent,
    /// A user who makes a single call.
    Call,
    /// Another program, over MCP.
    Mcp,
}

impl SessionKind {
    /// Returns its name: `agent`, `call` or `mcp`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Call => "call",
            Self::Mcp => "mcp",
        }
    }

    /// Parses a name. An unknown one counts as `Agent`, the most general.
    pub(crate) fn by_name(name: &str) -> Self {
        match name {
            "call" => Self::Call,
            "mcp" => Self::Mcp,
            _ => Self::Agent,
        }
    }
}

/// Properties of a new session.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// Id, if something already refers to it: 4 to 64 letters, digits, `-` and `_`. By
    /// default one is generated.
    pub id: Option<String>,
    /// Origin of its calls.
    pub kind: SessionKind,
    /// Folder that the session works in.
    pub work_dir: PathBuf,
    /// Name of the toolset.
    pub toolset: String,
    /// Name of the provider; empty without a model.
    pub provider: String,
    /// Name of the model; empty without a model.
    pub model: String,
    /// Short description. By default the start of the first prompt.
    pub title: Option<String>,
    /// The session and the call that started it, for a sub-agent.
    pub parent: Option<(String, String)>,
    /// System prompt.
    pub system: Option<String>,
}

/// Properties of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Unique id.
    pub id: String,
    /// Origin of its calls.
    pub kind: SessionKind,
    /// Folder that the session works in.
    pub work_dir: PathBuf,
    /// Name of the toolset.
    pub toolset: String,
    /// Name of the provider; empty without a model.
    pub provider: String,
    /// Name of the model; empty without a model.
    pub model: String,
    /// Short description.
    pub title: Option<String>,
    /// Time of the first record.
    pub created: SystemTime,
    /// Time of the last record.
    pub updated: SystemTime,
    /// The session and the call that started it, for a sub-agent.
    pub parent: Option<(String, String)>,
    /// The session and the message that it was forked from.
    pub forked_from: Option<(String, i64)>,
    /// System prompt.
    pub system: Option<String>,
}

/// A recorded message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// Unique within the database.
    pub id: i64,
    /// Id of the previous message.
    pub parent: Option<i64>,
    /// One of `user assistant tool compaction`.
    pub role: String,
    /// The message as JSON.
    pub body: String,
    /// Time of recording.
    pub time: SystemTime,
}

/// A call without an outcome: it is running, or its result is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    /// Unique within the session.
    pub call_id: String,
    /// Name of the tool.
    pub tool: String,
    /// The arguments as JSON.
    pub arguments: String,
    /// Whether it may have changed anything.
    pub has_effect: bool,
    /// Time when it was recorded.
    pub since: SystemTime,
}

/// An approval question about a call that has no outcome yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingApproval {
    /// Id of the call.
    pub call_id: String,
    /// The question as JSON.
    pub question: String,
    /// Time when it was asked.
    pub since: SystemTime,
    /// The answer, if there is one: `approve`, `reject`, or changed arguments.
    pub decision: Option<String>,
}

/// Everything needed to resume a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Properties of the session.
    pub info: Info,
    /// The history, from the root to the end.
    pub messages: Vec<StoredMessage>,
    /// Calls without an outcome, oldest first. A fork does not inherit any.
    pub open_calls: Vec<OpenCall>,
    /// Approval questions about open calls.
    pub approvals: Vec<PendingApproval>,
    /// State that tools keep between calls, as a JSON object.
    pub state: Option<String>,
    /// Number of the newest event, or 0.
    pub last_seq: u64,
    /// Input and output tokens so far, and the cost in USD if a price is known. A fork
    /// starts at zero.
    pub usage: (u64, u64, Option<f64>),
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Unique id.
    pub id: String,
    /// Origin of its calls.
    pub kind: SessionKind,
    /// Short description.
    pub title: Option<String>,
    /// Folder that the session works in.
    pub work_dir: PathBuf,
    /// Name of the model; empty without a model.
    pub model: String,
    /// Time of the first record.
    pub created: SystemTime,
    /// Time of the last record.
    pub updated: SystemTime,
    /// Number of messages in the history.
    pub messages: u64,
    /// Number of the model's answers among them.
    pub turns: u64,
    /// Number of calls recorded in it.
    pub calls: u64,
    /// Input and output tokens together.
    pub tokens: u64,
    /// Cost in USD, if a price is known.
    pub cost: Option<f64>,
    /// Number of questions that wait for an answer.
    pub waiting: u64,
    /// Id of the process that writes to it.
    pub in_use_by: Option<u32>,
    /// The session and the call that started it, for a sub-agent.
    pub parent: Option<(String, String)>,
}

/// Selects sessions to list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only sessions of this work folder.
    pub work_dir: Option<PathBuf>,
    /// Only sessions of these kinds; empty for all kinds.
    pub kinds: Vec<SessionKind>,
    /// Whether to include sessions of sub-agents.
    pub sub_agents: bool,
    /// Maximum number of sessions.
    pub limit: Option<usize>,
}

/// A recorded call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCall {
    /// Unique within the session.
    pub call_id: String,
    /// Name of the tool.
    pub tool: String,
    /// The arguments as JSON.
    pub arguments: String,
    /// Whether it may change anything.
    pub has_effect: bool,
    /// Time of recording.
    pub time: SystemTime,
    /// The reply as JSON, if the call has an outcome.
    pub reply: Option<String>,
    /// Whether the reply is an error.
    pub is_error: bool,
    /// Duration in milliseconds, if the call has an outcome.
    pub duration_ms: Option<u64>,
    /// File with the full output, if the reply is truncated.
    pub output: Option<String>,
}

/// A recorded event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedEvent {
    /// Number within the session.
    pub seq: u64,
    /// Time of recording.
    pub time: SystemTime,
    /// The event as JSON.
    pub body: String,
}

/// An item of a session's record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordItem {
    /// Start of a session. The following items belong to it, up to the next one.
    Session(Box<Info>),
    /// A message of the conversation.
    Message(StoredMessage),
    /// A call, with its outcome if there is one.
    Call(RecordedCall),
    /// An event of a run.
    Event(RecordedEvent),
}

/// Result of deleting a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deleted {
    /// Ids of the deleted sessions: the given one, then those of its sub-agents.
    pub sessions: Vec<String>,
    /// Output files that are no longer referenced. They still exist.
    pub outputs: Vec<PathBuf>,
    /// Sessions whose history is partly kept, because a fork shares it.
    pub still_needed: Vec<String>,
}
