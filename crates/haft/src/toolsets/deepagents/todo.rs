//! The todo list in the session's state.

use crate::prelude::*;
use serde_json::Value;

/// Name in the session's state.
pub(super) const NAME: &str = "todos";

/// One item of the todo list.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Todo {
    /// Description of the todo item.
    pub(super) content: String,
    /// Progress of the item.
    status: Status,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

impl Todo {
    /// Returns the item in its stored form.
    pub(super) fn stored(&self) -> Value {
        let status = match self.status {
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::Completed => "completed",
        };
        json!({ "content": self.content, "status": status })
    }
}
