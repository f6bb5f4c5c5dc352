//! Arguments of calls: the schema that a model sees, repair, and validation.
//!
//! The order is fixed: parse, rename known aliases, coerce types, clamp ranges, validate
//! against the schema that the model saw. All repairs are listed, and an argument with two
//! possible meanings is never guessed.

mod alias;
mod coerce;
mod example;
mod extra;
mod generate;
mod lenient_json;
mod limits;
mod names;
mod notes;
mod parse;
mod references;
mod result;
#[cfg(test)]
mod tests;
mod validate;
mod window;
mod words;
mod work;

pub use example::ExampleParameters;
pub use parse::parse_arguments;
pub use result::{ResultFit, ResultSchema};

pub(crate) use generate::{check, of};

use crate::{Error, Invalid, Problem};
use notes::Notes;
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::OnceLock;
use work::Work;

/// A change to arguments that did not match the schema but had only one possible meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// Name of the parameter.
    pub parameter: String,
    /// Description of the change.
    pub change: String,
}

impl Repair {
    /// Returns the parameter, if it was dropped because the tool does not have it.
    pub(crate) fn ignored(&self) -> Option<&str> {
        let reason = self.change.strip_prefix(extra::DROPPED)?;
        (reason == extra::NOT_THERE).then_some(self.parameter.as_str())
    }
}

/// How to handle a number outside its documented range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ranges {
    /// Use the nearest valid number: for tools of a toolset.
    Clamp,
    /// Refuse it: for tools whose range another program enforces.
    Refuse,
}

/// Checks the arguments of one tool. The schema is compiled on the first call.
#[derive(Debug)]
pub(crate) struct Checker {
    schema: Value,
    ranges: Ranges,
    compiled: OnceLock<Result<jsonschema::Validator, String>>,
}

impl Checker {
    pub(crate) fn new(schema: &Value, ranges: Ranges) -> Self {
        Self {
            schema: schema.clone(),
            ranges,
            compiled: OnceLock::new(),
        }
    }

    /// Repairs and validates arguments.
    pub(crate) fn prepare(&self, arguments: Value) -> Result<(Value, Vec<Repair>), Error> {
        let mut notes = Notes::default();
        let mut arguments = object(arguments, &mut notes).map_err(Error::Invalid)?;
        let ours = self.schema.get("properties").and_then(Value::as_object);
        let ours = ours.filter(|_| self.ranges == Ranges::Clamp);
        if let Some(known) = ours {
            extra::unwrap(&mut arguments, known, &mut notes);
        }
        alias::rename(&mut arguments, &self.schema, &mut notes);
        // For external tools, only their schema decides about unknown fields.
        if let Some(known) = ours {
            window::rename(&mut arguments, known, &mut notes);
            window::whole(&mut arguments, known, &mut notes);
            let required = self.schema.get("required");
            extra::drop(&mut arguments, known, required, &mut notes);
        }
        coerce::arguments(&mut arguments, &self.schema, self.ranges, &mut notes);
        let arguments = Value::Object(arguments);
        let compiled = self
            .compiled
            .get_or_init(|| generate::compile(&self.schema));
        let validator = compiled.as_ref().map_err(|reason| {
            Error::Fault(format!("the tool's schema cannot be used: {reason}"))
        })?;
        // A tool of a toolset has a small, flat schema.
        let work = match self.ranges {
            Ranges::Clamp => Work::Small,
            Ranges::Refuse => Work::of(&self.schema, &arguments),
        };
        match work {
            Work::Small => validate::problems(validator, &arguments, &self.schema, &mut notes),
            Work::Large if validator.is_valid(&arguments) => {}
            Work::Large => notes.problem(Problem::Other(
                "the arguments do not match the tool's schema; with this many values, haft \
                 cannot say where"
                    .to_owned(),
            )),
            Work::TooLarge => notes.problem(Problem::Other(
                "the arguments have too many values to check against the tool's schema; send \
                 less at once"
                    .to_owned(),
            )),
        }
        let repairs = notes.into_repairs().map_err(Error::Invalid)?;
        Ok((arguments, repairs))
    }
}

/// Returns the arguments as an object, whatever form they came in.
fn object(arguments: Value, notes: &mut Notes) -> Result<Map<String, Value>, Invalid> {
    let arguments = match arguments {
        Value::String(text) => {
            let (parsed, repaired) = parse::parse(&text)?;
            for change in repaired {
                notes.repair("", change);
            }
            parsed
        }
        other => other,
    };
    match arguments {
        Value::Object(arguments) => Ok(arguments),
        Value::Null => Ok(Map::new()),
        other => Err(parse::not_an_object(&other)),
    }
}
