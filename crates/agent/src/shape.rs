//! How replies of the agent's own tools look in each dialect: an object where every
//! reply of the toolset is one, else a text.

use haft::ops::text::decode::prefix;
use haft::truncate::format_size;
use haft::{Content, Context, Reply};
use serde_json::{Map, Value, json};

/// Maximum length of a text within an object: the runtime does not truncate JSON.
const MOST: usize = 100_000;

/// Whether a dialect answers in objects.
pub(crate) fn is_object(toolset: &str) -> bool {
    matches!(toolset, "deepagents" | "workspace")
}

/// A reply that is an object: a text by the name `field`, and more beside it. A text that
/// is too long for it is kept whole, and `output_path` says where.
pub(crate) fn object(cx: &Context, field: &str, text: &str, more: Vec<(&str, Value)>) -> Reply {
    let status = match cx.runtime().toolset() {
        "workspace" => ("success", json!(true)),
        _ => ("status", json!("success")),
    };
    fields(cx, vec![status], field, text, more)
}

/// A failure that still has a text to show. Objects have it by the name `field`; in
/// other toolsets it follows the message.
pub(crate) fn failure(
    cx: &Context,
    message: &str,
    field: &str,
    text: &str,
    more: Vec<(&str, Value)>,
) -> Reply {
    let runtime = cx.runtime();
    let reply = match runtime.toolset() {
        "workspace" => {
            let head = vec![("success", json!(false)), ("error", json!(message))];
            fields(cx, head, field, text, more)
        }
        "deepagents" => {
            let head = vec![("status", json!("error")), ("message", json!(message))];
            fields(cx, head, field, text, more)
        }
        toolset => {
            let start = if toolset == "ah" { "error: " } else { "" };
            let text = match text.is_empty() {
                true => String::new(),
                false => format!("\n\n{text}"),
            };
            let more = more.iter().map(|(name, value)| match value {
                Value::String(text) => format!("{name}: {text}"),
                other => format!("{name}: {other}"),
            });
            let more: Vec<_> = more.collect();
            let reply = Reply::from(format!("{start}{message}{text}"));
            match more.is_empty() {
                true => reply,
                false => reply.footer(format!("[{}]", more.join("; "))),
            }
        }
    };
    reply.as_error()
}

fn fields(
    cx: &Context,
    head: Vec<(&str, Value)>,
    field: &str,
    text: &str,
    more: Vec<(&str, Value)>,
) -> Reply {
    let mut object = Map::new();
    let is_cut = text.len() > MOST;
    let kept = is_cut.then(|| cx.keep_text(text)).flatten();
    let text = [(field, json!(shortened(text)))];
    let path = kept.iter().map(|path| ("output_path", json!(path)));
    let all = head.into_iter().chain(text).chain(path).chain(more);
    object.extend(all.map(|(name, value)| (name.to_owned(), value)));
    let mut reply = Reply::json(&Value::Object(object));
    if is_cut {
        reply = reply.detail("truncated", true);
    }
    match kept {
        Some(path) => reply.detail("output_path", path),
        None => reply,
    }
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
