//! Fields of a form: the prompt of each, on one line, and the value of a typed line. Names
//! and descriptions come from the tool, so they are sanitized and shortened before they are
//! shown.

mod choices;
mod formats;
#[cfg(test)]
mod tests;

use choices::Choices;
use haft::ops::text::decode::visible;
use serde_json::{Map, Value};

/// Maximum number of fields in a form.
pub(crate) const MAX_FIELDS: usize = 50;

/// Maximum length of a name, in characters.
const MAX_NAME: usize = 60;

/// Maximum length of a description, in characters.
const MAX_DESCRIPTION: usize = 300;

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    name: String,
    title: String,
    description: String,
    kind: FieldKind,
    default: Option<Value>,
    is_required: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum FieldKind {
    Text {
        format: Option<String>,
        length: CountRange,
    },
    Number {
        is_whole: bool,
        range: NumberRange,
    },
    Boolean,
    OneOf(Choices),
    SeveralOf(Choices, CountRange),
    /// A type without a simpler input format.
    Json,
}

/// Allowed number of characters or items.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CountRange {
    min: u64,
    max: Option<u64>,
}

/// Allowed range of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
struct NumberRange {
    min: Option<f64>,
    max: Option<f64>,
    exclusive_min: Option<f64>,
    exclusive_max: Option<f64>,
}

/// Returns the fields of a flat object, in the order of its schema.
///
/// # Errors
/// If there are too many.
pub(crate) fn from_schema(schema: &Value) -> Result<Vec<Field>, String> {
    let nothing = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&nothing);
    let required: Vec<&str> = match schema["required"].as_array() {
        Some(names) => names.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    let described = properties
        .iter()
        .map(|(name, schema)| Field::new(name, schema, required.contains(&name.as_str())));
    // Some are listed as required and described nowhere.
    let named = required
        .iter()
        .filter(|name| !properties.contains_key(**name))
        .map(|name| Field::new(name, &Value::Null, true));
    let count = described.len() + named.clone().count();
    match count {
        0..=MAX_FIELDS => Ok(described.chain(named).collect()),
        _ => Err(format!(
            "the form has {count} fields, at most {MAX_FIELDS} are supported"
        )),
    }
}

impl Field {
    fn new(name: &str, schema: &Value, is_required: bool) -> Self {
        let words = |key: &str| schema[key].as_str().unwrap_or_default();
        let title = match words("title").trim() {
            "" => name,
            title => title,
        };
        let kind = FieldKind::of(schema);
        let default = schema
            .get("default")
            .filter(|value| kind.check(value).is_ok());
        Self {
            name: name.to_owned(),
            title: sanitize(title, MAX_NAME),
            description: sanitize(words("description"), MAX_DESCRIPTION),
            default: default.cloned(),
            kind,
            is_required,
        }
    }

    /// Name of the property.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Name that the user sees.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// The prompt, on one line.
    pub(crate) fn prompt(&self) -> String {
        let description = match self.description.as_str() {
            "" => String::new(),
            words => format!(": {words}"),
        };
        let mut notes = self.kind.notes();
        notes.push(match (&self.default, &self.kind) {
            (Some(default), kind) => format!("Enter: {}", kind.format_value(default)),
            (None, kind) if self.is_required && kind.can_be_empty() => "Enter: none".to_owned(),
            (None, _) if self.is_required => "required".to_owned(),
            (None, _) => "Enter: skip".to_owned(),
        });
        format!("{}{description} ({})", self.title, notes.join("; "))
    }

    /// Parses the input. Returns `None` if the field is left out.
    ///
    /// # Errors
    /// If the input is not valid, with a message for the user.
    pub(crate) fn parse(&self, typed: &str) -> Result<Option<Value>, String> {
        let typed = typed.trim();
        if !typed.is_empty() {
            let value = self.kind.parse(typed)?;
            self.kind.check(&value)?;
            return Ok(Some(value));
        }
        match &self.default {
            Some(default) => Ok(Some(default.clone())),
            None if !self.is_required => Ok(None),
            None if self.kind.can_be_empty() => Ok(Some(Value::Array(Vec::new()))),
            None => Err("a value is required".to_owned()),
        }
    }
}

