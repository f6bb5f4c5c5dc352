//! Options of a field, each with its number.

use super::{MAX_NAME, sanitize};
use serde_json::Value;

/// Maximum number of options to list. The others can be selected too.
const MAX_LISTED: usize = 30;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Choices {
    all: Vec<Choice>,
    /// Whether a bare number can only mean a position in the list.
    has_plain_numbers: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Choice {
    value: Value,
    /// Full name.
    title: String,
    /// The name as it is shown, sanitized and shortened.
    shown: String,
}

impl Choices {
    /// Returns the options of a schema, if it has any.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let titled = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
        let all: Vec<Choice> = match (schema["enum"].as_array(), titled) {
            (Some(values), _) => {
                let names = schema["enumNames"].as_array();
                let name = |at: usize| names.and_then(|names| names.get(at)?.as_str());
                let values = values.iter().enumerate();
                values
                    .map(|(at, value)| Choice::new(value, name(at)))
                    .collect()
            }
            (None, Some(options)) => options
                .iter()
                .map(|option| Some(Choice::new(option.get("const")?, option["title"].as_str())))
                .collect::<Option<_>>()?,
            (None, None) => return None,
        };
        if all.is_empty() {
            return None;
        }
        let is_place = |text: &str| {
            let number = text.trim().parse::<usize>();
            number.is_ok_and(|number| (1..=all.len()).contains(&number))
        };
        let has_plain_numbers = !all
            .iter()
            .any(|choice| is_place(&choice.title) || is_place(&text_of(&choice.value)));
        Some(Self {
            all,
            has_plain_numbers,
        })
    }

    pub(super) fn contains(&self, value: &Value) -> bool {
        self.all.iter().any(|choice| choice.value == *value)
    }

    pub(super) fn title(&self, value: &Value) -> String {
        let choice = self.all.iter().find(|choice| choice.value == *value);
        choice.map_or_else(String::new, |choice| choice.shown.clone())
    }

    /// Lists the options with their numbers.
    pub(super) fn listed(&self) -> String {
        let sign = if self.has_plain_numbers { "" } else { "#" };
        let mut listed: Vec<String> = self
            .all
            .iter()
            .take(MAX_LISTED)
            .enumerate()
            .map(|(at, choice)| format!("{sign}{} {}", at + 1, choice.shown))
            .collect();
        if let more @ 1.. = self.all.len().saturating_sub(MAX_LISTED) {
            listed.push(format!("and {more} more"));
        }
        listed.join(", ")
    }

    /// Finds the option that was typed: its name, its shown name, or its number.
    pub(super) fn find(&self, typed: &str) -> Result<Value, String> {
        let called = |is: &dyn Fn(&Choice) -> bool| {
            let mut found = self.all.iter().filter(|choice| is(choice));
            let first = found.next()?;
            // Options with the same name can only be selected by number.
            found.next().is_none().then(|| first.value.clone())
        };
        let folded = typed.to_lowercase();
        let found = called(&|choice| choice.title == typed || choice.shown == typed)
            .or_else(|| self.numbered(typed))
            .or_else(|| called(&|choice| text_of(&choice.value) == typed))
            .or_else(|| called(&|choice| choice.title.to_lowercase() == folded));
        found.ok_or_else(|| {
            let sign = if self.has_plain_numbers { "" } else { "#" };
            let last = self.all.len();
            let typed = sanitize(typed, MAX_NAME);
            format!("not one of the options: \"{typed}\"; enter a name or {sign}1 to {sign}{last}")
        })
    }

    fn numbered(&self, typed: &str) -> Option<Value> {
        let number = match typed.strip_prefix('#') {
            Some(number) => number,
            None if self.has_plain_numbers => typed,
            None => return None,
        };
        let at = number.parse::<usize>().ok()?.checked_sub(1)?;
        Some(self.all.get(at)?.value.clone())
    }
}

impl Choice {
    fn new(value: &Value, title: Option<&str>) -> Self {
        let title = match title.map(str::trim) {
            None | Some("") => text_of(value),
            Some(title) => title.to_owned(),
        };
        let shown = match sanitize(&title, MAX_NAME) {
            nothing if nothing.is_empty() => "\"\"".to_owned(),
            words => words,
        };
        Self {
            value: value.clone(),
            title,
            shown,
        }
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
