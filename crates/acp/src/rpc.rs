//! JSON-RPC 2.0: one message per line.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// Codes of errors.
pub(crate) mod code {
    pub(crate) const PARSE: i32 = -32700;
    pub(crate) const INVALID_REQUEST: i32 = -32600;
    pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
    pub(crate) const INVALID_PARAMS: i32 = -32602;
    pub(crate) const INTERNAL: i32 = -32603;
    pub(crate) const AUTH_REQUIRED: i32 = -32000;
    pub(crate) const NOT_FOUND: i32 = -32002;
}

/// Byte order mark that some programs put at the start of a text.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// An error in an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i32,
    pub(crate) message: String,
}

impl RpcError {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }
}

/// A message from the client.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    Response {
        id: Value,
        result: Result<Value, RpcError>,
    },
    /// Not a message. The value is the answer.
    Invalid(Value),
    /// An empty line.
    Nothing,
}

/// Reads one line.
pub(crate) fn decode(line: &[u8]) -> Message {
    let text = line.strip_prefix(BOM).unwrap_or(line).trim_ascii();
    if text.is_empty() {
        return Message::Nothing;
    }
    let invalid = |id: Value, code, message: &str| {
        Message::Invalid(answer(id, Err(RpcError::new(code, message))))
    };
    let parsed = serde_json::from_slice::<Value>(text)
        .or_else(|error| serde_json::from_slice(&repaired(text)).map_err(|_| error));
    let value = match parsed {
        Ok(value) => value,
        Err(error) => return unreadable(text, &error),
    };
    let Value::Object(mut fields) = value else {
        let what = match value {
            Value::Array(_) => "the Agent Client Protocol has no batches",
            _ => "a message is a JSON object",
        };
        return invalid(Value::Null, code::INVALID_REQUEST, what);
    };
    let id = fields.remove("id");
    let is_usable = |id: &Value| matches!(id, Value::Null | Value::String(_) | Value::Number(_));
    if id.as_ref().is_some_and(|id| !is_usable(id)) {
        let what = "an id is a number or a string";
        return invalid(Value::Null, code::INVALID_REQUEST, what);
    }
    if fields.get("jsonrpc") != Some(&json!("2.0")) {
        let what = "a message needs \"jsonrpc\": \"2.0\"";
        return invalid(id.unwrap_or_default(), code::INVALID_REQUEST, what);
    }
    match (fields.remove("method"), id) {
        (Some(Value::String(method)), id) => {
            let params = fields.remove("params").unwrap_or_default();
            match id {
                Some(id) => Message::Request { id, method, params },
                None => Message::Notification { method, params },
            }
        }
        (Some(_), id) => {
            let what = "method must be a string";
            invalid(id.unwrap_or_default(), code::INVALID_REQUEST, what)
        }
        (None, Some(id)) => match (fields.remove("result"), fields.remove("error")) {
            (_, Some(error)) if !error.is_null() => {
                let code = error["code"].as_i64().and_then(|code| code.try_into().ok());
                let message = error["message"].as_str().unwrap_or("an error");
                let error = RpcError::new(code.unwrap_or(code::INTERNAL), message);
                Message::Response {
                    id,
                    result: Err(error),
                }
            }
            (Some(result), _) => Message::Response {
                id,
                result: Ok(result),
            },
            _ => invalid(id, code::INVALID_REQUEST, "neither a request nor an answer"),
        },
        (None, None) => invalid(
            Value::Null,
            code::INVALID_REQUEST,
            "neither a request nor an answer",
        ),
    }
}

/// Replaces what is not Unicode with U+FFFD. Clients write half of a surrogate pair when they
/// cut a text inside an emoji.
fn repaired(line: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(line);
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let length = match (first, surrogate(rest), rest.get(6..).and_then(surrogate)) {
            (_, Some(Half::High), Some(Half::Low)) => 12,
            (_, Some(_), _) => {
                out.extend(b"\\ufffd");
                rest = rest.get(6..).unwrap_or_default();
                continue;
            }
            // An escaped backslash does not start another escape.
            (b'\\', None, _) if !after.is_empty() => 2,
            _ => 1,
        };
        let (copied, left) = rest.split_at(length.min(rest.len()));
        out.extend(copied);
        rest = left;
    }
    out
}

/// Half of a surrogate pair.
enum Half {
    High,
    Low,
}

/// Returns which half of a surrogate pair an escape at the start stands for, if any.
fn surrogate(text: &[u8]) -> Option<Half> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let unit = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    match unit {
        0xd800..=0xdbff => Some(Half::High),
        0xdc00..=0xdfff => Some(Half::Low),
        _ => None,
    }
}

