//! How replies of the agent's own tools look in each dialect: an object where every
//! reply of the toolset is one, else a text.

use haft::ops::text::decode::prefix;
use haft::truncate::format_size;
use haft::{Content, Reply};
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

/// Adds a remark to a reply: a field where it is an object, else a text of its own.
pub(crate) fn add_note(toolset: &str, content: &mut Vec<Content>, note: &str) {
    let noted = match &**content {
        [Content::Text { text }] if is_object(toolset) => noted(text, note),
        _ => None,
    };
    match noted {
        Some(text) => *content = vec![Content::Text { text }],
        None => content.push(Content::Text {
            text: format!("[{note}]"),
        }),
    }
}

/// An object with one more field; nothing if it is none.
fn noted(text: &str, note: &str) -> Option<String> {
    let mut object: Map<String, Value> = serde_json::from_str(text).ok()?;
    let note = match object.get("note").and_then(Value::as_str) {
        Some(before) => format!("{before}; {note}"),
        None => note.to_owned(),
    };
    object.insert("note".to_owned(), note.into());
    Some(Value::Object(object).to_string())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(toolset: &str, text: &str) -> Vec<String> {
        let mut content = vec![Content::Text { text: text.into() }];
        add_note(toolset, &mut content, "said");
        let texts = content.into_iter().map(|block| match block {
            Content::Text { text } => text,
            _ => String::new(),
        });
        texts.collect()
    }

    #[test]
    fn a_note_leaves_an_object_one() {
        for toolset in ["deepagents", "workspace"] {
            let text = r#"{"z":1,"a":"\u00e9 }"}"#;
            assert_eq!(noted(toolset, text), [r#"{"z":1,"a":"é }","note":"said"}"#]);
            assert_eq!(noted(toolset, "{}"), [r#"{"note":"said"}"#]);
            assert_eq!(noted(toolset, r#"{"note":"a"}"#), [r#"{"note":"a; said"}"#]);
            assert_eq!(noted(toolset, "[1]"), ["[1]", "[said]"]);
        }
        assert_eq!(noted("ah", "{}"), ["{}", "[said]"]);
    }
}
