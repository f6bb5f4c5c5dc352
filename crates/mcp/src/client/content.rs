//! What a server answered, as a reply of a tool.

use haft::plugin_protocol::outcome;
use haft::{Fit, Reply, Shape};
use serde_json::{Map, Value, json};

/// The reply that a result is.
pub(super) fn reply(result: &Value) -> Reply {
    let none = Vec::new();
    let content = result["content"].as_array().unwrap_or(&none);
    let mut blocks: Vec<Value> = content.iter().map(block).collect();
    let structured = result
        .get("structuredContent")
        .filter(|value| !value.is_null());
    // Those that only speak to programs speak to the model, too.
    if let (Some(structured), true) = (structured, blocks.is_empty()) {
        blocks.push(text(structured.to_string()));
    }
    let mut message = Map::new();
    message.insert("content".to_owned(), separated(blocks).into());
    message.insert("is_error".to_owned(), result["isError"].clone());
    if let Some(structured) = structured {
        message.insert("details".to_owned(), json!({ "structured": structured }));
    }
    outcome(&message).map(Reply::from).unwrap_or_default()
}

/// What is wrong with a structured result, where the server has declared what those look
/// like. A failure is words, and need not look like anything.
pub(super) fn misfit(result: &Value, shape: Option<&Shape>) -> Option<String> {
    let shape = shape?;
    if result["isError"] == true {
        return None;
    }
    let structured = match result.get("structuredContent") {
        None => return Some("structuredContent is missing".to_owned()),
        Some(Value::Null) => return Some("structuredContent is null".to_owned()),
        Some(structured) => structured,
    };
    match shape.check(structured) {
        Fit::Good => None,
        Fit::Bad(problems) => Some(problems.join("; ")),
        Fit::Unchecked => Some(
            "it is too large to be checked against the tool's outputSchema; ask for less at a time"
                .to_owned(),
        ),
    }
}

fn text(text: impl Into<String>) -> Value {
    json!({ "type": "text", "text": text.into() })
}

/// Texts that follow each other are one in a reply; here each begins on a line of its
/// own.
fn separated(blocks: Vec<Value>) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    let words = |block: &Value| block["text"].as_str().map(str::to_owned);
    for block in blocks {
        if let (Some(before), Some(_)) = (all.last().and_then(words), words(&block))
            && !before.ends_with('\n')
        {
            all.push(text("\n"));
        }
        all.push(block);
    }
    all
}

/// One block of a result, as a text or an image.
fn block(block: &Value) -> Value {
    let string = |name: &str| block[name].as_str().unwrap_or_default();
    match string("type") {
        "text" => text(string("text")),
        "image" => block.clone(),
        "audio" => {
            let kind = string("mimeType");
            text(format!(
                "[audio of type {}, {} bytes, is left out]",
                plain(kind),
                bytes(string("data"))
            ))
        }
        "resource" => resource(&block["resource"]),
        "resource_link" => {
            let about: String = [string("title"), string("description")]
                .into_iter()
                .filter(|about| !about.is_empty())
                .map(|about| format!(": {about}"))
                .collect();
            text(format!("[{} {}{about}]", string("name"), string("uri")))
        }
        _ => text(block.to_string()),
    }
}

fn resource(resource: &Value) -> Value {
    let string = |name: &str| resource[name].as_str().unwrap_or_default();
    let (uri, kind) = (string("uri"), string("mimeType"));
    if let Some(words) = resource["text"].as_str() {
        return text(format!("[{uri}]\n{words}"));
    }
    if kind.starts_with("image/") {
        return json!({ "type": "image", "data": string("blob"), "mimeType": kind });
    }
    text(format!(
        "[{uri}: {}, {} bytes, is left out]",
        plain(kind),
        bytes(string("blob"))
    ))
}

/// How many bytes something in base 64 is.
fn bytes(data: &str) -> usize {
    data.trim_end_matches('=').len() * 3 / 4
}

fn plain(kind: &str) -> String {
    if kind.is_empty() {
        return "unknown type".to_owned();
    }
    kind.escape_debug().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_block_is_something_a_model_can_take() {
        let result = json!({
            "content": [
                { "type": "text", "text": "one" },
                { "type": "text", "text": "two" },
                { "type": "image", "data": "QQ==", "mimeType": "image/png" },
                { "type": "audio", "data": "QUJD", "mimeType": "audio/wav" },
                { "type": "resource", "resource": { "uri": "a://b", "text": "inside" } },
                { "type": "resource", "resource": { "uri": "a://c", "mimeType": "application/pdf", "blob": "QUJD" } },
                { "type": "resource_link", "name": "n", "uri": "a://d", "description": "about" },
                { "type": "new", "x": 1 },
            ],
            "structuredContent": { "a": 1 },
            "isError": true,
        });
        let reply = reply(&result);
        assert!(reply.is_error());
        assert_eq!(
            reply.text(),
            "one\ntwo\n[audio of type audio/wav, 3 bytes, is left out]\n[a://b]\ninside\n[a://c: application/pdf, 3 bytes, is left out]\n[n a://d: about]\n{\"type\":\"new\",\"x\":1}"
        );
        assert_eq!(reply.details()["structured"]["a"], 1);
    }

    #[test]
    fn a_structured_result_that_cannot_be_checked_is_a_misfit() {
        let fields: Map<String, Value> = (0..1_000)
            .map(|n| (format!("field_{n}"), json!({ "type": "string" })))
            .collect();
        let schema = json!({ "type": "object", "properties": fields });
        let shape = Shape::new("t", &schema).unwrap();
        let of = |many: usize| {
            let result = json!({ "structuredContent": { "more": vec![Value::Null; many] } });
            misfit(&result, Some(&shape))
        };
        assert_eq!(of(10), None);
        let why = of(50_000).unwrap();
        assert!(why.contains("too large to be checked"), "{why}");
    }

    #[test]
    fn a_result_without_what_the_output_schema_promises_is_a_violation() {
        let schema = json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } });
        let shape = Shape::new("add", &schema).unwrap();
        let text = json!([{ "type": "text", "text": "3" }]);
        for (result, wanted) in [
            (
                json!({ "content": text }),
                Some("structuredContent is missing"),
            ),
            (
                json!({ "content": text, "structuredContent": null }),
                Some("structuredContent is null"),
            ),
            (json!({ "content": text, "isError": true }), None),
            (
                json!({ "content": text, "structuredContent": { "a": 3 } }),
                None,
            ),
        ] {
            assert_eq!(misfit(&result, Some(&shape)).as_deref(), wanted, "{result}");
            assert_eq!(misfit(&result, None), None, "{result}");
        }
    }

    #[test]
    fn an_image_without_data_is_an_error() {
        let result = json!({ "content": [{ "type": "image", "mimeType": "image/png" }] });
        assert!(reply(&result).is_error());
        let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
        for block in [
            json!({ "type": "image", "MIMEType": "image/png", "Data": png }),
            json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": png } }),
        ] {
            let reply = reply(&json!({ "content": [block] }));
            assert!(!reply.is_error());
            assert!(
                matches!(reply.content(), [haft::Content::Image { .. }]),
                "{reply:?}"
            );
        }
    }

    #[test]
    fn a_result_for_programs_alone_is_text_as_well() {
        let only = reply(&json!({ "content": [], "structuredContent": { "a": 1 } }));
        assert_eq!(only.text(), "{\"a\":1}");
        assert!(reply(&json!({})).text().is_empty());
    }
}
