//! From text to a JSON value. Where a name stands twice in an object the last one
//! would win in silence. In the arguments of a call that is a mistake which the caller
//! has to hear of, so such arguments stay the text that came: whoever takes the call
//! reads it as it reads text, and says what is wrong with it.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::cell::Cell;
use std::fmt;

/// Parses a message, or an array of them.
pub(crate) fn parse(text: &[u8]) -> serde_json::Result<Value> {
    let repeated = Cell::new(false);
    let mut json = serde_json::Deserializer::from_slice(text);
    let mut value = Noting(&repeated).deserialize(&mut json)?;
    json.end()?;
    if repeated.get() {
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
    Ok(value)
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

/// Builds a value, and notes that a name stood twice in an object of it.
#[derive(Clone, Copy)]
struct Noting<'a>(&'a Cell<bool>);

impl<'de> DeserializeSeed<'de> for Noting<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Noting<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(self)?;
            match object.entry(name) {
                Entry::Vacant(place) => {
                    place.insert(value);
                }
                Entry::Occupied(mut place) => {
                    self.0.set(true);
                    place.insert(value);
                }
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(call: &str) -> Value {
        let value = parse(call.as_bytes()).expect("it is JSON");
        value["params"]["arguments"].clone()
    }

    #[test]
    fn a_value_is_the_one_that_the_library_builds() {
        for text in [
            "null",
            "[1, -2, 3.5, 1e400, 18446744073709551615, true, \"a\\u00e9\"]",
            "{\"a\":{\"b\":[{}]},\"c\":\"\"}",
            "{\"id\":1,\"id\":2}",
            "{\"a\":1} x",
            "{\"a\"",
        ] {
            let expected: Option<Value> = serde_json::from_str(text).ok();
            assert_eq!(parse(text.as_bytes()).ok(), expected, "{text}");
        }
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
            assert_eq!(batch[1]["params"]["arguments"], written);
        }
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
