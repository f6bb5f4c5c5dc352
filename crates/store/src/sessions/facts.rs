//! What is known of sessions.

use std::path::PathBuf;
use std::time::SystemTime;

/// Who talks in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A model.
    Agent,
    /// A person, who makes one call.
    Call,
    /// Another program, by MCP.
    Mcp,
}

impl Kind {
    /// Its name: `agent`, `call`, `mcp`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Call => "call",
            Self::Mcp => "mcp",
        }
    }

    /// By its name. One that is not known is taken for the most general.
    pub(super) fn by_name(name: &str) -> Self {
        match name {
            "call" => Self::Call,
            "mcp" => Self::Mcp,
            _ => Self::Agent,
        }
    }
}

/// What a session begins with.
#[derive(Debug, Clone)]
pub struct New {
    /// Its id, where something else is named after it already: 4 to 64 letters, digits,
    /// `-` and `_`. Else one is made.
    pub id: Option<String>,
    /// Who talks in it.
    pub kind: Kind,
    /// The work folder.
    pub work_dir: PathBuf,
    /// The toolset.
    pub toolset: String,
    /// Who answers; empty where nobody does.
    pub provider: String,
    /// The model; empty where there is none.
    pub model: String,
    /// What it is about. Else the first prompt says it.
    pub title: Option<String>,
    /// The session and the call that started it, where it is a sub-agent's.
    pub parent: Option<(String, String)>,
    /// The system prompt.
    pub system: Option<String>,
}

/// What a session is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Info {
    /// Its id.
    pub id: String,
    /// Who talks in it.
    pub kind: Kind,
    /// The work folder.
    pub work_dir: PathBuf,
    /// The toolset.
    pub toolset: String,
    /// Who answers; empty where nobody does.
    pub provider: String,
    /// The model; empty where there is none.
    pub model: String,
    /// What it is about.
    pub title: Option<String>,
    /// When it began.
    pub created: SystemTime,
    /// When something was last recorded in it.
    pub updated: SystemTime,
    /// The session and the call that started it, where it is a sub-agent's.
    pub parent: Option<(String, String)>,
    /// The session and the message it goes on from, where it is a fork.
    pub forked_from: Option<(String, i64)>,
    /// The system prompt.
    pub system: Option<String>,
}

/// A message as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// Its id, which no other message of the database has.
    pub id: i64,
    /// The message before it.
    pub parent: Option<i64>,
    /// `user assistant tool compaction`.
    pub role: String,
    /// JSON.
    pub body: String,
    /// When it was recorded.
    pub time: SystemTime,
}

/// A call that has no outcome: it is being made, or nobody knows what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenCall {
    /// Its id.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// JSON.
    pub arguments: String,
    /// Whether it can have changed anything.
    pub has_effect: bool,
    /// Since when.
    pub since: SystemTime,
}

/// A question about a call that has no outcome yet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pending {
    /// The call.
    pub call_id: String,
    /// What a person is asked, as JSON.
    pub question: String,
    /// Since when.
    pub since: SystemTime,
    /// The answer, where there is one: `approve`, `reject`, or changed arguments.
    pub decision: Option<String>,
}

/// All that is needed to go on with a session.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Loaded {
    /// What it is.
    pub info: Info,
    /// The conversation, from the root to its end.
    pub messages: Vec<Stored>,
    /// Calls without an outcome, oldest first. A fork has none of what it was forked from.
    pub open_calls: Vec<OpenCall>,
    /// Questions about them.
    pub approvals: Vec<Pending>,
    /// What tools remember between calls.
    pub state: Option<String>,
    /// The number of the newest event; 0 if there is none.
    pub last_seq: u64,
    /// Tokens in and out so far, and USD where a price is known. A fork begins at none.
    pub usage: (u64, u64, Option<f64>),
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Its id.
    pub id: String,
    /// Who talks in it.
    pub kind: Kind,
    /// What it is about.
    pub title: Option<String>,
    /// The work folder.
    pub work_dir: PathBuf,
    /// The model; empty where there is none.
    pub model: String,
    /// When it began.
    pub created: SystemTime,
    /// When something was last recorded in it.
    pub updated: SystemTime,
    /// How many messages the conversation has.
    pub messages: u64,
    /// How many of them are answers.
    pub turns: u64,
    /// How many calls were recorded in it.
    pub calls: u64,
    /// Tokens, both ways.
    pub tokens: u64,
    /// USD, where a price is known.
    pub cost: Option<f64>,
    /// How many questions wait for an answer.
    pub waiting: u64,
    /// The process that writes to it.
    pub in_use_by: Option<u32>,
    /// The session and the call that started it, where it is a sub-agent's.
    pub parent: Option<(String, String)>,
}

/// Which sessions to list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Those of this work folder only.
    pub work_dir: Option<PathBuf>,
    /// Those of these kinds only; of all kinds if there is none.
    pub kinds: Vec<Kind>,
    /// Those of sub-agents too.
    pub sub_agents: bool,
    /// At most so many.
    pub most: Option<usize>,
}

/// A call as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedCall {
    /// Its id.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// JSON.
    pub arguments: String,
    /// Whether it can change anything.
    pub has_effect: bool,
    /// When it was recorded.
    pub time: SystemTime,
    /// The reply as JSON; nothing if the call has no outcome.
    pub reply: Option<String>,
    /// Whether it failed.
    pub is_error: bool,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// The file that holds the whole output, where the reply has a part of it.
    pub output: Option<String>,
}

/// An event as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedEvent {
    /// Its number in the session.
    pub seq: u64,
    /// When it was recorded.
    pub time: SystemTime,
    /// JSON.
    pub body: String,
}

/// A piece of the record of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry {
    /// A session begins. What follows is of this one, up to the next.
    Session(Box<Info>),
    /// Something was said.
    Message(Stored),
    /// A call was made.
    Call(RecordedCall),
    /// Something happened.
    Event(RecordedEvent),
}

/// What was deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deleted {
    /// The sessions: the one that was named, then those of the agents it started.
    pub sessions: Vec<String>,
    /// Files with whole outputs that nothing points to any more. They are still there.
    pub outputs: Vec<PathBuf>,
    /// Those of the sessions whose beginning is kept, because a fork needs it.
    pub still_needed: Vec<String>,
}
