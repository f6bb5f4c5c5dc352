//! What messages say: definitions in every shape there is, and results.

use crate::Content;
use serde_json::{Map, Value};

/// The most that is taken of a description and of guidance, in characters.
const LONG_TEXT: usize = 16_000;

/// The most images that are taken of a reply.
const MOST_IMAGES: usize = 20;

/// What a plugin said of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Introduction {
    /// The tools that have a name.
    pub tools: Vec<Described>,
    /// Whether it speaks the second protocol.
    pub is_second: bool,
    /// Whether it answered `init` rather than `describe`.
    pub is_init: bool,
}

/// One tool as it described it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Described {
    /// What it is called.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The schema of its arguments.
    pub parameters: Value,
    /// Advice for the prompt.
    pub guidance: Option<String>,
}

/// The introduction that a message is, if it is one.
#[must_use]
pub fn introduction(message: &Map<String, Value>) -> Option<Introduction> {
    let is_second =
        |object: &Map<String, Value>| object.get("protocol").and_then(Value::as_u64) == Some(2);
    if let Some(Value::Array(tools)) = message.get("tools") {
        let objects = || tools.iter().filter_map(Value::as_object);
        // One without a name is there too, to be complained about.
        let each = |tool: &Value| tool.as_object().map(described).unwrap_or_default();
        return Some(Introduction {
            tools: tools.iter().map(each).collect(),
            is_second: is_second(message) || objects().any(is_second),
            is_init: message.get("type").is_some_and(|kind| kind == "init"),
        });
    }
    // The lines of a log may have a name as well.
    let is_string = |name: &str| message.get(name).is_some_and(Value::is_string);
    let is_tool = is_string("description") || schema(message).is_some_and(Value::is_object);
    if message.contains_key("content") || !is_string("name") || !is_tool {
        return None;
    }
    Some(Introduction {
        tools: vec![described(message)],
        is_second: is_second(message),
        is_init: false,
    })
}

fn described(object: &Map<String, Value>) -> Described {
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    Described {
        name: text("name").unwrap_or_default().trim().to_owned(),
        description: clean(text("description").unwrap_or_default()),
        parameters: schema(object).map_or_else(anything, cleaned),
        guidance: text("guidance")
            .or_else(|| text("system_prompt"))
            .map(clean),
    }
}

fn schema(object: &Map<String, Value>) -> Option<&Value> {
    ["parameters", "input_schema", "inputSchema"]
        .iter()
        .find_map(|name| object.get(*name).filter(|schema| !schema.is_null()))
}

/// A schema whose descriptions are clean. One that goes too deep is refused anyway.
pub(in crate::external) fn cleaned(schema: &Value) -> Value {
    fn go(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value {
                        Value::String(text) if name == "description" || name == "title" => {
                            *text = clean(text);
                        }
                        other => go(other),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(go),
            _ => {}
        }
    }
    let mut schema = schema.clone();
    go(&mut schema);
    schema
}

/// No schema: whatever comes is passed on.
fn anything() -> Value {
    serde_json::json!({ "type": "object", "properties": {}, "additionalProperties": true })
}

/// A text of somebody else for a model and a screen: of bounded length, without
/// what moves a cursor or hides.
pub(crate) fn clean(text: &str) -> String {
    let hides = |c: char| {
        c.is_control() && c != '\n' && c != '\t'
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
            || matches!(c, '\u{e0000}'..='\u{e007f}')
    };
    text.chars()
        .filter(|c| !hides(*c))
        .take(LONG_TEXT)
        .collect()
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Whose call it answers, if it says so.
    pub call_id: Option<String>,
    /// What it says.
    pub content: Vec<Content>,
    /// Whether that is an error.
    pub is_error: bool,
    /// What it says to the host alone.
    pub details: Map<String, Value>,
}

/// The outcome that a message is, if it is one.
#[must_use]
pub fn outcome(message: &Map<String, Value>) -> Option<Outcome> {
    taken(message.clone())
}

