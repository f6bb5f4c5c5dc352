//! Shows the todo list of a session.

use super::failure;
use crate::exit::Failure;
use crate::output;
use haft::ops::text::decode::visible;
use haft_store::sessions::Sessions;
use serde_json::Value;

/// Prints the list.
pub(super) fn show(sessions: &Sessions, session: &str, as_json: bool) -> Result<(), Failure> {
    let state = sessions.load(session).map_err(failure)?.state;
    let state: Value = state
        .and_then(|state| serde_json::from_str(&state).ok())
        .unwrap_or_default();
    let todos = state.get("todos").and_then(Value::as_array);
    let todos = todos.map_or(&[][..], Vec::as_slice);
    if todos.is_empty() && !as_json {
        output::note("no todos");
        return Ok(());
    }
    for todo in todos {
        if as_json {
            output::json(todo)?;
            continue;
        }
        let field = |name: &str| todo.get(name).and_then(Value::as_str).unwrap_or_default();
        let mark = match field("status") {
            "completed" => "[x]",
            "in_progress" => "[>]",
            _ => "[ ]",
        };
        let content = visible(&field("content").replace('\n', " "));
        output::text(&format!("{mark} {content}"))?;
    }
    Ok(())
}
