//! JSON as models write it.

use super::mend::mended;
use crate::{Invalid, Problem};
use serde::Deserialize;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// How often arguments may be text that holds them: more is no slip any more.
const MAX_ENCODED: usize = 3;

/// Parses the arguments of a call from text. Nothing at all is an empty object.
/// What can only be meant in one way is repaired: a code fence around it, a
/// comma before a closing bracket, a line break inside a string, the quotes and
/// words of Python.
///
/// # Errors
/// When it is not JSON, with the place where it stops to be, or when a name
/// stands twice in one object.
pub fn parse_arguments(text: &str) -> Result<Value, Invalid> {
    parse(text).map(|(value, _)| value)
}

/// The same, and what was repaired.
pub(super) fn parse(text: &str) -> Result<(Value, Vec<String>), Invalid> {
    let mut repairs = Vec::new();
    let value = decoded(text, 0, &mut repairs)?;
    Ok((value, repairs))
}

/// An object or a list that came as text where one was wanted.
pub(super) fn nested(text: &str) -> Option<Value> {
    let text = text.trim();
    text.starts_with(['{', '['])
        .then(|| decoded(text, MAX_ENCODED, &mut Vec::new()).ok())?
}

fn decoded(text: &str, depth: usize, repairs: &mut Vec<String>) -> Result<Value, Invalid> {
    let trimmed = text.trim_start_matches('\u{feff}').trim();
    let text = unfenced(trimmed);
    if text.len() < trimmed.len() {
        repairs.push("a code fence around the arguments was dropped".to_owned());
    }
    if text.is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let first = match serde_json::from_str::<Unique>(text) {
        Ok(Unique(Value::Null)) => return Ok(Value::Object(serde_json::Map::new())),
        // A string that holds JSON again: some models encode twice.
        Ok(Unique(Value::String(inner)))
            if depth < MAX_ENCODED
                && (inner.trim().is_empty() || inner.trim_start().starts_with(['{', '"', '`'])) =>
        {
            repairs.push("the arguments were encoded twice".to_owned());
            return decoded(&inner, depth + 1, repairs);
        }
        Ok(Unique(value)) => return Ok(value),
        Err(error) => error,
    };
    let mended = mended(text);
    let Unique(value) = serde_json::from_str(&mended.text).map_err(|_| invalid(&first))?;
    repairs.push(format!("the JSON was mended: {}", mended.found.join(", ")));
    Ok(value)
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
    let is_named = inner
        .get(..4)
        .is_some_and(|name| name.eq_ignore_ascii_case("json"));
    inner.get(4..).filter(|_| is_named).unwrap_or(inner).trim()
}