/// The same, of the very texts of the message, which may be large.
pub(super) fn taken(mut message: Map<String, Value>) -> Option<Outcome> {
    let content = message.remove("content");
    let flag = |name: &str| message.get(name).is_some_and(is_true);
    let kind = message.get("type").and_then(Value::as_str);
    let is_failure = matches!(kind, Some("error" | "invalid"));
    let text = |words: &str| {
        let text = words.to_owned();
        Some(vec![Content::Text { text }])
    };
    // An error may come as words instead of a flag, and a result with nothing in it.
    let content = match (content, message.get("error")) {
        (Some(content), _) => Some(blocks(content)),
        (None, Some(Value::String(words))) => text(words),
        (None, Some(Value::Object(error))) => match error.get("message") {
            Some(Value::String(words)) => text(words),
            _ => text(&Value::from(error.clone()).to_string()),
        },
        (None, _) if is_failure => text(
            message
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or_default(),
        ),
        (None, _) => (kind == Some("result")).then(Vec::new),
    };
    let is_error = is_failure || flag("error") || flag("is_error") || flag("isError");
    Some(Outcome {
        call_id: call_id(&message),
        content: content?,
        is_error,
        details: match message.remove("details") {
            Some(Value::Object(details)) => details,
            _ => Map::new(),
        },
    })
}

/// Whose call a message is about. An id is a text: anything else is the id of no call.
#[must_use]
pub fn call_id(message: &Map<String, Value>) -> Option<String> {
    match message.get("call_id") {
        Some(Value::String(id)) if !id.is_empty() => Some(id.clone()),
        _ => None,
    }
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(truth) => *truth,
        Value::String(text) => !text.is_empty() && !text.eq_ignore_ascii_case("false"),
        Value::Object(_) => true,
        _ => false,
    }
}

/// Blocks of a reply; texts that follow each other are one.
pub(super) fn blocks(content: Value) -> Vec<Content> {
    let items = match content {
        Value::Array(items) => items,
        other => vec![other],
    };
    let mut blocks: Vec<Content> = Vec::new();
    let mut images = 0;
    for item in items {
        let mut block = block(item);
        if matches!(block, Some(Content::Image { .. })) {
            images += 1;
            if images > MOST_IMAGES {
                block = None;
            }
        }
        match (block, blocks.last_mut()) {
            (Some(Content::Text { text }), Some(Content::Text { text: before })) => {
                before.push_str(&text);
            }
            (Some(block), _) => blocks.push(block),
            (None, _) => {}
        }
    }
    if images > MOST_IMAGES {
        let text = format!(
            "[{} more images were left out: a reply has at most {MOST_IMAGES}]",
            images - MOST_IMAGES
        );
        blocks.push(Content::Text { text });
    }
    blocks
}

/// A picture, if it can be one. The runtime decodes it before anybody keeps it.
fn image(data: String, media_type: &str) -> Option<Content> {
    use base64::Engine;
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let is_image = media_type
        .strip_prefix("image/")
        .is_some_and(|kind| !kind.is_empty() && kind.chars().all(plain));
    // Lines of 76 characters are usual, too.
    let data = if data.contains(|c: char| c.is_ascii_whitespace()) {
        data.split_ascii_whitespace().collect()
    } else {
        data
    };
    let bytes = base64::engine::general_purpose::STANDARD.decode(&data);
    let bytes = bytes.unwrap_or_default();
    let known = match is_image {
        true => Some(media_type).filter(|_| !bytes.is_empty()),
        // Whatever it was called, it may be one.
        false => haft_ops::text::sniff::image_type(&bytes),
    };
    if let Some(media_type) = known {
        let media_type = media_type.to_owned();
        return Some(Content::Image { data, media_type });
    }
    let shown: String = media_type.escape_debug().take(60).collect();
    Some(Content::Text {
        text: format!("[an image of type \"{shown}\" that cannot be read was left out]"),
    })
}