impl FieldKind {
    fn of(schema: &Value) -> Self {
        if let Some(choices) = Choices::of(schema) {
            return Self::OneOf(choices);
        }
        match kind_of(schema) {
            Some("string") => Self::Text {
                format: schema["format"].as_str().map(str::to_owned),
                length: CountRange::of(schema, "minLength", "maxLength"),
            },
            Some(kind @ ("number" | "integer")) => Self::Number {
                is_whole: kind == "integer",
                range: NumberRange::of(schema),
            },
            Some("boolean") => Self::Boolean,
            Some("array") => match Choices::of(&schema["items"]) {
                Some(choices) => {
                    Self::SeveralOf(choices, CountRange::of(schema, "minItems", "maxItems"))
                }
                None => Self::Json,
            },
            _ => Self::Json,
        }
    }

    /// Whether empty input is a valid value: an empty list.
    fn can_be_empty(&self) -> bool {
        matches!(self, Self::SeveralOf(_, count) if count.min == 0)
    }

    /// Notes about the expected input.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        match self {
            Self::Text { format, length } => {
                notes.extend(format.as_deref().map(formats::describe));
                notes.extend(length.describe("characters"));
            }
            Self::Number { is_whole, range } => {
                let what = match is_whole {
                    true => "a whole number",
                    false => "a number",
                };
                notes.push(format!("{what}{}", range.describe()));
            }
            Self::Boolean => notes.push("y or n".to_owned()),
            Self::OneOf(choices) => notes.push(choices.listed()),
            Self::SeveralOf(choices, count) => {
                notes.push(format!(
                    "several, separated by commas: {}",
                    choices.listed()
                ));
                notes.extend(count.describe("of them"));
            }
            Self::Json => notes.push("as JSON".to_owned()),
        }
        notes
    }

    /// Parses the input without checking its bounds.
    fn parse(&self, typed: &str) -> Result<Value, String> {
        match self {
            // The empty string cannot be typed in another way.
            Self::Text { .. } if typed == "\"\"" => Ok(Value::from("")),
            Self::Text { .. } => Ok(Value::from(typed)),
            Self::Number { is_whole: true, .. } => {
                let small = typed.parse::<i64>().map(Value::from);
                let number = small.or_else(|_| typed.parse::<u64>().map(Value::from));
                number.map_err(|_| "not a whole number".to_owned())
            }
            Self::Number { .. } => match serde_json::from_str(typed) {
                Ok(number @ Value::Number(_)) => Ok(number),
                _ => {
                    let number = typed.parse::<f64>().ok();
                    let number = number.and_then(serde_json::Number::from_f64);
                    number.map(Value::Number).ok_or("not a number".to_owned())
                }
            },
            Self::Boolean => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(Value::Bool(true)),
                "n" | "no" | "false" => Ok(Value::Bool(false)),
                _ => Err("enter y or n".to_owned()),
            },
            Self::OneOf(choices) => choices.find(typed),
            Self::SeveralOf(choices, _) => {
                let mut found = Vec::new();
                // A single choice may contain a comma.
                if let Ok(one) = choices.find(typed) {
                    return Ok(Value::Array(vec![one]));
                }
                let parts = typed.split(',').map(str::trim);
                for part in parts.filter(|part| !part.is_empty()) {
                    let one = choices.find(part)?;
                    if !found.contains(&one) {
                        found.push(one);
                    }
                }
                Ok(Value::Array(found))
            }
            Self::Json => {
                serde_json::from_str(typed).map_err(|error| format!("not valid JSON: {error}"))
            }
        }
    }

    /// Checks a value against the type and its bounds.
    fn check(&self, value: &Value) -> Result<(), String> {
        let other = || Err("wrong type of value".to_owned());
        match (self, value) {
            (Self::Text { format, length }, Value::String(text)) => {
                length.check(text.chars().count(), "characters")?;
                format
                    .as_deref()
                    .map_or(Ok(()), |format| formats::check(format, text))
            }
            (Self::Number { is_whole, range }, Value::Number(number)) => {
                if *is_whole && !(number.is_i64() || number.is_u64()) {
                    return Err("not a whole number".to_owned());
                }
                range.check(number.as_f64().unwrap_or(f64::NAN))
            }
            (Self::Boolean, Value::Bool(_)) | (Self::Json, _) => Ok(()),
            (Self::OneOf(choices), one) if choices.contains(one) => Ok(()),
            (Self::SeveralOf(choices, count), Value::Array(all)) => {
                if !all.iter().all(|one| choices.contains(one)) {
                    return other();
                }
                count.check(all.len(), "of them")
            }
            _ => other(),
        }
    }

    /// Formats a value for the user.
    fn format_value(&self, value: &Value) -> String {
        match (self, value) {
            (Self::Boolean, Value::Bool(true)) => "y".to_owned(),
            (Self::Boolean, Value::Bool(false)) => "n".to_owned(),
            (Self::OneOf(choices), one) => choices.title(one),
            (Self::SeveralOf(_, _), Value::Array(all)) if all.is_empty() => "none".to_owned(),
            (Self::SeveralOf(choices, _), Value::Array(all)) => {
                let titles: Vec<String> = all.iter().map(|one| choices.title(one)).collect();
                sanitize(&titles.join(", "), MAX_DESCRIPTION)
            }
            (Self::Text { .. }, Value::String(text)) if !text.trim().is_empty() => {
                sanitize(text, MAX_NAME)
            }
            (_, other) => sanitize(&other.to_string(), MAX_NAME),
        }
    }
}

