//! Events of a run. `haft run --json` prints one per line.

use crate::Usage;
use schemars::JsonSchema;
use serde::Serialize;

/// Version of the event format. It increases when an existing event or field changes its
/// meaning; new events and new fields do not change it.
pub const VERSION: u32 = 1;

/// Returns a JSON Schema for events.
#[must_use]
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Event).to_value();
    if let Some(fields) = schema.as_object_mut() {
        let title = format!("Events of haft, version {VERSION}");
        fields.insert("title".to_owned(), title.into());
    }
    let tool_end = schema
        .pointer_mut("/$defs/EventKind/oneOf")
        .and_then(serde_json::Value::as_array_mut)
        .into_iter()
        .flatten()
        .find(|kind| kind["properties"]["type"]["const"] == "tool_end");
    if let Some(tool_end) = tool_end {
        tool_end["properties"]["content"] = serde_json::json!({
            "type": "array",
            "items": { "$ref": "#/$defs/Content" },
            "description": "What the model gets, in `haft run --json`; anything but text is described in words.",
        });
    }
    schema
}

/// An event of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Event {
    /// The event itself, with its `type`.
    #[serde(flatten)]
    pub kind: EventKind,
    /// Id of the session.
    pub session: String,
    /// Session of the agent that started this one, if it is a sub-agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Increases within a session, also across resumes.
    pub seq: u64,
    /// Time, as RFC 3339 in UTC.
    pub time: String,
}

impl Event {
    /// Returns the event for programs that follow a run: as it is recorded, and `tool_end`
    /// with the content of the reply.
    #[must_use]
    pub fn with_content(&self) -> serde_json::Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let EventKind::Tool(haft::EventKind::ToolEnd { content, .. }) = &self.kind {
            let blocks = content.iter().map(|block| block.in_words());
            value["content"] = blocks
                .map(|text| serde_json::json!({ "type": "text", "text": text }))
                .collect();
        }
        value
    }
}

/// The kinds of events.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(untagged)]
#[non_exhaustive]
pub enum EventKind {
    /// An event of the agent.
    Agent(AgentEvent),
    /// An event of a tool call: `tool_start tool_update tool_end tool_denied
    /// approval_needed`.
    Tool(haft::EventKind),
}

/// Events of the agent itself.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AgentEvent {
    /// A run starts.
    AgentStart {
        /// Version of the event format: [`VERSION`].
        version: u32,
        /// Provider of the model.
        provider: String,
        /// Name of the model.
        model: String,
    },
    /// A turn starts: a request goes to the model.
    TurnStart {
        /// Number of the turn in this run, from 1.
        turn: u64,
    },
    /// A chunk of an answer.
    MessageUpdate {
        /// `text`, `reasoning` or `call` (the name of a tool that will be called).
        kind: &'static str,
        /// The new text.
        delta: String,
    },
    /// Older messages were replaced with a summary.
    Compaction {
        /// Estimated tokens before.
        before: u64,
        /// Estimated tokens after.
        after: u64,
    },
    /// A picture was replaced with a note because the provider rejected the conversation
    /// with it, or because newer pictures fill the request.
    PictureLeftOut {
        /// Call whose result contains the picture, if any.
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// Description of the picture: `[image image/png, 12KB]`.
        picture: String,
        /// Message of the provider, or the limit.
        reason: String,
    },
    /// A request failed and will be retried.
    Retry {
        /// Number of the retry, from 1.
        attempt: u64,
        /// Maximum number of retries.
        of: u64,
        /// Delay before the retry.
        delay_ms: u64,
        /// The failure.
        reason: String,
    },
    /// A message from the user during the run reaches the model.
    Steering {
        /// The message.
        text: String,
    },
    /// A sub-agent in the background has ended or waits for approval. The stream of
    /// background events also reports the statuses `queued` and `running`.
    BackgroundTask {
        /// Id of the task and of its session.
        task_id: String,
        /// Name of the sub-agent's tool.
        agent: String,
        /// Short description of the work, from the call that started it.
        description: String,
        /// `done stopped failed cancelled interrupted waiting`.
        status: &'static str,
    },
    /// The run waits for sub-agents in the background.
    BackgroundWait {
        /// Ids of the tasks.
        tasks: Vec<String>,
    },
    /// A limit stops the run.
    TurnLimitReached {
        /// The limit.
        reason: Limit,
    },
    /// A turn ended: the answer and the results of its calls are complete.
    TurnEnd {
        /// Number of the turn.
        turn: u64,
        /// Usage of the answer.
        usage: Usage,
        /// Cost of the answer in USD, if the price is known.
        cost: Option<f64>,
    },
    /// The run ended. Always the last event.
    AgentEnd {
        /// `done failed limit approval interrupted`.
        reason: &'static str,
        /// Text of the last answer.
        text: String,
        /// The last answer as JSON, if the run has a `response_format` and is done.
        #[serde(skip_serializing_if = "Option::is_none")]
        response: Option<serde_json::Value>,
        /// Usage of the run.
        usage: Usage,
        /// Cost of the run in USD, if the price is known.
        cost: Option<f64>,
    },
    /// The run failed.
    Error {
        /// The failure, and how to fix it.
        message: String,
    },
    /// When the session was closed, protected paths had changed. This event is only
    /// recorded, since it comes after the end of the stream.
    LastLook {
        /// One line per change.
        notes: Vec<String>,
    },
}

/// A limit that stops a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// Maximum number of turns.
    MaxTurns,
    /// Maximum number of tokens.
    MaxTokens,
    /// Maximum cost.
    MaxCost,
    /// The model repeats the same calls and gets the same results.
    Loop,
}
