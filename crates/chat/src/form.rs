//! A form that a tool wants filled in: how it is shown, and the values so far. Shared by
//! the screen and plain lines.

use crate::fields::{self, Field};
use crate::question::{block, fact};
use crate::styled_text::{Line, Style, plain_text};
use haft::ops::text::decode::visible;
use haft::{Error, Filled, Form};
use serde_json::{Map, Value};

/// Maximum length of a tool's message and of an error, in characters.
const MAX_MESSAGE: usize = 4000;
const MAX_ERROR: usize = 200;

/// A form and the values entered so far.
#[derive(Debug)]
pub struct FormState {
    form: Form,
    fields: Vec<Field>,
    /// Value of each field so far; `None` for a field that is left out.
    values: Vec<Option<Value>>,
}

impl FormState {
    /// Starts with the first field.
    ///
    /// # Errors
    /// If the form cannot be filled in, with a message for the user.
    pub fn new(form: Form) -> Result<Self, String> {
        let refused = |why: String| {
            let tool = visible(&form.tool);
            format!("declined a form from {tool}: {why}")
        };
        let fields = fields::from_schema(&form.schema).map_err(refused)?;
        match form.check(&Value::Object(Map::new())) {
            Ok(()) | Err(Error::Invalid(_)) => {}
            Err(error) => return Err(refused(shorten(&error.to_string()))),
        }
        Ok(Self {
            form,
            fields,
            values: Vec::new(),
        })
    }

    pub(crate) fn call_id(&self) -> &str {
        &self.form.call_id
    }

    /// Returns the introduction as plain text: which tool asks for what, and where the
    /// answer goes.
    pub fn introduction(&self, columns: usize) -> String {
        plain_text(&self.lines(columns), columns)
    }

    pub(crate) fn lines(&self, columns: usize) -> Vec<Line> {
        let tool = &self.form.tool;
        let mut out = vec![
            Line::new(tool, Style::BOLD.and(Style::YELLOW))
                .and(" is running and asks for input:", Style::PLAIN),
        ];
        let message = &self.form.message;
        out.extend(block("message", message, Some(MAX_MESSAGE), columns));
        let titles: Vec<&str> = self.fields.iter().map(Field::title).collect();
        if !titles.is_empty() {
            out.push(fact("fields", &titles.join(", ")));
        }
        let warning = format!("your answer goes to {tool}; do not enter passwords or keys");
        out.push(Line::new(&format!("  {warning}"), Style::YELLOW).hanging(4));
        out
    }

    /// Index of the next field; the number of fields when all are filled in.
    pub(crate) fn next_index(&self) -> usize {
        self.values.len()
    }

    /// Returns the prompt of the next field, on one line; `None` when all are filled in.
    pub fn prompt(&self) -> Option<String> {
        let field = self.fields.get(self.next_index())?;
        Some(format!("{} {}", self.progress(), field.prompt()))
    }

    /// Prompt without the description.
    pub(crate) fn short_prompt(&self) -> Option<String> {
        let field = self.fields.get(self.next_index())?;
        Some(format!("{} {}", self.progress(), field.title()))
    }

    fn progress(&self) -> String {
        format!("{}/{}", self.next_index() + 1, self.fields.len())
    }

    /// Enters the user's input for the next field.
    ///
    /// # Errors
    /// If the input is not valid: the same field is asked for again. If each field is valid
    /// but the whole form is not, the form starts over.
    pub fn enter(&mut self, typed: &str) -> Result<(), String> {
        let Some(field) = self.fields.get(self.next_index()) else {
            return Ok(());
        };
        let value = field.parse(typed)?;
        if let Some(value) = &value {
            let checked = self.form.check_field(field.name(), value);
            checked.map_err(|error| shorten(&error.to_string()))?;
        }
        self.values.push(value);
        if self.next_index() < self.fields.len() {
            return Ok(());
        }
        self.form.check(&self.value()).map_err(|error| {
            self.start_over();
            shorten(&format!("start over: {error}"))
        })
    }

    /// Starts over with the first field.
    pub(crate) fn start_over(&mut self) {
        self.values.clear();
    }

    /// Returns the result for the tool, once all fields are filled in.
    pub fn filled(&self) -> Filled {
        Filled::Accepted(self.value())
    }

    fn value(&self) -> Value {
        let fields = self.fields.iter().zip(&self.values);
        let values = fields.filter_map(|(field, value)| {
            let value = value.clone()?;
            Some((field.name().to_owned(), value))
        });
        Value::Object(values.collect())
    }
}

/// Sanitizes an error message, which may contain text from the tool.
fn shorten(words: &str) -> String {
    fields::sanitize(words, MAX_ERROR)
}
