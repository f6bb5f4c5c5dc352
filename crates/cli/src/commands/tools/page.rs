//! Page about one tool: description, parameters and effect.

use crate::text;
use haft::{Definition, Effect};
use serde_json::Value;

/// Formats the page for a terminal.
pub(super) fn page(definition: &Definition, most: Effect) -> String {
    let mut out = format!("{}\n\n", definition.name);
    for line in text::wrap(&definition.description, text::WIDTH) {
        out.push_str(&line);
        out.push('\n');
    }
    let rows = parameters(&definition.parameters);
    if rows.is_empty() {
        out.push_str("\nParameters: none\n");
    } else {
        out.push_str("\nParameters:\n");
        for line in text::table(&rows, Some(text::WIDTH - 2)).lines() {
            out.push_str(&format!("  {line}\n"));
        }
    }
    out.push_str(&format!("\nEffect: {}\n", effect(most)));
    out
}

fn effect(effect: Effect) -> String {
    match effect {
        Effect::Read => "read (reads files)".to_owned(),
        Effect::Write => "write (changes files)".to_owned(),
        Effect::Pure => "pure (neither reads nor changes anything)".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// Returns a row per parameter: name, type, whether required or its default and range,
/// description.
fn parameters(schema: &Value) -> Vec<Vec<String>> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let required = |name: &str| {
        schema
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|names| names.iter().any(|required| required == name))
    };
    properties
        .iter()
        .map(|(name, property)| {
            let mut notes = Vec::new();
            if required(name) {
                notes.push("required".to_owned());
            }
            notes.extend(
                property
                    .get("default")
                    .map(|default| format!("default {default}")),
            );
            notes.extend(range(property));
            if notes.is_empty() {
                notes.push("optional".to_owned());
            }
            let first = || property.get("anyOf")?.get(0)?.get("description");
            let about = property.get("description").or_else(first);
            let about = about.and_then(Value::as_str).unwrap_or_default();
            vec![
                name.clone(),
                kind(property),
                notes.join(", "),
                about.to_owned(),
            ]
        })
        .collect()
}

fn kind(property: &Value) -> String {
    if let Some(options) = property.get("enum").and_then(Value::as_array) {
        let options: Vec<String> = options.iter().map(ToString::to_string).collect();
        return options.join("|");
    }
    if let Some(choices) = property.get("anyOf").and_then(Value::as_array) {
        let kinds: Vec<String> = choices.iter().map(kind_or_any).collect();
        return kinds.join("|");
    }
    match property.get("type") {
        Some(Value::String(kind)) if kind == "array" => match property.get("items") {
            Some(items) => format!("array of {}", kind_or_any(items)),
            None => "array".to_owned(),
        },
        Some(Value::Array(kinds)) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join("|")
        }
        _ => kind_or_any(property),
    }
}

fn kind_or_any(property: &Value) -> String {
    property
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("any")
        .to_owned()
}

fn range(property: &Value) -> Option<String> {
    match (property.get("minimum"), property.get("maximum")) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}")),
        (Some(least), None) => Some(format!("from {least}")),
        (None, Some(most)) => Some(format!("up to {most}")),
        (None, None) => None,
    }
}
