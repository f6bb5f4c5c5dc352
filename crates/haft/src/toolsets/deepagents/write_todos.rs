//! `write_todos`: the todo list, replaced as a whole.

use super::{reply, todo};
use crate::prelude::*;
use serde_json::Value;

/// Create or update the todo list. The list you give replaces the old one, so repeat
/// the items that stay.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// All todo items, in order.
    todos: Vec<todo::Todo>,
}

pub(super) struct WriteTodos;

impl Tool for WriteTodos {
    const NAME: &'static str = "write_todos";
    const EFFECT: Effect = Effect::Pure;
    type Args = Args;

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let is_empty = |item: &todo::Todo| item.content.trim().is_empty();
        if let Some(number) = args.todos.iter().position(is_empty) {
            return Err(Error::invalid(format!(
                "parameter \"todos[{number}].content\" must not be empty"
            )));
        }
        let todos: Vec<Value> = args.todos.iter().map(todo::Todo::kept).collect();
        let count = todos.len();
        cx.state().set(todo::NAME, todos);
        Ok(Reply::json(&reply::success(json!({ "count": count }))))
    }
}
