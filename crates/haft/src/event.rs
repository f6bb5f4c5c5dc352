//! What happens during calls, for whoever watches.

use crate::Content;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Who is told of events.
pub(crate) type EventSink = Arc<dyn Fn(&Event) + Send + Sync>;

/// Who is told of the events of one call and of those it makes.
pub(crate) type Listener = Arc<dyn Fn(&EventKind) + Send + Sync>;

/// Something that happened.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
    /// In which session.
    pub session: String,
    /// Rises within a session.
    pub seq: u64,
    /// When, RFC 3339 in UTC.
    pub time: String,
}

/// The kinds of events. Every `tool_start` is followed by one `tool_end`; a
/// call that was refused has `tool_denied` instead of both.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A tool begins.
    ToolStart {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// The arguments as they were repaired.
        arguments: Value,
    },
    /// A tool shows what it has so far.
    ToolUpdate {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// What it has.
        content: Vec<Content>,
    },
    /// A tool has ended.
    ToolEnd {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// Whether it failed.
        is_error: bool,
        /// What only the host sees.
        details: Map<String, Value>,
        /// How long it took.
        duration_ms: u64,
        /// How many bytes of content the reply has.
        bytes: u64,
        /// Whether something was cut from it.
        truncated: bool,
        /// What the reply says: for whoever watches in this process.
        #[serde(skip)]
        content: Arc<Vec<Content>>,
    },
    /// A person is asked whether a call may be made.
    ApprovalNeeded {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// The arguments as they were repaired.
        arguments: Value,
        /// What the tool itself asks, where it does.
        #[serde(skip_serializing_if = "Option::is_none")]
        question: Option<String>,
    },
    /// A call was refused; the tool did not run.
    ToolDenied {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// Why.
        reason: String,
    },
}
