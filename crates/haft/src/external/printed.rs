//! Images in the output of a program: output that is a list of content blocks, as in the
//! result of a plugin.
//!
//! Programs print JSON for many reasons, so the output only counts if it cannot mean
//! anything else: all of it is one value, every block is a text or an image, and at least
//! one is an image with data and an image type.

use super::plugin::{Outcome, image_data};
use super::plugin::{field, taken};
use haft_ops::executor::Captured;
use haft_ops::text::size::size as format_size;
use serde_json::{Map, Value};

/// Keys that a result may have.
const RESULT_KEYS: [&str; 5] = ["content", "error", "is_error", "isError", "details"];

/// Parses the output of a program as content blocks; `None` for any other output.
pub(super) fn outcome(output: &Captured) -> Option<Outcome> {
    if output.missing() > 0 {
        return None;
    }
    let bytes = [output.head.as_slice(), &output.tail].concat();
    let text = std::str::from_utf8(&bytes).ok()?.trim();
    // Checked first because most output is not JSON, and parsing takes time.
    if !text.starts_with(['[', '{']) || !text.contains("image") {
        return None;
    }
    let message = match serde_json::from_str(text).ok()? {
        list @ Value::Array(_) => Map::from_iter([("content".to_owned(), list)]),
        Value::Object(message) if message.iter().all(is_known) => message,
        _ => return None,
    };
    let mut has_picture = false;
    for block in message.get("content")?.as_array()? {
        has_picture |= is_picture(block)?;
    }
    if has_picture { taken(message) } else { None }
}

/// Minimum length of Base64 text that counts as data.
const DATA: usize = 512;

/// Removes the data of an image from output that is not valid content blocks, so that the
/// model does not read the data as text. `None` if there is no such data. `shown` is the
/// part of the output in the reply.
pub(super) fn without_data(output: &Captured, shown: &str) -> Option<String> {
    let is_marked = |bytes: &[u8]| memchr::memmem::find(bytes, b"\"image").is_some();
    if !is_marked(&output.head) && !is_marked(&output.tail) {
        return None;
    }
    let is_data = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '-' | '_');
    let (mut out, mut rest, mut found) = (String::new(), shown, false);
    while !rest.is_empty() {
        let after = rest.trim_start_matches(is_data);
        let run = rest.strip_suffix(after).unwrap_or_default();
        if run.len() >= DATA {
            found = true;
            out.push_str(&format!("[{} of base64]", format_size(run.len() as u64)));
        } else {
            out.push_str(run);
        }
        let next = after.trim_start_matches(|c| !is_data(c));
        out.push_str(after.strip_suffix(next).unwrap_or_default());
        rest = next;
    }
    found.then_some(out)
}

fn is_known((name, value): (&String, &Value)) -> bool {
    RESULT_KEYS.contains(&name.as_str()) || name == "type" && value == "result"
}

/// Whether a block is an image; `None` if it is neither an image nor a text.
fn is_picture(block: &Value) -> Option<bool> {
    let block = block.as_object()?;
    let get = |name: &str| block.get(&field(block, name)?);
    match get("type")?.as_str()? {
        "text" => get("text")?.is_string().then_some(false),
        "image" => {
            let (data, media_type) = image_data(block.clone()).ok()?;
            let has_type = match media_type {
                Some(media_type) => media_type.starts_with("image/"),
                None => data.trim_start().starts_with("data:image/"),
            };
            has_type.then_some(true)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Content;
    use serde_json::json;

    fn captured(text: &str) -> Captured {
        Captured {
            head: text.as_bytes().to_vec(),
            tail: Vec::new(),
            total_bytes: text.len() as u64,
            total_lines: 1,
            spill: None,
            omitted: 0,
            trouble: None,
        }
    }

    fn read(value: &Value) -> Option<Outcome> {
        outcome(&captured(&format!("{value:#}\n")))
    }

    fn picture() -> Value {
        json!({ "type": "image", "data": "QQ==", "mimeType": "image/png" })
    }

    #[test]
    fn an_image_is_found_in_every_form_of_a_result() {
        let text = json!({ "type": "text", "text": "A chart." });
        let source = json!({ "type": "base64", "media_type": "image/png", "data": "QQ==" });
        let expected = [
            Content::Text {
                text: "A chart.".into(),
            },
            Content::Image {
                data: "QQ==".into(),
                media_type: "image/png".into(),
            },
        ];
        for printed in [
            json!([text, picture()]),
            json!({ "content": [text, picture()] }),
            json!({ "type": "result", "content": [text, picture()], "error": false }),
            json!([text, { "Type": "image", "MIMEType": "image/png", "Data": "QQ==" }]),
            json!([text, { "type": "image", "source": source }]),
            json!([text, { "type": "image", "data": "data:image/png;base64,QQ==" }]),
        ] {
            let outcome = read(&printed).unwrap_or_else(|| panic!("{printed}"));
            assert_eq!(outcome.content, expected, "{printed}");
            assert!(!outcome.is_error, "{printed}");
        }
        let failed = json!({ "content": [picture()], "error": true });
        assert!(read(&failed).unwrap().is_error);
    }

    #[test]
    fn other_json_is_unchanged() {
        let text = json!({ "type": "text", "text": "image" });
        for printed in [
            json!({}),
            json!([]),
            json!([text]),
            json!({ "content": [text] }),
            json!({ "content": picture() }),
            // A list of files, and documents of other programs.
            json!([{ "type": "image", "name": "a.png", "size": 3 }]),
            json!([{ "type": "image", "data": "a.png" }]),
            json!([{ "type": "image", "data": "a", "mimeType": "text/plain" }]),
            json!([{ "type": "image", "url": "https://example.com/a.png" }]),
            json!([picture(), { "type": "folder", "name": "b" }]),
            json!([picture(), "text"]),
            json!({ "id": "msg_1", "role": "assistant", "content": [picture()] }),
            json!({ "type": "doc", "content": [picture()] }),
            json!({ "results": [picture()] }),
        ] {
            assert_eq!(read(&printed), None, "{printed}");
        }
        let value = json!([picture()]).to_string();
        for printed in [format!("log\n{value}"), format!("{value}\n{value}")] {
            assert_eq!(outcome(&captured(&printed)), None, "{printed}");
        }
        // The output is incomplete.
        let mut cut = captured(&value);
        cut.total_bytes += 1;
        assert_eq!(outcome(&cut), None);
    }
}
