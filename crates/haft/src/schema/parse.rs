//! JSON as models write it.

use super::mend::mended;
use crate::{Invalid, Problem, json};
use serde::de::IgnoredAny;
use serde_json::Value;

/// How often arguments may be text that holds them: more is no slip any more.
const MAX_ENCODED: usize = 3;

/// Parses the arguments of a call from text. Nothing at all is an empty object.
/// What can only be meant in one way is repaired: a code fence around it, a
/// comma before a closing bracket, a line break inside a string, the quotes and
/// words of Python.
///
/// # Errors
/// When it is not JSON, with the place where it stops to be, when a name stands twice
/// in one object, or when it has more values than is reasonable ([`json::MOST_VALUES`]).
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
    let first = match parsed(text)? {
        Ok(Value::Null) => return Ok(Value::Object(serde_json::Map::new())),
        // A string that holds JSON again: some models encode twice.
        Ok(Value::String(inner))
            if depth < MAX_ENCODED
                && (inner.trim().is_empty() || inner.trim_start().starts_with(['{', '"', '`'])) =>
        {
            repairs.push("the arguments were encoded twice".to_owned());
            return decoded(&inner, depth + 1, repairs);
        }
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let mended = mended(text);
    let value = parsed(&mended.text)?.map_err(|_| invalid(&first))?;
    repairs.push(format!("the JSON was mended: {}", mended.found.join(", ")));
    Ok(value)
}

/// Parses a text, unless that would cost too much. What only looks as if it would is no
/// JSON, and may still be mended.
fn parsed(text: &str) -> Result<Result<Value, serde_json::Error>, Invalid> {
    let Some(why) = json::excess(text.as_bytes()) else {
        return Ok(json::parse_strict(text.as_bytes()));
    };
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(IgnoredAny) => Err(Invalid {
            problems: vec![Problem::Other(format!(
                "the arguments are too large: they have {why}; send less at once, or large data as one string"
            ))],
        }),
        Err(error) => Ok(Err(error)),
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
