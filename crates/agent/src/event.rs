//! What happens while an agent works. These are the lines of `haft run --json`.

use crate::Usage;
use schemars::JsonSchema;
use serde::Serialize;

/// The version of events. It rises when one that was there means something else; new
/// kinds and new fields may come without that.
pub const VERSION: u32 = 1;

/// A JSON Schema of every event.
#[must_use]
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Event).to_value();
    if let Some(fields) = schema.as_object_mut() {
        let title = format!("Events of haft, version {VERSION}");
        fields.insert("title".to_owned(), title.into());
    }
    schema
}

/// Something that happened.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Event {
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
    /// In which session.
    pub session: String,
    /// The session of the agent that started this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Rises within a session, also when it is resumed.
    pub seq: u64,
    /// When, RFC 3339 in UTC.
    pub time: String,
}

/// The kinds of events.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
#[non_exhaustive]
pub enum EventKind {
    /// Something of the agent's own.
    Agent(AgentEvent),
    /// Something of a tool call: `tool_start tool_update tool_end tool_denied
    /// approval_needed`.
    Tool(haft::EventKind),
}

/// What only an agent has.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent {
    /// It begins to work.
    AgentStart {
        /// The version of these events: [`VERSION`].
        version: u32,
        /// Who runs the model.
        provider: String,
        /// The model.
        model: String,
    },
    /// The model is asked.
    TurnStart {
        /// The number of the turn in this run, from 1.
        turn: u64,
    },
    /// A piece of an answer.
    MessageUpdate {
        /// `text`, `reasoning` or `call` (the name of a tool that will be called).
        kind: &'static str,
        /// What came.
        delta: String,
    },
    /// The conversation was made shorter.
    Compaction {
        /// Tokens before, estimated.
        before: u64,
        /// Tokens after, estimated.
        after: u64,
    },
    /// A picture is not sent any more, because the provider refused the conversation with
    /// it. Words stand in its place.
    PictureLeftOut {
        /// The call whose result it was in, if it was in one.
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// What it was: `[image image/png, 12KB]`.
        picture: String,
        /// What the provider said.
        reason: String,
    },
    /// The provider failed and is asked again.
    Retry {
        /// The number of this try, from 1.
        attempt: u64,
        /// How many there may be.
        of: u64,
        /// How long it waits first.
        delay_ms: u64,
        /// What failed.
        reason: String,
    },
    /// The person said something while it worked.
    Steering {
        /// What.
        text: String,
    },
    /// A sub-agent in the background has ended, or waits for a person. Whoever watches those
    /// in the background is also told that it is `queued` and that it is `running`.
    BackgroundTask {
        /// Its `task_id`, which is its session too.
        task_id: String,
        /// Which sub-agent it is, by the name of its tool.
        agent: String,
        /// Its work in a few words, as the call that started it describes it.
        description: String,
        /// `done stopped failed cancelled interrupted waiting`.
        status: &'static str,
    },
    /// The run has nothing to do but to wait for sub-agents in the background.
    BackgroundWait {
        /// Their `task_id`s.
        tasks: Vec<String>,
    },
    /// It has to stop.
    TurnLimitReached {
        /// Why.
        reason: Limit,
    },
    /// An answer and the results of its calls are complete.
    TurnEnd {
        /// The number of the turn.
        turn: u64,
        /// What the answer took.
        usage: Usage,
        /// What it cost in USD, where the price is known.
        cost: Option<f64>,
    },
    /// It has stopped working. Always the last.
    AgentEnd {
        /// `done failed limit approval interrupted`.
        reason: &'static str,
        /// The text of the last answer.
        text: String,
        /// The last answer as JSON, where the run has a `response_format` and is done.
        #[serde(skip_serializing_if = "Option::is_none")]
        response: Option<serde_json::Value>,
        /// What the run took.
        usage: Usage,
        /// What it cost in USD, where the price is known.
        cost: Option<f64>,
    },
    /// It failed.
    Error {
        /// Why, and what to do.
        message: String,
    },
    /// When the session was closed, something had happened at protected places. Only the
    /// record has it: it comes after the last event that is told.
    LastLook {
        /// What, a line each.
        notes: Vec<String>,
    },
}

/// Why an agent has to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// So many turns.
    MaxTurns,
    /// So many tokens.
    MaxTokens,
    /// So much money.
    MaxCost,
    /// The same turn again and again.
    Loop,
}
