//! How replies of the agent's own tools look in each dialect: an object where every
//! reply of the toolset is one, else a text.

use haft::Reply;
use haft::ops::text::decode::prefix;
use haft::truncate::format_size;
use serde_json::{Map, Value, json};

/// The most bytes of a text in an object, which nobody can cut afterwards.
const MOST: usize = 100_000;

/// Whether a dialect answers in objects.
pub(crate) fn is_object(toolset: &str) -> bool {
    matches!(toolset, "deepagents" | "workspace")
}

/// A reply that is an object: a text by the name `field`, and more beside it.
pub(crate) fn object(toolset: &str, field: &str, text: &str, more: Vec<(&str, Value)>) -> Reply {
    let mut object = Map::new();
    let (name, value) = match toolset {
        "workspace" => ("success", json!(true)),
        _ => ("status", json!("success")),
    };
    object.insert(name.to_owned(), value);
    object.insert(field.to_owned(), json!(shortened(text)));
    let more = more.into_iter();
    object.extend(more.map(|(name, value)| (name.to_owned(), value)));
    Reply::json(&Value::Object(object))
}

fn shortened(text: &str) -> String {
    if text.len() <= MOST {
        return text.to_owned();
    }
    let size = |bytes: usize| format_size(bytes as u64);
    format!(
        "{}\n\n[the first {} of {}]",
        prefix(text, MOST),
        size(MOST),
        size(text.len())
    )
}
