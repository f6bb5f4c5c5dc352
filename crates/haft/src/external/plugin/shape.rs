//! Deviations from the documented form of messages. The host tolerates them, but other
//! hosts may read them differently.

use super::message::{call_id, image_data};
use serde_json::{Map, Value};

/// Returns the deviations of an update.
pub(super) fn update(message: &Map<String, Value>) -> Vec<String> {
    let mut problems = content(message);
    if call_id(message).is_none() {
        problems.push("no call_id".to_owned());
    }
    problems
}

fn content(message: &Map<String, Value>) -> Vec<String> {
    let blocks = match message.get("content") {
        Some(Value::Array(blocks)) => blocks,
        Some(other) => return vec![format!("content is {}, not an array", kind(other))],
        None => return vec!["no content".to_owned()],
    };
    blocks.iter().filter_map(block).collect()
}

/// Returns the deviations of a result.
pub(super) fn result(message: &Map<String, Value>) -> Vec<String> {
    let mut problems = content(message);
    for flag in ["error", "is_error"] {
        match message.get(flag) {
            None | Some(Value::Bool(_) | Value::Null) => {}
            Some(other) => problems.push(format!("{flag} is {}, not true or false", kind(other))),
        }
    }
    if let Some(kind) = message.get("type")
        && kind != "result"
    {
        problems.push(format!("type is {kind}, not \"result\""));
    }
    problems
}

fn block(block: &Value) -> Option<String> {
    let Value::Object(fields) = block else {
        return Some(format!("a content block is {}, not an object", kind(block)));
    };
    let is_text = |name: &str| fields.get(name).is_some_and(Value::is_string);
    match fields.get("type").and_then(Value::as_str) {
        Some("text") if is_text("text") => None,
        Some("text") => Some("a text block has no text, or it is not a string".to_owned()),
        Some("image") => {
            let (data, media_type) = match image_data(fields.clone()) {
                Ok(image) => image,
                Err(problem) => return Some(problem.to_owned()),
            };
            if media_type.is_none() {
                return Some("an image block has no mimeType".to_owned());
            }
            let is_code = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
            (!data.chars().all(is_code)).then(|| "the image data is not base64".to_owned())
        }
        Some(other) => Some(format!(
            "a content block has type \"{other}\", not text or image"
        )),
        None => Some("a content block has no type".to_owned()),
    }
}

/// Names the type of a value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problems(message: Value) -> Vec<String> {
        result(message.as_object().unwrap())
    }

    #[test]
    fn good_results_have_no_problems() {
        for message in [
            json!({ "content": [{ "type": "text", "text": "x" }] }),
            json!({ "content": [], "error": false }),
            json!({ "type": "result", "call_id": "a", "content": [{ "type": "image", "data": "QQ==", "mime_type": "image/png" }], "is_error": true }),
        ] {
            assert_eq!(problems(message.clone()), Vec::<String>::new(), "{message}");
        }
    }

    #[test]
    fn each_problem_is_reported() {
        for (message, words) in [
            (
                json!({ "content": "x" }),
                "content is a string, not an array",
            ),
            (json!({ "error": "x" }), "no content"),
            (json!({ "content": ["x"] }), "a string, not an object"),
            (json!({ "content": [{ "text": "x" }] }), "no type"),
            (
                json!({ "content": [{ "type": "text", "text": 1 }] }),
                "no text",
            ),
            (
                json!({ "content": [{ "type": "image", "data": "QQ==" }] }),
                "mimeType",
            ),
            (
                json!({ "content": [{ "type": "image", "data": "*", "mimeType": "a/b" }] }),
                "base64",
            ),
            (
                json!({ "content": [], "error": "yes" }),
                "not true or false",
            ),
        ] {
            let found = problems(message.clone());
            assert!(
                found.iter().any(|found| found.contains(words)),
                "{message} {found:?}"
            );
        }
    }
}
