//! The fields of a form, for a person who types: what each of them asks, on one line,
//! and the value that a typed line is. What a tool says of its fields is text of somebody
//! else, so it is made harmless and short before anybody sees it.

mod choices;
mod formats;
#[cfg(test)]
mod tests;

use choices::Choices;
use haft::ops::text::decode::visible;
use serde_json::{Map, Value};

/// Nobody fills in more than these.
pub(crate) const MOST: usize = 50;

/// How long a name is shown at most, in characters.
const NAME: usize = 60;

/// How long a description is shown at most.
const DESCRIPTION: usize = 300;

/// One thing that a person is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    name: String,
    title: String,
    description: String,
    kind: Kind,
    default: Option<Value>,
    is_needed: bool,
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
    /// What has no simpler form.
    Json,
}

/// How many of something are wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Count {
    least: u64,
    most: Option<u64>,
}

/// Which numbers are wanted.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Range {
    least: Option<f64>,
    most: Option<f64>,
    above: Option<f64>,
    below: Option<f64>,
}

/// The fields of a flat object, in the order of its schema.
///
/// # Errors
/// When they are too many.
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
    // Of a few it is only said that they have to be there.
    let named = required
        .iter()
        .filter(|name| !properties.contains_key(**name))
        .map(|name| Field::new(name, &Value::Null, true));
    let count = described.len() + named.clone().count();
    match count {
        0..=MOST => Ok(described.chain(named).collect()),
        _ => Err(format!(
            "{count} fields are too many, at most {MOST} are asked for"
        )),
    }
}

impl Field {
    fn new(name: &str, schema: &Value, is_needed: bool) -> Self {
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
            title: shown(title, NAME),
            description: shown(words("description"), DESCRIPTION),
            default: default.cloned(),
            kind,
            is_needed,
        }
    }

    /// What the tool calls it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What a person reads for its name.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// What is asked, on one line.
    pub(crate) fn prompt(&self) -> String {
        let description = match self.description.as_str() {
            "" => String::new(),
            words => format!(": {words}"),
        };
        let mut notes = self.kind.notes();
        notes.push(match (&self.default, &self.kind) {
            (Some(default), kind) => format!("Enter: {}", kind.shown(default)),
            (None, kind) if self.is_needed && kind.can_be_none() => "Enter: none".to_owned(),
            (None, _) if self.is_needed => "needed".to_owned(),
            (None, _) => "Enter: leave it out".to_owned(),
        });
        format!("{}{description} ({})", self.title, notes.join("; "))
    }

    /// The value that was typed, none where the field is left out.
    ///
    /// # Errors
    /// What is wrong with it, for whoever typed it.
    pub(crate) fn read(&self, typed: &str) -> Result<Option<Value>, String> {
        let typed = typed.trim();
        if !typed.is_empty() {
            let value = self.kind.parse(typed)?;
            self.kind.fits(&value)?;
            return Ok(Some(value));
        }
        match &self.default {
            Some(default) => Ok(Some(default.clone())),
            None if !self.is_needed => Ok(None),
            None if self.kind.can_be_none() => Ok(Some(Value::Array(Vec::new()))),
            None => Err("it is needed".to_owned()),
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

    /// Whether nothing at all is a value of its own.
    fn can_be_none(&self) -> bool {
        matches!(self, Self::Several(_, count) if count.least == 0)
    }

    /// What can be typed.
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
                notes.push(format!("several, with commas: {}", choices.listed()));
                notes.extend(count.words("of them"));
            }
            Self::Json => notes.push("as JSON".to_owned()),
        }
        notes
    }

    /// What was typed, if it can be understood.
    fn parse(&self, typed: &str) -> Result<Value, String> {
        match self {
            // The one text that cannot be typed otherwise.
            Self::Text { .. } if typed == "\"\"" => Ok(Value::from("")),
            Self::Text { .. } => Ok(Value::from(typed)),
            Self::Number { is_whole: true, .. } => {
                let small = typed.parse::<i64>().map(Value::from);
                let number = small.or_else(|_| typed.parse::<u64>().map(Value::from));
                number.map_err(|_| "that is no whole number".to_owned())
            }
            Self::Number { .. } => match serde_json::from_str(typed) {
                Ok(number @ Value::Number(_)) => Ok(number),
                _ => {
                    let number = typed.parse::<f64>().ok();
                    let number = number.and_then(serde_json::Number::from_f64);
                    number
                        .map(Value::Number)
                        .ok_or("that is no number".to_owned())
                }
            },
            Self::Truth => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(Value::Bool(true)),
                "n" | "no" | "false" => Ok(Value::Bool(false)),
                _ => Err("that is neither y nor n".to_owned()),
            },
            Self::One(choices) => choices.find(typed),
            Self::Several(choices, _) => {
                let mut found = Vec::new();
                // A choice may have a comma in it, if it is the only one.
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

    /// Whether a value is what is wanted.
    fn fits(&self, value: &Value) -> Result<(), String> {
        let other = || Err("that is something else".to_owned());
        match (self, value) {
            (Self::Text { format, length }, Value::String(text)) => {
                length.holds(text.chars().count(), "characters")?;
                format
                    .as_deref()
                    .map_or(Ok(()), |format| formats::check(format, text))
            }
            (Self::Number { is_whole, range }, Value::Number(number)) => {
                if *is_whole && !(number.is_i64() || number.is_u64()) {
                    return Err("that is no whole number".to_owned());
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

    /// A value of this kind, for a person.
    fn shown(&self, value: &Value) -> String {
        match (self, value) {
            (Self::Truth, Value::Bool(true)) => "y".to_owned(),
            (Self::Truth, Value::Bool(false)) => "n".to_owned(),
            (Self::One(choices), one) => choices.title(one),
            (Self::Several(_, _), Value::Array(all)) if all.is_empty() => "none".to_owned(),
            (Self::Several(choices, _), Value::Array(all)) => {
                let titles: Vec<String> = all.iter().map(|one| choices.title(one)).collect();
                shown(&titles.join(", "), DESCRIPTION)
            }
            (Self::Text { .. }, Value::String(text)) if !text.trim().is_empty() => {
                shown(text, NAME)
            }
            (_, other) => shown(&other.to_string(), NAME),
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
                let wanted = self.words(what).unwrap_or_default();
                Err(format!("that is {count}, but it has to be {wanted}"))
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
            false => Err(format!("it has to be a number{}", self.words())),
        }
    }
}

/// The type of a field, also of one that may be null.
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

/// A text of somebody else on one line, harmless, and not longer than somebody reads.
pub(super) fn shown(text: &str, most: usize) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        // No more of it is looked at than can be shown.
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
