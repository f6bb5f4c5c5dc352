//! `write_todos`: replaces the whole todo list.

use super::{reply, todo};
use crate::prelude::*;
use serde_json::Value;

/// Create or update the todo list. The given list replaces the old one, so repeat the items
/// to keep.
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
        let todos: Vec<Value> = args.todos.iter().map(todo::Todo::stored).collect();
        let count = todos.len();
        cx.state().set(todo::NAME, todos);
        Ok(Reply::json(reply::success(json!({ "count": count }))))
    }
}
