//! JSON as models write it.

use crate::{Invalid, Problem};
use serde_json::Value;

/// Parses the arguments of a call from text. Nothing at all is an empty object.
/// What can only be meant in one way is repaired: a code fence around it, a
/// comma before a closing bracket, a line break inside a string.
///
/// # Errors
/// When it is not JSON, with the place where it stops to be.
pub fn parse_arguments(text: &str) -> Result<Value, Invalid> {
    let text = unfenced(text.trim());
    if text.is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    let first = match serde_json::from_str(text) {
        Ok(Value::Null) => return Ok(Value::Object(serde_json::Map::new())),
        // A string that holds JSON again: some models encode twice.
        Ok(Value::String(inner)) if inner.trim_start().starts_with('{') => {
            return serde_json::from_str(&inner).map_err(|error| invalid(&error));
        }
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    serde_json::from_str(&mended(text)).map_err(|_| invalid(&first))
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
