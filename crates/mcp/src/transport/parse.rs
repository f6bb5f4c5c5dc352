//! From text to a JSON value. Where a name stands twice in an object the last one
//! would win in silence. In the arguments of a call that is a mistake which the caller
//! has to hear of, so such arguments stay the text that came: whoever takes the call
//! reads it as it reads text, and says what is wrong with it.

use super::decode::Refusal;
use haft::json::{self, Shape};
use rmcp::model::ErrorCode;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

/// A message, or an array of them.
pub(crate) struct Parsed {
    pub(crate) value: Value,
    /// What it costs to hold, in bytes: its text and its values.
    pub(crate) cost: usize,
}

/// A text that was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It is not JSON.
    NoJson(serde_json::Error),
    /// It has too much of something.
    TooMuch(&'static str),
}

impl From<serde_json::Error> for Unread {
    fn from(error: serde_json::Error) -> Self {
        Self::NoJson(error)
    }
}

impl Unread {
    /// What is answered to it.
    pub(crate) fn refusal(&self) -> Refusal {
        match self {
            Self::NoJson(error) => {
                Refusal::new(ErrorCode::PARSE_ERROR, format!("parse error: {error}"))
            }
            Self::TooMuch(why) => Refusal::new(
                ErrorCode::INVALID_REQUEST,
                format!(
                    "message too large: it has {why}; send less at once, or large data as one string"
                ),
            ),
        }
    }
}

/// Parses a message, or an array of them. What would cost too much is not read at all.
pub(crate) fn parse(text: &[u8]) -> Result<Parsed, Unread> {
    let shape = Shape::of(text);
    if let Some(why) = shape.excess() {
        // Who sent something that is no JSON has to know that first.
        serde_json::from_slice::<IgnoredAny>(text)?;
        return Err(Unread::TooMuch(why));
    }
    let (mut value, is_repeated) = json::parse_noting(text)?;
    if is_repeated {
        match &mut value {
            Value::Array(messages) => {
                let texts: Vec<&RawValue> = serde_json::from_slice(text)?;
                for (message, text) in messages.iter_mut().zip(texts) {
                    keep_text(text.get().as_bytes(), message);
                }
            }
            message => keep_text(text, message),
        }
    }
    Ok(Parsed {
        value,
        cost: text.len() + shape.memory(),
    })
}

/// Puts the text of the arguments where they are, if a name stands twice in them.
fn keep_text(text: &[u8], message: &mut Value) {
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
    fn arguments_with_a_name_that_stands_twice_stay_text() {
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
    fn what_costs_too_much_is_not_read() {
        let many = "1,".repeat(160_000);
        let call = |arguments: &str| {
            format!(r#"{{"method":"tools/call","params":{{"arguments":{arguments}}},"id":1}}"#)
        };
        let read = |text: &str| parse(text.as_bytes());
        assert!(matches!(
            read(&call(&format!("[{many}1]"))),
            Err(Unread::TooMuch(_))
        ));
        assert!(matches!(
            read(&call(&format!("[{many}"))),
            Err(Unread::NoJson(_))
        ));
        // As text it is one value, and a long one is not dear.
        let text = Value::from(many).to_string();
        let whole = call(&format!("{{\"content\":{text}}}"));
        let parsed = read(&whole).expect("it is read");
        assert!(parsed.cost < whole.len() + 10_000, "{}", parsed.cost);
        let dear = read(&call(&format!("[{}1]", "1,".repeat(100_000)))).expect("it is read");
        assert!(dear.cost > 5_000_000, "{}", dear.cost);
    }

    #[test]
    fn elsewhere_the_last_one_counts() {
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
