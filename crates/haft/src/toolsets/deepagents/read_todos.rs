//! `read_todos`: returns the todo list.

use super::{MAX_BYTES, reply, todo};
use crate::prelude::*;
use serde_json::Value;

/// Read the current todo list.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {}

pub(super) struct ReadTodos;

impl Tool for ReadTodos {
    const NAME: &'static str = "read_todos";
    const EFFECT: Effect = Effect::Pure;
    type Args = Args;

    async fn call(&self, _: Args, cx: &Context) -> Result<Reply, Error> {
        let todos = match cx.state().get(todo::NAME) {
            Some(Value::Array(todos)) => todos,
            _ => Vec::new(),
        };
        let count = todos.len();
        let mut answer = json!({});
        if reply::add_entries(&mut answer, "todos", todos.into_iter(), MAX_BYTES, cx) {
            reply::add(&mut answer, "total", count);
        }
        Ok(Reply::json(answer).detail("count", count))
    }
}
