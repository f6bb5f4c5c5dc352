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
    kind: Kind,
    default: Option<Value>,
    is_required: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Text {
        format: Option<String>,
        length: Count,
    },
    Number {
        is_whole: bool,
        range: Range,
    },
    Truth,
    One(Choices),
    Several(Choices, Count),
    /// A type without a simpler input format.
    Json,
}

/// Allowed number of characters or items.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Count {
    least: u64,
    most: Option<u64>,
}

/// Allowed range of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Range {
    least: Option<f64>,
    most: Option<f64>,
    above: Option<f64>,
    below: Option<f64>,
}

/// Returns the fields of a flat object, in the order of its schema.
///
/// # Errors
/// If there are too many.
pub(crate) fn of(schema: &Value) -> Result<Vec<Field>, String> {
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
        let kind = Kind::of(schema);
        let default = schema
            .get("default")
            .filter(|value| kind.fits(value).is_ok());
        Self {
            name: name.to_owned(),
            title: shown(title, MAX_NAME),
            description: shown(words("description"), MAX_DESCRIPTION),
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
            (Some(default), kind) => format!("Enter: {}", kind.shown(default)),
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
    pub(crate) fn read(&self, typed: &str) -> Result<Option<Value>, String> {
        let typed = typed.trim();
        if !typed.is_empty() {
            let value = self.kind.parse(typed)?;
            self.kind.fits(&value)?;
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

impl Kind {
    fn of(schema: &Value) -> Self {
        if let Some(choices) = Choices::of(schema) {
            return Self::One(choices);
        }
        match kind_of(schema) {
            Some("string") => Self::Text {
                format: schema["format"].as_str().map(str::to_owned),
                length: Count::of(schema, "minLength", "maxLength"),
            },
            Some(kind @ ("number" | "integer")) => Self::Number {
                is_whole: kind == "integer",
                range: Range::of(schema),
            },
            Some("boolean") => Self::Truth,
            Some("array") => match Choices::of(&schema["items"]) {
                Some(choices) => Self::Several(choices, Count::of(schema, "minItems", "maxItems")),
                None => Self::Json,
            },
            _ => Self::Json,
        }
    }

    /// Whether empty input is a valid value: an empty list.
    fn can_be_empty(&self) -> bool {
        matches!(self, Self::Several(_, count) if count.least == 0)
    }

    /// Notes about the expected input.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        match self {
            Self::Text { format, length } => {
                notes.extend(format.as_deref().map(formats::called));
                notes.extend(length.words("characters"));
            }
            Self::Number { is_whole, range } => {
                let what = match is_whole {
                    true => "a whole number",
                    false => "a number",
                };
                notes.push(format!("{what}{}", range.words()));
            }
            Self::Truth => notes.push("y or n".to_owned()),
            Self::One(choices) => notes.push(choices.listed()),
            Self::Several(choices, count) => {
                notes.push(format!(
                    "several, separated by commas: {}",
                    choices.listed()
                ));
                notes.extend(count.words("of them"));
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
            Self::Truth => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(Value::Bool(true)),
                "n" | "no" | "false" => Ok(Value::Bool(false)),
                _ => Err("enter y or n".to_owned()),
            },
            Self::One(choices) => choices.find(typed),
            Self::Several(choices, _) => {
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
    fn fits(&self, value: &Value) -> Result<(), String> {
        let other = || Err("wrong type of value".to_owned());
        match (self, value) {
            (Self::Text { format, length }, Value::String(text)) => {
                length.holds(text.chars().count(), "characters")?;
                format
                    .as_deref()
                    .map_or(Ok(()), |format| formats::check(format, text))
            }
            (Self::Number { is_whole, range }, Value::Number(number)) => {
                if *is_whole && !(number.is_i64() || number.is_u64()) {
                    return Err("not a whole number".to_owned());
                }
                range.holds(number.as_f64().unwrap_or(f64::NAN))
            }
            (Self::Truth, Value::Bool(_)) | (Self::Json, _) => Ok(()),
            (Self::One(choices), one) if choices.holds(one) => Ok(()),
            (Self::Several(choices, count), Value::Array(all)) => {
                if !all.iter().all(|one| choices.holds(one)) {
                    return other();
                }
                count.holds(all.len(), "of them")
            }
            _ => other(),
        }
    }

    /// Formats a value for the user.
    fn shown(&self, value: &Value) -> String {
        match (self, value) {
            (Self::Truth, Value::Bool(true)) => "y".to_owned(),
            (Self::Truth, Value::Bool(false)) => "n".to_owned(),
            (Self::One(choices), one) => choices.title(one),
            (Self::Several(_, _), Value::Array(all)) if all.is_empty() => "none".to_owned(),
            (Self::Several(choices, _), Value::Array(all)) => {
                let titles: Vec<String> = all.iter().map(|one| choices.title(one)).collect();
                shown(&titles.join(", "), MAX_DESCRIPTION)
            }
            (Self::Text { .. }, Value::String(text)) if !text.trim().is_empty() => {
                shown(text, MAX_NAME)
            }
            (_, other) => shown(&other.to_string(), MAX_NAME),
        }
    }
}

impl Count {
    fn of(schema: &Value, least: &str, most: &str) -> Self {
        Self {
            least: schema[least].as_u64().unwrap_or(0),
            most: schema[most].as_u64(),
        }
    }

    fn words(self, what: &str) -> Option<String> {
        match (self.least, self.most) {
            (0, None) => None,
            (least, None) => Some(format!("at least {least} {what}")),
            (0, Some(most)) => Some(format!("at most {most} {what}")),
            (least, Some(most)) if least == most => Some(format!("{least} {what}")),
            (least, Some(most)) => Some(format!("{least} to {most} {what}")),
        }
    }

    fn holds(self, count: usize, what: &str) -> Result<(), String> {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        match count >= self.least && self.most.is_none_or(|most| count <= most) {
            true => Ok(()),
            false => {
                let expected = self.words(what).unwrap_or_default();
                Err(format!("got {count}, expected {expected}"))
            }
        }
    }
}

impl Range {
    fn of(schema: &Value) -> Self {
        let bound = |key: &str| schema[key].as_f64();
        Self {
            least: bound("minimum"),
            most: bound("maximum"),
            above: bound("exclusiveMinimum"),
            below: bound("exclusiveMaximum"),
        }
    }

    fn words(self) -> String {
        let mut words = match (self.least, self.most) {
            (Some(least), Some(most)) => format!(" from {least} to {most}"),
            (Some(least), None) => format!(", at least {least}"),
            (None, Some(most)) => format!(", at most {most}"),
            (None, None) => String::new(),
        };
        if let Some(above) = self.above {
            words.push_str(&format!(", more than {above}"));
        }
        if let Some(below) = self.below {
            words.push_str(&format!(", less than {below}"));
        }
        words
    }

    fn holds(self, number: f64) -> Result<(), String> {
        let holds = self.least.is_none_or(|least| number >= least)
            && self.most.is_none_or(|most| number <= most)
            && self.above.is_none_or(|above| number > above)
            && self.below.is_none_or(|below| number < below);
        match holds {
            true => Ok(()),
            false => Err(format!("expected a number{}", self.words())),
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
pub(super) fn shown(text: &str, most: usize) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        // Do not process more than can be shown.
        words.extend(word.chars().take(most + 1));
        if words.chars().count() > most {
            break;
        }
    }
    let words = visible(&words);
    match words.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", words.get(..end).unwrap_or_default()),
        None => words,
    }
}
