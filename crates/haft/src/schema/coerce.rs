//! Converting values of the wrong type that have only one possible meaning.

use super::names::{IDS, VALUES, fold};
use super::notes::Notes;
use super::{Ranges, alias, words};
use serde_json::{Map, Number, Value};

/// Maximum depth of values that are converted. No model nests arguments deeper.
const MAX_DEPTH: usize = 16;

pub(super) fn arguments(
    arguments: &mut Map<String, Value>,
    schema: &Value,
    ranges: Ranges,
    notes: &mut Notes,
) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    let required = |name: &str| {
        schema
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|names| names.iter().any(|required| required == name))
    };
    // A null for an optional parameter means that it was not given.
    arguments.retain(|name, value| {
        let Some(schema) = properties.get(name).filter(|_| !required(name)) else {
            return true;
        };
        if value.is_null() {
            return admits_null(schema);
        }
        let is_blank = ranges == Ranges::Clamp && is_blank(value, schema);
        if is_blank {
            notes.repair(name, format!("{} taken as not given", brief(value)));
        }
        !is_blank
    });
    for (name, value) in arguments.iter_mut() {
        if let Some(schema) = properties.get(name) {
            coerce(value, schema, name, ranges, notes, 0);
        }
    }
}

fn admits_null(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "null",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "null"),
        _ => schema.get("enum").is_none(),
    }
}

/// Whether a value is blank text or `null` where a number, a flag or one of several words is
/// expected.
fn is_blank(value: &Value, schema: &Value) -> bool {
    let kind = schema.get("type").and_then(Value::as_str);
    let is_text = |text: &str| text.trim().is_empty() || text.trim() == "null";
    let options = schema.get("enum").and_then(Value::as_array);
    let is_option = options.is_some_and(|options| options.contains(value));
    let is_word = options.is_some() && !is_option;
    (is_word || matches!(kind, Some("integer" | "number" | "boolean")))
        && value.as_str().is_some_and(is_text)
}

/// Returns the schema of the items of a list, which may be one of several alternatives.
fn items_of(schema: &Value) -> Option<&Value> {
    let choices = || schema.get("anyOf").and_then(Value::as_array);
    let of_choice = || choices()?.iter().find_map(|choice| choice.get("items"));
    schema.get("items").or_else(of_choice)
}

fn coerce(
    value: &mut Value,
    schema: &Value,
    name: &str,
    ranges: Ranges,
    notes: &mut Notes,
    depth: usize,
) {
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(kind) = schema.get("type").and_then(Value::as_str)
        && let Some(coerced) = to_kind(value, kind)
            .or_else(|| id(name, value, kind))
            .or_else(|| from_text(value, kind, notes))
    {
        notes.repair(name, format!("{} read as {kind}", brief(value)));
        *value = coerced;
    }
    if ranges == Ranges::Clamp {
        ours(value, schema, name, notes);
    }
    match value {
        Value::Array(items) => {
            if let Some(schema) = items_of(schema) {
                for (at, item) in items.iter_mut().enumerate() {
                    let name = format!("{name}[{at}]");
                    coerce(item, schema, &name, ranges, notes, depth + 1);
                }
            }
        }
        Value::Object(fields) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
                return;
            };
            if ranges == Ranges::Clamp {
                inner_names(fields, schema, properties, name, notes);
            }
            for (field, item) in fields.iter_mut() {
                if let Some(schema) = properties.get(field) {
                    let name = format!("{name}.{field}");
                    coerce(item, schema, &name, ranges, notes, depth + 1);
                }
            }
        }
        _ => {}
    }
}

/// Conversions that are only made for tools of a toolset.
fn ours(value: &mut Value, schema: &Value, name: &str, notes: &mut Notes) {
    if let Some(clamped) = clamp(value, schema).or_else(|| shortest(value, schema, name)) {
        let change = format!("{} is out of range, taken as {clamped}", brief(value));
        notes.repair(name, change);
        *value = clamped;
    }
    let taken = match value {
        Value::String(text) => option(text, schema).or_else(|| {
            let is_command = name == "command" && items_of(schema).is_some();
            words::listed(text).filter(|_| is_command)
        }),
        Value::Array(list) if name == "command" && items_of(schema).is_none() => {
            words::line(list).map(Value::String)
        }
        _ => None,
    };
    if let Some(taken) = taken {
        notes.repair(name, format!("{} taken as {}", brief(value), brief(&taken)));
        *value = taken;
    }
}