/// Handles a line that cannot be read, such as one that is nested too deeply. A request gets an
/// answer with its id, because the client waits for one.
fn unreadable(line: &[u8], error: &serde_json::Error) -> Message {
    #[derive(Deserialize)]
    struct Envelope {
        id: Option<Value>,
        method: Option<IgnoredAny>,
    }
    let envelope = serde_json::from_slice::<Envelope>(line).ok();
    let id = envelope.as_ref().and_then(|found| found.id.clone());
    let id = id.filter(|id| matches!(id, Value::String(_) | Value::Number(_)));
    let error = RpcError::new(code::PARSE, format!("cannot read the message: {error}"));
    match (envelope, id) {
        (Some(Envelope { method: None, .. }), Some(id)) => Message::Response {
            id,
            result: Err(error),
        },
        (_, id) => Message::Invalid(answer(id.unwrap_or_default(), Err(error))),
    }
}

/// Creates the answer to a request.
pub(crate) fn answer(id: Value, result: Result<Value, RpcError>) -> Value {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({
            "jsonrpc": "2.0",
            "id": id,
            "error": { "code": error.code, "message": error.message },
        }),
    }
}

/// Creates a request to the client.
pub(crate) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Creates a notification to the client.
pub(crate) fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_requests_notifications_and_answers() {
        let request = decode(br#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"b":1}}"#);
        let expected = Message::Request {
            id: json!(1),
            method: "a".to_owned(),
            params: json!({ "b": 1 }),
        };
        assert_eq!(request, expected);
        assert!(matches!(
            decode(b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\r"),
            Message::Notification { .. }
        ));
        assert_eq!(decode(b" \r"), Message::Nothing);
        let refused = br#"{"jsonrpc":"2.0","id":"x","error":{"code":-1,"message":"no"}}"#;
        assert_eq!(
            decode(refused),
            Message::Response {
                id: json!("x"),
                result: Err(RpcError::new(-1, "no")),
            }
        );
    }

    #[test]
    fn half_a_surrogate_pair_becomes_a_replacement_character() {
        for (text, expected) in [
            (r"cut \ud83d", "cut \u{fffd}"),
            (r"\ud83d\ud83d\ude00 x", "\u{fffd}\u{1f600} x"),
            (r"\ude00\n", "\u{fffd}\n"),
            (r"\\ud83d \ud83d", "\\ud83d \u{fffd}"),
        ] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":"p1","method":"a","params":"{text}"}}"#);
            let Message::Request { id, params, .. } = decode(line.as_bytes()) else {
                panic!("{line}");
            };
            assert_eq!((id, params), (json!("p1"), json!(expected)), "{text}");
        }
    }

    #[test]
    fn a_request_that_cannot_be_read_is_answered_with_its_id() {
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        for params in [deep.as_str(), "1e400"] {
            let line = format!(r#"{{"jsonrpc":"2.0","method":"a","params":{params},"id":"p1"}}"#);
            let Message::Invalid(answer) = decode(line.as_bytes()) else {
                panic!("{line}");
            };
            assert_eq!(answer["id"], "p1");
            assert_eq!(answer["error"]["code"], code::PARSE);
            // An answer gets no answer.
            let line = format!(r#"{{"jsonrpc":"2.0","result":{params},"id":3}}"#);
            let Message::Response { id, result } = decode(line.as_bytes()) else {
                panic!("{line}");
            };
            assert_eq!((id, result.is_err()), (json!(3), true));
        }
    }

    #[test]
    fn anything_else_is_answered_with_an_error() {
        for (line, id, code) in [
            (&b"garbage"[..], Value::Null, code::PARSE),
            (b"[1]", Value::Null, code::INVALID_REQUEST),
            (b"7", Value::Null, code::INVALID_REQUEST),
            (b"\xff\xfe", Value::Null, code::PARSE),
            (br#"{"id":4,"method":"a"}"#, json!(4), code::INVALID_REQUEST),
            (
                br#"{"jsonrpc":"2.0","id":[],"method":"a"}"#,
                Value::Null,
                code::INVALID_REQUEST,
            ),
            (
                br#"{"jsonrpc":"2.0","id":4,"method":7}"#,
                json!(4),
                code::INVALID_REQUEST,
            ),
            (br#"{"jsonrpc":"2.0"}"#, Value::Null, code::INVALID_REQUEST),
        ] {
            let Message::Invalid(answer) = decode(line) else {
                panic!("{}", String::from_utf8_lossy(line));
            };
            assert_eq!(
                (&answer["id"], &answer["error"]["code"]),
                (&id, &json!(code))
            );
        }
    }
}
