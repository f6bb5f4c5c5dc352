//! Converts a server's result to a reply.

use haft::{Reply, ResultFit, ResultSchema, foreign_reply};
use serde_json::{Map, Value, json};

/// Converts a result.
pub(super) fn reply(result: &Value) -> Reply {
    let none = Vec::new();
    let content = result["content"].as_array().unwrap_or(&none);
    let mut blocks: Vec<Value> = content.iter().map(block).collect();
    let structured = result
        .get("structuredContent")
        .filter(|value| !value.is_null());
    // A result for programs only is shown to the model as JSON.
    if let (Some(structured), true) = (structured, blocks.is_empty()) {
        blocks.push(text(structured.to_string()));
    }
    let mut message = Map::new();
    message.insert("content".to_owned(), with_line_breaks(blocks).into());
    message.insert("is_error".to_owned(), result["isError"].clone());
    let links: Vec<&Value> = content
        .iter()
        .filter(|block| block["type"] == "resource_link")
        .collect();
    let mut details = Map::new();
    if let Some(structured) = structured {
        details.insert("structured".to_owned(), structured.clone());
    }
    // The model reads them as text, and a client as what they are.
    if !links.is_empty() {
        details.insert("resource_links".to_owned(), json!(links));
    }
    if !details.is_empty() {
        message.insert("details".to_owned(), details.into());
    }
    foreign_reply(message)
}

/// Describes why a structured result does not match the declared schema. Errors are only
/// text, and need not match.
pub(super) fn schema_violation(result: &Value, shape: Option<&ResultSchema>) -> Option<String> {
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
        ResultFit::Good => None,
        ResultFit::Bad(problems) => Some(problems.join("; ")),
        ResultFit::Unchecked => Some(
            "it is too large to check against the tool's outputSchema; request less at a time"
                .to_owned(),
        ),
    }
}

fn text(text: impl Into<String>) -> Value {
    json!({ "type": "text", "text": text.into() })
}

/// Adds line breaks between consecutive texts, which a reply joins.
fn with_line_breaks(blocks: Vec<Value>) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    let text_of = |block: &Value| block["text"].as_str().map(str::to_owned);
    for block in blocks {
        if let (Some(before), Some(_)) = (all.last().and_then(text_of), text_of(&block))
            && !before.ends_with('\n')
        {
            all.push(text("\n"));
        }
        all.push(block);
    }
    all
}

/// Converts one block to a text or an image.
fn block(block: &Value) -> Value {
    let string = |name: &str| block[name].as_str().unwrap_or_default();
    match string("type") {
        "text" => text(string("text")),
        "image" => block.clone(),
        "audio" => {
            let kind = string("mimeType");
            text(format!(
                "[audio omitted: {}, {} bytes]",
                media_type(kind),
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
    if let Some(content) = resource["text"].as_str() {
        return text(format!("[{uri}]\n{content}"));
    }
    if kind.starts_with("image/") {
        return json!({ "type": "image", "data": string("blob"), "mimeType": kind });
    }
    text(format!(
        "[{uri} omitted: {}, {} bytes]",
        media_type(kind),
        bytes(string("blob"))
    ))
}

/// Returns the number of bytes that base64 data encodes.
fn bytes(data: &str) -> usize {
    data.trim_end_matches('=').len() * 3 / 4
}

fn media_type(kind: &str) -> String {
    if kind.is_empty() {
        return "unknown type".to_owned();
    }
    kind.escape_debug().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_block_becomes_text_or_an_image() {
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
            "one\ntwo\n[audio omitted: audio/wav, 3 bytes]\n[a://b]\ninside\n[a://c omitted: application/pdf, 3 bytes]\n[n a://d: about]\n{\"type\":\"new\",\"x\":1}"
        );
        assert_eq!(reply.details()["structured"]["a"], 1);
        assert_eq!(reply.details()["resource_links"][0]["uri"], "a://d");
    }

    #[test]
    fn a_structured_result_that_cannot_be_checked_is_an_error() {
        let options: Vec<Value> = (0..1_000).map(|n| json!({ "const": n })).collect();
        let list = json!({ "type": "array", "items": { "anyOf": options } });
        let schema = json!({ "type": "object", "properties": { "list": list } });
        let shape = ResultSchema::new("t", &schema).unwrap();
        let check = |many: usize| {
            let result = json!({ "structuredContent": { "list": vec![7; many] } });
            schema_violation(&result, Some(&shape))
        };
        assert_eq!(check(10), None);
        let why = check(50_000).unwrap();
        assert!(why.contains("too large to check"), "{why}");
    }

    #[test]
    fn a_result_without_the_declared_structured_content_is_an_error() {
        let schema = json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } });
        let shape = ResultSchema::new("add", &schema).unwrap();
        let text = json!([{ "type": "text", "text": "3" }]);
        for (result, expected) in [
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
            assert_eq!(
                schema_violation(&result, Some(&shape)).as_deref(),
                expected,
                "{result}"
            );
            assert_eq!(schema_violation(&result, None), None, "{result}");
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
    fn a_result_with_only_structured_content_is_shown_as_text() {
        let only = reply(&json!({ "content": [], "structuredContent": { "a": 1 } }));
        assert_eq!(only.text(), "{\"a\":1}");
        assert!(reply(&json!({})).text().is_empty());
    }
}
