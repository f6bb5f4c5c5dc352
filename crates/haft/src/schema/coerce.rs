//! Values of another type that can only mean one thing.

use super::{Ranges, Repair};
use serde_json::{Map, Number, Value};

/// Deeper values are left as they are: no model nests its arguments like that.
const MAX_DEPTH: usize = 16;

pub(super) fn arguments(
    arguments: &mut Map<String, Value>,
    schema: &Value,
    ranges: Ranges,
    repairs: &mut Vec<Repair>,
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
    // An optional parameter that is null was left out.
    let nulls: Vec<String> = arguments
        .iter()
        .filter(|(name, value)| {
            value.is_null()
                && !required(name)
                && properties
                    .get(*name)
                    .is_some_and(|schema| !admits_null(schema))
        })
        .map(|(name, _)| name.clone())
        .collect();
    for name in nulls {
        arguments.remove(&name);
    }
    for (name, value) in arguments.iter_mut() {
        if let Some(schema) = properties.get(name) {
            coerce(value, schema, name, ranges, repairs, 0);
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

fn coerce(
    value: &mut Value,
    schema: &Value,
    name: &str,
    ranges: Ranges,
    repairs: &mut Vec<Repair>,
    depth: usize,
) {
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(kind) = schema.get("type").and_then(Value::as_str)
        && let Some(coerced) = to_kind(value, kind)
    {
        repairs.push(Repair {
            parameter: name.to_owned(),
            change: format!("{} read as {kind}", brief(value)),
        });
        *value = coerced;
    }
    if ranges == Ranges::Clamp
        && let Some(clamped) = clamp(value, schema)
    {
        repairs.push(Repair {
            parameter: name.to_owned(),
            change: format!("{} is out of range, taken as {clamped}", brief(value)),
        });
        *value = clamped;
    }
    match value {
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (at, item) in items.iter_mut().enumerate() {
                    coerce(
                        item,
                        schema,
                        &format!("{name}[{at}]"),
                        ranges,
                        repairs,
                        depth + 1,
                    );
                }
            }
        }
        Value::Object(fields) => {
            if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
                for (field, item) in fields.iter_mut() {
                    if let Some(schema) = properties.get(field) {
                        coerce(
                            item,
                            schema,
                            &format!("{name}.{field}"),
                            ranges,
                            repairs,
                            depth + 1,
                        );
                    }
                }
            }
        }
        _ => {}
    }
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
        // Only whole numbers: 1.10 and 1E5 do not come back as they were written.
        ("string", Value::Number(number)) if !number.is_f64() => {
            Some(Value::String(number.to_string()))
        }
        ("string", Value::Bool(truth)) => Some(Value::String(truth.to_string())),
        ("boolean", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        ("array", Value::String(text)) => serde_json::from_str(text).ok().filter(Value::is_array),
        ("object", Value::String(text)) => serde_json::from_str(text).ok().filter(Value::is_object),
        _ => None,
    }
}

/// A float that is a whole number, as an integer.
fn whole(value: &Value) -> Option<Value> {
    let float = value.as_f64().filter(|float| float.fract() == 0.0)?;
    // Beyond 2^63 the nearest integer we can hold, which is said: its text
    // differs from what came.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the cast saturates, which is what is wanted"
    )]
    let integer = float as i64;
    Some(integer.into())
}

fn clamp(value: &Value, schema: &Value) -> Option<Value> {
    let number = value.as_f64()?;
    // A fraction is no integer, in range or out of it.
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

/// A value, short enough for a list of repairs.
fn brief(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 40 {
        text
    } else {
        format!("{}…", text.chars().take(40).collect::<String>())
    }
}
