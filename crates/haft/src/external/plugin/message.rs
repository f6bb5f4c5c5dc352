//! The content of plugin messages: tool definitions in all accepted shapes, and results.

use crate::Content;
use crate::external::time;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Maximum length of a description or guidance, in characters.
const LONG_TEXT: usize = 16_000;

/// Maximum number of images in a reply.
const MAX_IMAGES: usize = 20;

/// A plugin's answer in the handshake.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Introduction {
    /// Its tools, including those without a name.
    pub(super) tools: Vec<Described>,
    /// Whether it uses version 2 of the protocol.
    pub(super) is_second: bool,
    /// Whether it answered `init` rather than `describe`.
    pub(super) is_init: bool,
}

/// The question of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// `describe`, with the offer of protocol version 2.
    Describe,
    /// `describe` alone, for plugins that compare the whole line.
    Plain,
    /// `init`.
    Init,
}

impl Question {
    /// Returns the message to send.
    pub(super) fn message(self) -> Value {
        match self {
            Self::Describe => json!({ "type": "describe", "protocol": 2 }),
            Self::Plain => json!({ "type": "describe" }),
            Self::Init => json!({ "type": "init", "tools": [] }),
        }
    }

    /// Returns the name of its protocol in the configuration.
    pub(super) fn protocol(self) -> &'static str {
        match self {
            Self::Describe | Self::Plain => "describe",
            Self::Init => "init",
        }
    }
}

impl Introduction {
    /// Returns which of the questions this may answer, the most likely first.
    pub(super) fn answers(&self, asked: &[Question]) -> Vec<Question> {
        use Question::{Describe, Init, Plain};
        let order: &[Question] = match (self.is_init, self.is_second) {
            (true, _) => &[Init],
            (false, true) => &[Describe, Plain, Init],
            // A plugin that answers `describe` at all answers the plain form.
            (false, false) if asked.contains(&Plain) => &[Plain, Init],
            (false, false) => &[Describe, Init],
        };
        let asked = order.iter().filter(|question| asked.contains(question));
        asked.copied().collect()
    }
}

/// A tool as the plugin described it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Described {
    /// Name of the tool.
    pub(super) name: String,
    /// Description for the model.
    pub(super) description: String,
    /// JSON Schema of its arguments.
    pub(super) parameters: Value,
    /// Guidance for the system prompt.
    pub(super) guidance: Option<String>,
    /// Time limit of a call.
    pub(super) timeout: Option<Duration>,
}

/// Parses a message as the answer in a handshake.
pub(super) fn introduction(message: &Map<String, Value>) -> Option<Introduction> {
    let is_second =
        |object: &Map<String, Value>| object.get("protocol").and_then(Value::as_u64) == Some(2);
    if let Some(Value::Array(tools)) = message.get("tools") {
        let objects = || tools.iter().filter_map(Value::as_object);
        // A tool without a name is kept, so that it can be reported.
        let each = |tool: &Value| tool.as_object().map(described).unwrap_or_default();
        return Some(Introduction {
            tools: tools.iter().map(each).collect(),
            is_second: is_second(message) || objects().any(is_second),
            is_init: message.get("type").is_some_and(|kind| kind == "init"),
        });
    }
    // Log lines may have a name as well.
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
        timeout: object
            .get("timeout")
            .and_then(Value::as_f64)
            .and_then(time::seconds),
    }
}

fn schema(object: &Map<String, Value>) -> Option<&Value> {
    ["parameters", "input_schema", "inputSchema"]
        .iter()
        .find_map(|name| object.get(*name).filter(|schema| !schema.is_null()))
}

/// Returns a schema with cleaned descriptions. A schema that is nested too deeply is
/// refused later.
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

/// Returns a schema that accepts any arguments.
fn anything() -> Value {
    json!({ "type": "object", "properties": {}, "additionalProperties": true })
}

/// Cleans text from another program for the model and the terminal: limits its length and
/// removes control and invisible characters.
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

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::external) struct Outcome {
    /// Id of the call that it answers, if given.
    pub(in crate::external) call_id: Option<String>,
    /// Content of the reply.
    pub(in crate::external) content: Vec<Content>,
    /// Whether the call failed.
    pub(in crate::external) is_error: bool,
    /// Details that only the front end sees.
    pub(in crate::external) details: Map<String, Value>,
}

/// Parses a message as the result of a call.
pub(super) fn outcome(message: &Map<String, Value>) -> Option<Outcome> {
    taken(message.clone())
}

