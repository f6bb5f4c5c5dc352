//! Parses text to a JSON value. serde_json keeps only the last of several members with the
//! same name. In the arguments of a call that is a mistake the caller has to hear of, so
//! such arguments are kept as the original text: the runtime parses text arguments itself,
//! and reports the repeated name.

use super::decode::ErrorReply;
use haft::json::{self, Shape};
use rmcp::model::ErrorCode;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

/// A message, or an array of them.
pub(crate) struct Parsed {
    pub(crate) value: Value,
    /// Memory that the value needs, in bytes, including its text.
    pub(crate) cost: usize,
}

/// Reason why a message was not parsed.
#[derive(Debug)]
pub(crate) enum ParseError {
    /// The text is not valid JSON.
    NotJson(serde_json::Error),
    /// Too many values or too deeply nested.
    TooLarge(&'static str),
}

impl From<serde_json::Error> for ParseError {
    fn from(error: serde_json::Error) -> Self {
        Self::NotJson(error)
    }
}

impl ParseError {
    /// Returns the error reply.
    pub(crate) fn reply(&self) -> ErrorReply {
        match self {
            Self::NotJson(error) => {
                ErrorReply::new(ErrorCode::PARSE_ERROR, format!("parse error: {error}"))
            }
            Self::TooLarge(why) => ErrorReply::new(
                ErrorCode::INVALID_REQUEST,
                format!(
                    "message too large: it has {why}; send less at once, or large data as one string"
                ),
            ),
        }
    }
}

/// Parses a message or an array of messages. A text that would need too much memory is
/// rejected before parsing.
pub(crate) fn parse(text: &[u8]) -> Result<Parsed, ParseError> {
    let shape = Shape::of(text);
    if let Some(why) = shape.excess() {
        // A syntax error is more important to the sender than the size.
        serde_json::from_slice::<IgnoredAny>(text)?;
        return Err(ParseError::TooLarge(why));
    }
    let (mut value, is_repeated) = json::parse_noting(text)?;
    if is_repeated {
        match &mut value {
            Value::Array(messages) => {
                let texts: Vec<&RawValue> = serde_json::from_slice(text)?;
                for (message, text) in messages.iter_mut().zip(texts) {
                    keep_argument_text(text.get().as_bytes(), message);
                }
            }
            message => keep_argument_text(text, message),
        }
    }
    Ok(Parsed {
        value,
        cost: text.len() + shape.memory(),
    })
}

/// Replaces arguments with their text if a name is repeated in them.
fn keep_argument_text(text: &[u8], message: &mut Value) {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        params: Params<'a>,
    }
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        arguments: &'a RawValue,
    }
    if message.get("method").and_then(Value::as_str) == Some("tools/call")
        && let Ok(Message { params }) = serde_json::from_slice(text)
        && let written = params.arguments.get()
        && haft::parse_arguments(written).is_err()
        && let Some(arguments) = message.pointer_mut("/params/arguments")
    {
        *arguments = Value::String(written.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(call: &str) -> Value {
        let parsed = parse(call.as_bytes()).expect("it is JSON");
        parsed.value["params"]["arguments"].clone()
    }

    #[test]
    fn arguments_with_a_repeated_name_stay_text() {
        for written in [
            r#"{"path":"a", "path":"b"}"#,
            r#"{"edits":[{"old":"a","old":"b"}]}"#,
        ] {
            let call = format!(r#"{{"method":"tools/call","params":{{"arguments":{written}}}}}"#);
            assert_eq!(arguments(&call), written);
            let batch = parse(format!("[{{}},{call}]").as_bytes()).expect("it is JSON");
            assert_eq!(batch.value[1]["params"]["arguments"], written);
        }
    }

    #[test]
    fn a_value_that_needs_too_much_memory_is_not_parsed() {
        let many = "1,".repeat(160_000);
        let call = |arguments: &str| {
            format!(r#"{{"method":"tools/call","params":{{"arguments":{arguments}}},"id":1}}"#)
        };
        let read = |text: &str| parse(text.as_bytes());
        assert!(matches!(
            read(&call(&format!("[{many}1]"))),
            Err(ParseError::TooLarge(_))
        ));
        assert!(matches!(
            read(&call(&format!("[{many}"))),
            Err(ParseError::NotJson(_))
        ));
        // One long string is a single value, and cheap.
        let text = Value::from(many).to_string();
        let whole = call(&format!("{{\"content\":{text}}}"));
        let parsed = read(&whole).expect("it is read");
        assert!(parsed.cost < whole.len() + 10_000, "{}", parsed.cost);
        let expensive = read(&call(&format!("[{}1]", "1,".repeat(100_000)))).expect("it is read");
        assert!(expensive.cost > 5_000_000, "{}", expensive.cost);
    }

    #[test]
    fn elsewhere_the_last_of_several_members_counts() {
        for text in [
            r#"{"id":1,"id":2,"method":"tools/call","params":{"arguments":{"path":"a"}}}"#,
            r#"{"method":"tools/call","params":{"_meta":{"x":1,"x":2},"arguments":{"path":"a"}}}"#,
        ] {
            assert_eq!(arguments(text), serde_json::json!({ "path": "a" }));
        }
        let other = r#"{"method":"x","params":{"arguments":{"path":"a","path":"b"}}}"#;
        assert_eq!(arguments(other), serde_json::json!({ "path": "b" }));
    }
}
