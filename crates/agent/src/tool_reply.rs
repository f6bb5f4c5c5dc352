//! Replies of the agent's own tools, in the style of each toolset: a JSON object if all replies
//! of the toolset are objects, otherwise text.

use haft::ops::text::decode::prefix;
use haft::truncate::format_size;
use haft::{Context, Reply, ReplyForm};
use serde_json::{Map, Value, json};

/// Maximum length of a text within an object, since the runtime does not truncate JSON.
const MAX_TEXT: usize = 100_000;

/// Creates an object with a text in `field` and further fields. If the text is too long, it is
/// truncated and the full text is stored at `output_path`.
pub(crate) fn object(cx: &Context, field: &str, text: &str, more: Vec<(&str, Value)>) -> Reply {
    let status = match cx.runtime().reply_form() {
        ReplyForm::Object { status, .. } => vec![status.field(false)],
        ReplyForm::Text { .. } => Vec::new(),
    };
    fields(cx, status, field, text, more)
}

/// Creates a failure with a text, which is in `field` if the reply is an object, and otherwise
/// follows the message.
pub(crate) fn failure(
    cx: &Context,
    message: &str,
    field: &str,
    text: &str,
    more: Vec<(&str, Value)>,
) -> Reply {
    let reply = match cx.runtime().reply_form() {
        ReplyForm::Object { status, reason } => {
            let head = vec![status.field(true), (reason, json!(message))];
            fields(cx, head, field, text, more)
        }
        ReplyForm::Text { failure_prefix } => {
            let text = match text.is_empty() {
                true => String::new(),
                false => format!("\n\n{text}"),
            };
            let more = more.iter().map(|(name, value)| match value {
                Value::String(text) => format!("{name}: {text}"),
                other => format!("{name}: {other}"),
            });
            let more: Vec<_> = more.collect();
            let reply = Reply::from(format!("{failure_prefix}{message}{text}"));
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
    let is_truncated = text.len() > MAX_TEXT;
    let full_path = is_truncated.then(|| cx.keep_text(text)).flatten();
    let text = [(field, json!(shortened(text)))];
    let path = full_path.iter().map(|path| ("output_path", json!(path)));
    let all = head.into_iter().chain(text).chain(path).chain(more);
    object.extend(all.map(|(name, value)| (name.to_owned(), value)));
    let mut reply = Reply::json(Value::Object(object));
    if is_truncated {
        reply = reply.detail("truncated", true);
    }
    match full_path {
        Some(path) => reply.detail("output_path", path),
        None => reply,
    }
}

fn shortened(text: &str) -> String {
    if text.len() <= MAX_TEXT {
        return text.to_owned();
    }
    let size = |bytes: usize| format_size(bytes as u64);
    format!(
        "{}\n\n[the first {} of {}]",
        prefix(text, MAX_TEXT),
        size(MAX_TEXT),
        size(text.len())
    )
}

#[cfg(test)]
mod tests {
    use haft::Content;

    fn noted(toolset: &str, text: &str) -> Vec<String> {
        let mut content = vec![Content::Text { text: text.into() }];
        let toolset = haft::toolsets::by_name(toolset).unwrap();
        toolset.replies.add_note(&mut content, "new");
        let texts = content.into_iter().map(|block| match block {
            Content::Text { text } => text,
            _ => String::new(),
        });
        texts.collect()
    }

    #[test]
    fn a_note_becomes_a_field_of_an_object() {
        for toolset in ["deepagents", "workspace"] {
            let text = r#"{"z":1,"a":"\u00e9 }"}"#;
            assert_eq!(noted(toolset, text), [r#"{"z":1,"a":"é }","note":"new"}"#]);
            assert_eq!(noted(toolset, "{}"), [r#"{"note":"new"}"#]);
            assert_eq!(noted(toolset, r#"{"note":"a"}"#), [r#"{"note":"a; new"}"#]);
            assert_eq!(noted(toolset, "[1]"), ["[1]", "[new]"]);
        }
        assert_eq!(noted("ah", "{}"), ["{}", "[new]"]);
    }
}
