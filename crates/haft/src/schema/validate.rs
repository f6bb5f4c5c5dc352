//! Validation errors as sentences about parameters.

use super::notes::{MAX_PROBLEMS, Notes};
use crate::Problem;
use haft_ops::text::brief::{FEW, brief, few};
use jsonschema::Validator;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

/// Maximum length of a validator message, in characters. It repeats the value.
const MAX_MESSAGE: usize = 300;

pub(super) fn problems(
    validator: &Validator,
    arguments: &Value,
    schema: &Value,
    notes: &mut Notes,
) {
    if validator.is_valid(arguments) {
        return;
    }
    let known: Vec<String> = schema
        .get("properties")
        .and_then(Value::as_object)
        .map(|properties| properties.keys().cloned().collect())
        .unwrap_or_default();
    for error in validator.iter_errors(arguments).take(MAX_PROBLEMS) {
        let name = parameter(error.instance_path().as_str());
        let got = shown(error.instance());
        match error.kind() {
            ValidationErrorKind::Required { property } => {
                let property = property
                    .as_str()
                    .map_or_else(|| property.to_string(), str::to_owned);
                notes.problem(Problem::Missing(if name.is_empty() {
                    property
                } else {
                    format!("{name}.{property}")
                }));
            }
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                notes.more_problems(unexpected.len().saturating_sub(MAX_PROBLEMS));
                for extra in unexpected.iter().take(MAX_PROBLEMS) {
                    let similar =
                        haft_ops::text::spelling::closest(extra, known.iter().cloned(), 1).pop();
                    notes.problem(Problem::Unknown {
                        name: extra.clone(),
                        similar,
                        known: known.clone(),
                    });
                }
            }
            ValidationErrorKind::Type { kind } => notes.problem(Problem::Wrong {
                name,
                wanted: type_name(kind),
                got,
            }),
            ValidationErrorKind::AnyOf { .. } if alternatives(schema, &name).is_some() => {
                notes.problem(Problem::Wrong {
                    wanted: alternatives(schema, &name).unwrap_or_default(),
                    name,
                    got,
                });
            }
            ValidationErrorKind::Enum { options } => {
                let options: Vec<String> = options
                    .as_array()
                    .map(|options| options.iter().map(Value::to_string).collect())
                    .unwrap_or_default();
                notes.problem(Problem::Wrong {
                    name,
                    wanted: format!("one of {}", few(&options, FEW)),
                    got,
                });
            }
            ValidationErrorKind::Minimum { limit } => notes.problem(Problem::Wrong {
                name,
                wanted: format!("at least {limit}"),
                got,
            }),
            ValidationErrorKind::Maximum { limit } => notes.problem(Problem::Wrong {
                name,
                wanted: format!("at most {limit}"),
                got,
            }),
            _ if name.is_empty() => notes.problem(Problem::Other(brief(error, MAX_MESSAGE))),
            _ => {
                let message = brief(error, MAX_MESSAGE);
                notes.problem(Problem::Other(format!("parameter \"{name}\": {message}")));
            }
        }
    }
}

/// Formats `/edits/0/old` as `edits[0].old`.
fn parameter(pointer: &str) -> String {
    let mut name = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty() {
            name.push_str(&format!("[{part}]"));
        } else {
            if !name.is_empty() {
                name.push('.');
            }
            name.push_str(&part);
        }
    }
    name
}

/// Names the types of a parameter's alternatives.
fn alternatives(schema: &Value, name: &str) -> Option<String> {
    let choices = schema.get("properties")?.get(name)?.get("anyOf")?;
    let kinds = choices.as_array()?.iter();
    let kinds: Option<Vec<String>> = kinds
        .map(|choice| Some(with_article(choice.get("type")?.as_str()?)))
        .collect();
    Some(kinds?.join(" or "))
}

fn type_name(kind: &TypeKind) -> String {
    let names: Vec<String> = match kind {
        TypeKind::Single(kind) => vec![with_article(&kind.to_string())],
        TypeKind::Multiple(kinds) => kinds
            .iter()
            .map(|kind| with_article(&kind.to_string()))
            .collect(),
    };
    names.join(" or ")
}

fn with_article(kind: &str) -> String {
    match kind {
        "null" => "null".to_owned(),
        "integer" | "array" | "object" => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

/// Returns the kind of a value, in words.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Formats a value for a message: the value itself if short, its kind otherwise.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) | Value::Null => kind_of(value).to_owned(),
        Value::String(text) if text.chars().count() > 40 => {
            format!(
                "the string \"{}…\"",
                text.chars().take(40).collect::<String>()
            )
        }
        Value::String(text) => format!("the string {}", Value::from(text.as_str())),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}
