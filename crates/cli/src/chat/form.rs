//! A form that a tool wants to have filled in: what a person is shown of it, and what
//! they have said so far. On a screen or line by line, it is the same.

use super::fields::{self, Field};
use super::ink::{Line, Style};
use super::question::{block, fact};
use haft::ops::text::decode::visible;
use haft::{Error, Filled, Form};
use serde_json::{Map, Value};

/// How much is shown of what a tool asks, and of what is wrong with an answer.
const MESSAGE: usize = 4000;
const WRONG: usize = 200;

/// A form, and how far it is filled in.
#[derive(Debug)]
pub(crate) struct Sheet {
    form: Form,
    fields: Vec<Field>,
    /// The value of each field so far, none for one that is left out.
    said: Vec<Option<Value>>,
}

impl Sheet {
    /// # Errors
    /// When nobody could fill it in, in words.
    pub(crate) fn new(form: Form) -> Result<Self, String> {
        let refused = |why: String| {
            let tool = visible(&form.tool);
            format!("{tool} asked for something and was declined: {why}")
        };
        let fields = fields::of(&form.schema).map_err(refused)?;
        match form.check(&Value::Object(Map::new())) {
            Ok(()) | Err(Error::Invalid(_)) => {}
            Err(error) => return Err(refused(cut(&error.to_string()))),
        }
        Ok(Self {
            form,
            fields,
            said: Vec::new(),
        })
    }

    pub(crate) fn call_id(&self) -> &str {
        &self.form.call_id
    }

    /// What is shown first: who asks for what, and where it goes.
    pub(crate) fn lines(&self, columns: usize) -> Vec<Line> {
        let tool = &self.form.tool;
        let mut out = vec![
            Line::new(tool, Style::BOLD.and(Style::YELLOW))
                .and(" runs, and wants to know something from you:", Style::PLAIN),
        ];
        let message = &self.form.message;
        out.extend(block("message", message, Some(MESSAGE), columns));
        let titles: Vec<&str> = self.fields.iter().map(Field::title).collect();
        if !titles.is_empty() {
            out.push(fact("fields", &titles.join(", ")));
        }
        let warning = format!("your answer goes to {tool}; give it no password and no key");
        out.push(Line::new(&format!("  {warning}"), Style::YELLOW).hanging(4));
        out
    }

    /// Which field is the next; as many as there are when all are filled in.
    pub(crate) fn at(&self) -> usize {
        self.said.len()
    }

    /// What is asked next, on one line; none when all is said.
    pub(crate) fn prompt(&self) -> Option<String> {
        let field = self.fields.get(self.at())?;
        Some(format!("{} {}", self.place(), field.prompt()))
    }

    /// The same in a few words.
    pub(crate) fn short_prompt(&self) -> Option<String> {
        let field = self.fields.get(self.at())?;
        Some(format!("{} {}", self.place(), field.title()))
    }

    fn place(&self) -> String {
        format!("{}/{}", self.at() + 1, self.fields.len())
    }

    /// Takes what was typed for the next field.
    ///
    /// # Errors
    /// What is wrong with it. The same field is asked for again, or all of them where
    /// each is right and they are not together.
    pub(crate) fn take(&mut self, typed: &str) -> Result<(), String> {
        let Some(field) = self.fields.get(self.at()) else {
            return Ok(());
        };
        let value = field.read(typed)?;
        if let Some(value) = &value {
            let checked = self.form.check_field(field.name(), value);
            checked.map_err(|error| cut(&error.to_string()))?;
        }
        self.said.push(value);
        if self.at() < self.fields.len() {
            return Ok(());
        }
        self.form.check(&self.value()).map_err(|error| {
            self.again();
            cut(&format!("once more from the beginning: {error}"))
        })
    }

    /// Begins with the first field again.
    pub(crate) fn again(&mut self) {
        self.said.clear();
    }

    /// What the tool gets.
    pub(crate) fn filled(&self) -> Filled {
        Filled::Accepted(self.value())
    }

    fn value(&self) -> Value {
        let fields = self.fields.iter().zip(&self.said);
        let said = fields.filter_map(|(field, value)| {
            let value = value.clone()?;
            Some((field.name().to_owned(), value))
        });
        Value::Object(said.collect())
    }
}

/// Words about what a tool wants: its own may be among them.
fn cut(words: &str) -> String {
    fields::shown(words, WRONG)
}