/// Renames the fields inside an object, and drops unknown ones with a note.
fn inner_names(
    fields: &mut Map<String, Value>,
    schema: &Value,
    properties: &Map<String, Value>,
    name: &str,
    notes: &mut Notes,
) {
    let mut inner = Notes::default();
    alias::rename(fields, schema, &mut inner);
    fields.retain(|field, _| {
        let is_known = properties.contains_key(field);
        if !is_known {
            inner.repair(field, "dropped: unknown field");
        }
        is_known
    });
    notes.inside(name, inner);
}

/// Returns the single enum value that a text means in another spelling.
fn option(text: &str, schema: &Value) -> Option<Value> {
    let options = schema.get("enum").and_then(Value::as_array)?;
    let folded = fold(text);
    if folded.is_empty() || options.iter().any(|option| option == text) {
        return None;
    }
    let other = VALUES
        .iter()
        .find(|(word, _)| *word == folded)
        .map(|(_, value)| *value);
    let same = |option: &&Value| {
        option
            .as_str()
            .is_some_and(|option| fold(option) == folded || Some(option) == other)
    };
    let mut found = options.iter().filter(same);
    found.next().filter(|_| found.next().is_none()).cloned()
}

/// Parses an integer, which may be given as text.
pub(super) fn integer(value: &Value) -> Option<i64> {
    value
        .as_i64()
        .or_else(|| to_kind(value, "integer").and_then(|value| value.as_i64()))
}

fn to_kind(value: &Value, kind: &str) -> Option<Value> {
    match (kind, value) {
        ("integer", Value::String(text)) => {
            let number: Value = serde_json::from_str::<Number>(text.trim()).ok()?.into();
            if number.is_f64() {
                whole(&number)
            } else {
                Some(number)
            }
        }
        ("integer", Value::Number(number)) if number.is_f64() => whole(value),
        ("number", Value::String(text)) => serde_json::from_str::<Number>(text.trim())
            .ok()
            .map(Value::Number),
        // Only integers: 1.10 and 1E5 would not keep their spelling.
        ("string", Value::Number(number)) if !number.is_f64() => {
            Some(Value::String(number.to_string()))
        }
        ("string", Value::Bool(truth)) => Some(Value::String(truth.to_string())),
        ("boolean", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        _ => None,
    }
}

/// Parses a list or an object that was given as text.
fn from_text(value: &Value, kind: &str, notes: &mut Notes) -> Option<Value> {
    let is_wanted = match kind {
        "array" => Value::is_array,
        "object" => Value::is_object,
        _ => return None,
    };
    notes.nested(value.as_str()?).filter(is_wanted)
}

/// Converts an id that was sent as a number such as `1.0` to text.
fn id(name: &str, value: &Value, kind: &str) -> Option<Value> {
    // Larger floats cannot represent every integer.
    let is_exact = value.is_f64() && value.as_f64().is_some_and(|v| v.abs() < 2_f64.powi(53));
    if kind != "string" || !is_exact || !IDS.contains(&fold(name).as_str()) {
        return None;
    }
    whole(value).map(|whole| Value::String(whole.to_string()))
}

/// Converts a float without a fraction to an integer.
fn whole(value: &Value) -> Option<Value> {
    let float = value.as_f64().filter(|float| float.fract() == 0.0)?;
    // Beyond 2^63, the nearest integer that fits. The repair shows the changed number.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the cast saturates, which is what is wanted"
    )]
    let integer = float as i64;
    Some(integer.into())
}

fn clamp(value: &Value, schema: &Value) -> Option<Value> {
    let number = value.as_f64()?;
    // A fraction is not an integer, whether in range or not.
    if number.fract() != 0.0 && schema.get("type").is_some_and(|kind| kind == "integer") {
        return None;
    }
    let bound = |name: &str| schema.get(name).filter(|bound| bound.is_number());
    if let Some(minimum) = bound("minimum")
        && number < minimum.as_f64()?
    {
        return Some(minimum.clone());
    }
    if let Some(maximum) = bound("maximum")
        && number > maximum.as_f64()?
    {
        return Some(maximum.clone());
    }
    None
}

/// Minimum time limit of a command, in seconds. Shorter limits would be shown as 0. A
/// schema cannot express this, because 0 and less mean the default.
const SHORTEST: f64 = 0.1;

fn shortest(value: &Value, schema: &Value, name: &str) -> Option<Value> {
    let is_short = value.as_f64().is_some_and(|v| v > 0.0 && v < SHORTEST);
    let is_limit = name == "timeout" && alias::has_word(alias::description(schema), "seconds");
    (is_short && is_limit).then(|| SHORTEST.into())
}

/// Formats a value for a list of repairs.
fn brief(value: &Value) -> String {
    haft_ops::text::brief(value, 40)
}
