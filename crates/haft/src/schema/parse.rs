//! JSON as models write it.

use crate::{Invalid, Problem};
use serde::Deserialize;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// Parses the arguments of a call from text. Nothing at all is an empty object.
/// What can only be meant in one way is repaired: a code fence around it, a
/// comma before a closing bracket, a line break inside a string.
///
/// # Errors
/// When it is not JSON, with the place where it stops to be, or when a name
/// stands twice in one object.
pub fn parse_arguments(text: &str) -> Result<Value, Invalid> {
    parse(text).map(|(value, _)| value)
}

/// The same, and what was repaired.
pub(super) fn parse(text: &str) -> Result<(Value, Option<&'static str>), Invalid> {
    let trimmed = text.trim_start_matches('\u{feff}').trim();
    let text = unfenced(trimmed);
    let fence =
        (text.len() < trimmed.len()).then_some("a code fence around the arguments was dropped");
    if text.is_empty() {
        return Ok((Value::Object(serde_json::Map::new()), None));
    }
    let first = match serde_json::from_str::<Unique>(text) {
        Ok(Unique(Value::Null)) => return Ok((Value::Object(serde_json::Map::new()), None)),
        // A string that holds JSON again: some models encode twice.
        Ok(Unique(Value::String(inner))) if inner.trim_start().starts_with('{') => {
            let Unique(value) = serde_json::from_str(&inner).map_err(|error| invalid(&error))?;
            return Ok((value, Some("the arguments were encoded twice")));
        }
        Ok(Unique(value)) => return Ok((value, fence)),
        Err(error) => error,
    };
    let Unique(value) = serde_json::from_str(&mended(text)).map_err(|_| invalid(&first))?;
    Ok((
        value,
        Some("the JSON was mended: stray commas or line breaks"),
    ))
}

/// JSON in which no name stands twice in one object: the last one would win,
/// and nobody can know that it was meant.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(Self)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
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
        while let Some(Unique(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = serde_json::Map::new();
        while let Some((name, Unique(value))) = entries.next_entry::<String, Unique>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom(format!("\"{name}\" is given twice")));
            }
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

pub(super) fn not_an_object(value: &Value) -> Invalid {
    let got = super::validate::kind_of(value);
    Invalid {
        problems: vec![Problem::Other(format!(
            "the arguments must be an object, got {got}"
        ))],
    }
}

fn invalid(error: &serde_json::Error) -> Invalid {
    Invalid {
        problems: vec![Problem::Other(format!(
            "the arguments are not valid JSON: {error}"
        ))],
    }
}

fn unfenced(text: &str) -> &str {
    let Some(inner) = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
    else {
        return text;
    };
    inner.strip_prefix("json").unwrap_or(inner).trim()
}

/// Drops commas before closing brackets and escapes raw control characters
/// inside strings.
fn mended(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_string = false;
    let mut escaped = false;
    for c in text.chars() {
        if in_string {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                '\n' => {
                    out.push_str("\\n");
                    continue;
                }
                '\r' => {
                    out.push_str("\\r");
                    continue;
                }
                '\t' => {
                    out.push_str("\\t");
                    continue;
                }
                _ => {}
            }
        } else if c == '"' {
            in_string = true;
        } else if matches!(c, '}' | ']') {
            let kept = out.trim_end().trim_end_matches(',').len();
            if out.trim_end().ends_with(',') {
                out.truncate(kept);
            }
        }
        out.push(c);
    }
    out
}
