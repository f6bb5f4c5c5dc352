//! Parsing arguments that models wrote as text.

use super::lenient_json::normalize;
use crate::{Invalid, Problem, json};
use serde::de::IgnoredAny;
use serde_json::Value;

/// Maximum number of times that arguments may be encoded as text inside text.
const MAX_ENCODED: usize = 3;

/// Parses the arguments of a call from text. Empty text is an empty object. Syntax with
/// only one possible meaning is repaired: a code fence around the JSON, trailing commas,
/// line breaks in strings, the quotes and constants of Python.
///
/// # Errors
/// When the text is not JSON (with the position of the error), an object contains a name
/// twice, or it has too many values ([`json::MAX_VALUES`]).
pub fn parse_arguments(text: &str) -> Result<Value, Invalid> {
    parse(text).map(|(value, _)| value)
}

/// Same as [`parse_arguments`], and returns the repairs.
pub(super) fn parse(text: &str) -> Result<(Value, Vec<String>), Invalid> {
    let mut repairs = Vec::new();
    let value = decoded(text, 0, &mut repairs)?;
    Ok((value, repairs))
}

/// Parses an object or a list that was given as text.
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
        // A string that contains JSON: some models encode twice.
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
    let normalized = normalize(text);
    let value = parsed(&normalized.text)?.map_err(|_| invalid(&first))?;
    repairs.push(format!(
        "invalid JSON was repaired: {}",
        normalized.found.join(", ")
    ));
    Ok(value)
}

/// Parses a text, unless that would cost too much. Text that only seems to cost too much is
/// not JSON, and may still be repaired.
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
