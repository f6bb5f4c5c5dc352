//! The list of what is to be done, as the session keeps it.

use crate::prelude::*;
use serde_json::Value;

/// The name it has in the session's state.
pub(super) const NAME: &str = "todos";

/// One thing to do.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Todo {
    /// Description of the todo item.
    pub(super) content: String,
    /// How far it is.
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
    /// As it is kept.
    pub(super) fn kept(&self) -> Value {
        let status = match self.status {
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::Completed => "completed",
        };
        json!({ "content": self.content, "status": status })
    }
}