/// Same as [`outcome`], without copying the texts, which may be large.
pub(in crate::external) fn taken(mut message: Map<String, Value>) -> Option<Outcome> {
    let content = message.remove("content");
    let flag = |name: &str| message.get(name).is_some_and(is_true);
    let kind = message.get("type").and_then(Value::as_str);
    let is_failure = matches!(kind, Some("error" | "invalid"));
    let text = |words: &str| {
        let text = words.to_owned();
        Some(vec![Content::Text { text }])
    };
    let mut has_problem = false;
    // An error may be given as text instead of a flag, and a result may be empty.
    let content = match (content, message.get("error")) {
        (Some(content), _) => {
            let read = blocks(content);
            has_problem = read.has_problem;
            Some(read.content)
        }
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
    let is_error =
        is_failure || has_problem || flag("error") || flag("is_error") || flag("isError");
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

/// Returns the id of the call that a message is about. Only strings are ids.
pub(super) fn call_id(message: &Map<String, Value>) -> Option<String> {
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

/// The parsed content of a message.
pub(super) struct Blocks {
    pub(super) content: Vec<Content>,
    /// Whether something is wrong with it; the content describes the problem.
    has_problem: bool,
}

/// Parses the blocks of a reply and joins adjacent texts.
pub(super) fn blocks(content: Value) -> Blocks {
    let items = match content {
        Value::Array(items) => items,
        other => vec![other],
    };
    let mut blocks: Vec<Content> = Vec::new();
    let mut images = 0;
    let mut has_problem = false;
    let mut ends_line = false;
    for item in items {
        let (mut block, is_problem) = match block(item) {
            Ok(block) => (block, false),
            Err(text) => (Some(Content::Text { text }), true),
        };
        has_problem |= is_problem;
        if matches!(block, Some(Content::Image { .. })) {
            images += 1;
            if images > MAX_IMAGES {
                block = None;
            }
        }
        match (block, blocks.last_mut()) {
            (Some(Content::Text { text }), Some(Content::Text { text: before })) => {
                // A problem starts on its own line.
                if (is_problem || ends_line) && !before.is_empty() && !before.ends_with('\n') {
                    before.push('\n');
                }
                before.push_str(&text);
                ends_line = is_problem;
            }
            (Some(block), _) => {
                blocks.push(block);
                ends_line = is_problem;
            }
            (None, _) => {}
        }
    }
    if images > MAX_IMAGES {
        let text = format!(
            "[{} more images were left out: a reply has at most {MAX_IMAGES}]",
            images - MAX_IMAGES
        );
        blocks.push(Content::Text { text });
    }
    Blocks {
        content: blocks,
        has_problem,
    }
}

/// Parses an image. The runtime decodes it before it is recorded.
fn image(data: &str, media_type: Option<&str>) -> Result<Content, String> {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let (data, own) = match data_url(data) {
        Some((own, data)) => (data, Some(own)),
        None => (data, None),
    };
    let media_type = media_type.or(own).unwrap_or("image/png");
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let is_image = media_type
        .strip_prefix("image/")
        .is_some_and(|kind| !kind.is_empty() && kind.chars().all(plain));
    // Accepts lines of 76 characters, the URL-safe alphabet and missing padding.
    let mut data: String = data.split_ascii_whitespace().collect();
    data.truncate(data.trim_end_matches('=').len());
    let mut data = data.replace('-', "+").replace('_', "/");
    data.push_str(
        ["", "", "==", "="]
            .get(data.len() % 4)
            .copied()
            .unwrap_or_default(),
    );
    let bytes = STANDARD.decode(&data).unwrap_or_default();
    let known = match is_image {
        true => Some(media_type).filter(|_| !bytes.is_empty()),
        // The data decides, whatever the declared type.
        false => haft_ops::text::sniff::image_type(&bytes),
    };
    if let Some(media_type) = known {
        let media_type = media_type.to_owned();
        return Ok(Content::Image { data, media_type });
    }
    let shown: String = media_type.escape_debug().take(60).collect();
    Err(format!(
        "[an image of type \"{shown}\" that cannot be read was left out: its data has to be base64]"
    ))
}

/// Splits `data:image/png;base64,…` into its media type and Base64 text.
fn data_url(text: &str) -> Option<(&str, &str)> {
    let (head, data) = text.trim_start().strip_prefix("data:")?.split_once(',')?;
    let media_type = head.strip_suffix(";base64")?;
    Some((media_type.split(';').next().unwrap_or_default(), data))
}

/// Parses one block; the error describes the problem.
fn block(item: Value) -> Result<Option<Content>, String> {
    let text = |text: String| Ok(Some(Content::Text { text }));
    let mut object = match item {
        Value::String(words) => return text(words),
        Value::Null => return Ok(None),
        Value::Object(object) => object,
        other => return text(other.to_string()),
    };
    let kind = field(&object, "type").and_then(|name| object.get(&name)?.as_str());
    if kind == Some("image") {
        let (data, media_type) = image_data(object)?;
        return image(&data, media_type.as_deref()).map(Some);
    }
    match take(&mut object, "text") {
        Some(Value::String(words)) => text(words),
        Some(other) => text(other.to_string()),
        None => text(Value::Object(object).to_string()),
    }
}

/// Returns the Base64 text and the media type of an image block, in any of its spellings:
/// `data` and `mimeType`, `Data` and `MIMEType`, or `source` with `data` and `media_type`.
/// The error says why it is missing.
pub(in crate::external) fn image_data(
    mut block: Map<String, Value>,
) -> Result<(String, Option<String>), &'static str> {
    let mut inner = match take(&mut block, "source") {
        Some(Value::Object(source)) => source,
        _ => Map::new(),
    };
    let mut find = |name: &str| match take(&mut block, name) {
        Some(Value::String(text)) => Some(text),
        _ => match take(&mut inner, name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        },
    };
    let data = find("data").filter(|data| !data.trim().is_empty());
    let media_type = find("mimetype").or_else(|| find("mediatype"));
    match (data, find("url")) {
        (Some(data), _) => Ok((data, media_type)),
        (None, Some(_)) => Err(
            "an image block names a URL, which is not fetched; it needs the image itself as base64 in `data`",
        ),
        (None, None) => Err("an image block has no data; it needs the image as base64 in `data`"),
    }
}

/// Finds the key of an object by its name, in any spelling: `mimeType`, `MIMEType`,
/// `mime_type`.
pub(in crate::external) fn field(object: &Map<String, Value>, name: &str) -> Option<String> {
    let is_same = |key: &str| {
        let letters = key.chars().filter(|c| *c != '_');
        letters.map(|c| c.to_ascii_lowercase()).eq(name.chars())
    };
    if object.contains_key(name) {
        return Some(name.to_owned());
    }
    object.keys().find(|key| is_same(key)).cloned()
}

fn take(object: &mut Map<String, Value>, name: &str) -> Option<Value> {
    let key = field(object, name)?;
    object.remove(&key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn a_handshake_is_accepted_in_three_shapes() {
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
    fn an_error_is_recognised_in_every_form() {
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
    fn adjacent_texts_are_joined_and_images_keep_their_place() {
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
        assert_eq!(blocks(content).content, [text("ab"), image, text("c")]);
    }

    #[test]
    fn an_image_is_accepted_in_every_spelling() {
        let image = Content::Image {
            data: "QQ==".into(),
            media_type: "image/gif".into(),
        };
        for block in [
            json!({ "type": "image", "data": "QQ==", "mimeType": "image/gif" }),
            json!({ "type": "image", "data": "QQ==", "media_type": "image/gif" }),
            json!({ "type": "image", "MIMEType": "image/gif", "Data": "QQ==" }),
            json!({ "Type": "image", "MIMEType": "image/gif", "Data": "QQ==" }),
            json!({ "type": "image", "source": { "type": "base64", "media_type": "image/gif", "data": "QQ==" } }),
        ] {
            let message = map(json!({ "content": [block] }));
            let outcome = outcome(&message).unwrap();
            assert_eq!(outcome.content, std::slice::from_ref(&image), "{message:?}");
            assert!(!outcome.is_error, "{message:?}");
        }
        let text = outcome(&map(
            json!({ "content": [{ "Type": "text", "Text": "x" }] }),
        ))
        .unwrap();
        assert_eq!(text.content, [Content::Text { text: "x".into() }]);
    }

    #[test]
    fn an_image_without_data_is_an_error() {
        for block in [
            json!({ "type": "image", "mimeType": "image/png" }),
            json!({ "type": "image", "data": "", "mimeType": "image/png" }),
            json!({ "type": "image", "data": null }),
            json!({ "type": "image", "source": { "type": "base64" } }),
        ] {
            let outcome = outcome(&map(json!({ "content": [block], "error": false }))).unwrap();
            assert!(outcome.is_error);
            let [Content::Text { text }] = outcome.content.as_slice() else {
                panic!("{:?}", outcome.content)
            };
            assert!(text.contains("an image block has no data"), "{text}");
        }
        let url = json!({ "type": "image", "source": { "type": "url", "url": "https://example.com/a.png" } });
        let outcome = outcome(&map(json!({ "content": [url] }))).unwrap();
        assert!(outcome.is_error);
    }

    #[test]
    fn an_image_is_accepted_without_padding_and_as_a_data_url() {
        let png = "iVBORw0KGgo";
        for data in [
            png.to_owned(),
            format!("{png}="),
            format!("data:image/png;base64,{png}"),
            format!("data:image/png;base64,{png}="),
        ] {
            let block = json!({ "type": "image", "data": data });
            let outcome = outcome(&map(json!({ "content": [block] }))).unwrap();
            let image = Content::Image {
                data: format!("{png}="),
                media_type: "image/png".into(),
            };
            assert_eq!(outcome.content, [image], "{data}");
            assert!(!outcome.is_error, "{data}");
        }
    }

    #[test]
    fn a_problem_with_an_image_is_reported_on_its_own_line() {
        let content = json!([
            { "type": "text", "text": "before" },
            { "type": "image", "data": "not base64!" },
            { "type": "text", "text": "after" },
        ]);
        let outcome = outcome(&map(json!({ "content": content }))).unwrap();
        assert!(outcome.is_error);
        let [Content::Text { text }] = outcome.content.as_slice() else {
            panic!("{:?}", outcome.content)
        };
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[2]), ("before", "after"), "{text}");
        assert!(lines[1].contains("cannot be read"), "{text}");
    }

    #[test]
    fn a_description_has_no_hidden_characters() {
        let tool = json!({ "name": "a", "description": "x\u{1b}[2J\u{202e}y\u{200b}" });
        assert_eq!(
            introduction(&map(tool)).unwrap().tools[0].description,
            "x[2Jy"
        );
    }
}