fn block(item: Value) -> Option<Content> {
    let text = |text: String| Some(Content::Text { text });
    let mut object = match item {
        Value::String(words) => return text(words),
        Value::Null => return None,
        Value::Object(object) => object,
        other => return text(other.to_string()),
    };
    if object.get("type").is_some_and(|kind| kind == "image") {
        let Some(Value::String(data)) = object.remove("data") else {
            return None;
        };
        let media_type = ["mimeType", "mime_type", "media_type"]
            .iter()
            .find_map(|name| object.get(*name).and_then(Value::as_str));
        return image(data, media_type.unwrap_or("image/png"));
    }
    match object.remove("text") {
        Some(Value::String(words)) => text(words),
        Some(other) => text(other.to_string()),
        None => text(Value::Object(object).to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn an_introduction_comes_in_three_shapes() {
        let tool = json!({ "name": "a", "description": "A", "parameters": { "type": "object" } });
        let one = introduction(&map(tool.clone())).unwrap();
        let many = introduction(&map(json!({ "tools": [tool] }))).unwrap();
        let init = introduction(&map(
            json!({ "type": "init", "tools": [tool], "protocol": 2 }),
        ))
        .unwrap();
        assert_eq!(one.tools, many.tools);
        assert_eq!(one.tools, init.tools);
        assert!(!one.is_init && !many.is_init && init.is_init && init.is_second && !one.is_second);
        let refusal = json!({ "content": [{ "type": "text", "text": "unknown" }], "error": true });
        assert_eq!(introduction(&map(refusal)), None);
        assert_eq!(introduction(&map(json!({ "hello": 1 }))), None);
        let log = json!({ "name": "app", "hostname": "h", "level": 30, "msg": "started" });
        assert_eq!(introduction(&map(log)), None);
    }

    #[test]
    fn an_outcome_is_taken_however_it_flags_an_error() {
        for (message, is_error) in [
            (
                json!({ "content": [{ "type": "text", "text": "x" }], "error": false }),
                false,
            ),
            (
                json!({ "content": [{ "type": "text", "text": "x" }], "error": true }),
                true,
            ),
            (json!({ "content": "x", "is_error": true }), true),
            (json!({ "error": "x" }), true),
            (json!({ "error": { "code": 1, "message": "x" } }), true),
            (json!({ "type": "error", "message": "x" }), true),
            (json!({ "type": "result", "content": ["x"] }), false),
        ] {
            let outcome = outcome(&map(message.clone())).unwrap();
            assert_eq!(outcome.is_error, is_error, "{message}");
            assert_eq!(
                outcome.content,
                [Content::Text { text: "x".into() }],
                "{message}"
            );
        }
        assert_eq!(outcome(&map(json!({ "type": "log" }))), None);
        let empty = outcome(&map(json!({ "type": "result" }))).unwrap();
        assert!(empty.content.is_empty() && !empty.is_error);
    }

    #[test]
    fn texts_that_follow_each_other_are_one_and_pictures_stay_between() {
        let content = json!([
            { "type": "text", "text": "a" }, { "type": "text", "text": "b" },
            { "type": "image", "data": "QQ==", "mime_type": "image/gif" },
            { "type": "text", "text": "c" },
        ]);
        let text = |text: &str| Content::Text { text: text.into() };
        let image = Content::Image {
            data: "QQ==".into(),
            media_type: "image/gif".into(),
        };
        assert_eq!(blocks(content), [text("ab"), image, text("c")]);
    }

    #[test]
    fn a_description_hides_nothing() {
        let tool = json!({ "name": "a", "description": "x\u{1b}[2J\u{202e}y\u{200b}" });
        assert_eq!(
            introduction(&map(tool)).unwrap().tools[0].description,
            "x[2Jy"
        );
    }
}