impl CountRange {
    fn of(schema: &Value, min: &str, max: &str) -> Self {
        Self {
            min: schema[min].as_u64().unwrap_or(0),
            max: schema[max].as_u64(),
        }
    }

    fn describe(self, what: &str) -> Option<String> {
        match (self.min, self.max) {
            (0, None) => None,
            (min, None) => Some(format!("at least {min} {what}")),
            (0, Some(max)) => Some(format!("at most {max} {what}")),
            (min, Some(max)) if min == max => Some(format!("{min} {what}")),
            (min, Some(max)) => Some(format!("{min} to {max} {what}")),
        }
    }

    fn check(self, count: usize, what: &str) -> Result<(), String> {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        match count >= self.min && self.max.is_none_or(|max| count <= max) {
            true => Ok(()),
            false => {
                let expected = self.describe(what).unwrap_or_default();
                Err(format!("got {count}, expected {expected}"))
            }
        }
    }
}

impl NumberRange {
    fn of(schema: &Value) -> Self {
        let bound = |key: &str| schema[key].as_f64();
        Self {
            min: bound("minimum"),
            max: bound("maximum"),
            exclusive_min: bound("exclusiveMinimum"),
            exclusive_max: bound("exclusiveMaximum"),
        }
    }

    fn describe(self) -> String {
        let mut words = match (self.min, self.max) {
            (Some(min), Some(max)) => format!(" from {min} to {max}"),
            (Some(min), None) => format!(", at least {min}"),
            (None, Some(max)) => format!(", at most {max}"),
            (None, None) => String::new(),
        };
        if let Some(exclusive_min) = self.exclusive_min {
            words.push_str(&format!(", more than {exclusive_min}"));
        }
        if let Some(exclusive_max) = self.exclusive_max {
            words.push_str(&format!(", less than {exclusive_max}"));
        }
        words
    }

    fn check(self, number: f64) -> Result<(), String> {
        let holds = self.min.is_none_or(|min| number >= min)
            && self.max.is_none_or(|max| number <= max)
            && self
                .exclusive_min
                .is_none_or(|exclusive_min| number > exclusive_min)
            && self
                .exclusive_max
                .is_none_or(|exclusive_max| number < exclusive_max);
        match holds {
            true => Ok(()),
            false => Err(format!("expected a number{}", self.describe())),
        }
    }
}

/// The type of a field; `null` as an alternative is ignored.
fn kind_of(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str);
            let mut some = kinds.by_ref().filter(|kind| *kind != "null");
            some.next().filter(|_| some.next().is_none())
        }
        _ => None,
    }
}

/// Sanitizes untrusted text: one line, limited length.
pub(super) fn sanitize(text: &str, max: usize) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        // Do not process more than can be shown.
        words.extend(word.chars().take(max + 1));
        if words.chars().count() > max {
            break;
        }
    }
    let words = visible(&words);
    match words.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", words.get(..end).unwrap_or_default()),
        None => words,
    }
}
