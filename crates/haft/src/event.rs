//! Events that calls emit, for front ends and logs.

use crate::Content;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Receives all events of a session.
pub(crate) type EventSink = Arc<dyn Fn(&Event) + Send + Sync>;

/// Receives the events of one call and of the calls it makes.
pub(crate) type Listener = Arc<dyn Fn(&EventKind) + Send + Sync>;

/// Something that happened in a session.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// The event itself.
    #[serde(flatten)]
    pub kind: EventKind,
    /// Id of the session.
    pub session: String,
    /// Sequence number, increasing within a session.
    pub seq: u64,
    /// Time in UTC, as RFC 3339.
    pub time: String,
}

/// The kinds of events. Every `tool_start` is followed by one `tool_end`; a refused call
/// has a `tool_denied` instead of both.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A tool starts.
    ToolStart {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        tool: String,
        /// Arguments after repair.
        arguments: Value,
    },
    /// A running tool shows partial results.
    ToolUpdate {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        tool: String,
        /// Partial results so far.
        content: Vec<Content>,
    },
    /// A tool has ended.
    ToolEnd {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        tool: String,
        /// Whether it failed.
        is_error: bool,
        /// Details that only the front end sees.
        details: Map<String, Value>,
        /// Run time in milliseconds, without time spent waiting for the user.
        duration_ms: u64,
        /// Size of the reply's content in bytes.
        bytes: u64,
        /// Whether the reply was truncated.
        truncated: bool,
        /// Content of the reply, for listeners in this process only.
        #[serde(skip)]
        content: Arc<Vec<Content>>,
    },
    /// The user is asked to approve a call.
    ApprovalNeeded {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        tool: String,
        /// Arguments after repair.
        arguments: Value,
        /// Question from the tool itself, if it asks one.
        #[serde(skip_serializing_if = "Option::is_none")]
        question: Option<String>,
    },
    /// A call has run, and the user decides whether its changes are kept.
    ReviewNeeded {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        tool: String,
        /// The changes, as in `haft changes --json`.
        changes: Vec<Value>,
        /// Whether the changes are all that the call made.
        complete: bool,
        /// Reason why something was not recorded.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A call was refused; the tool did not run.
    ToolDenied {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        tool: String,
        /// Reason for the refusal.
        reason: String,
    },
}
