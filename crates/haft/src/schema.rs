//! Arguments: what a model sees of them, what is understood of what it sends,
//! and what is refused.
//!
//! The order is fixed: parse, rename known aliases, coerce, clamp, validate
//! against the very schema the model saw. Whatever was repaired is listed, and
//! nothing is guessed between two meanings.

mod alias;
mod coerce;
mod extra;
mod generate;
mod mend;
mod names;
mod notes;
mod parse;
mod references;
mod shape;
#[cfg(test)]
mod tests;
mod validate;
mod window;
mod words;

pub use parse::parse_arguments;
pub use shape::{Fit, Shape};

pub(crate) use generate::{check, of};

use crate::{Error, Invalid};
use notes::Notes;
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::OnceLock;

/// Something in the arguments that was understood although it was not written
/// as the schema says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// The parameter.
    pub parameter: String,
    /// What was done.
    pub change: String,
}

/// What to do with a number outside its documented range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ranges {
    /// Take the nearest one that is inside: tools of our own.
    Clamp,
    /// Refuse it: the range is somebody else's contract.
    Refuse,
}

/// Checks the arguments of one tool. The schema is compiled at the first call.
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

    pub(crate) fn ranges(&self) -> Ranges {
        self.ranges
    }

    /// Repairs and validates.
    pub(crate) fn prepare(&self, arguments: Value) -> Result<(Value, Vec<Repair>), Error> {
        let mut notes = Notes::default();
        let mut arguments = object(arguments, &mut notes).map_err(Error::Invalid)?;
        let ours = self.schema.get("properties").and_then(Value::as_object);
        let ours = ours.filter(|_| self.ranges == Ranges::Clamp);
        if let Some(known) = ours {
            extra::unwrap(&mut arguments, known, &mut notes);
        }
        alias::rename(&mut arguments, &self.schema, &mut notes);
        // What is in the way of somebody else's tool is for its schema to say.
        if let Some(known) = ours {
            window::rename(&mut arguments, known, &mut notes);
            window::whole(&mut arguments, known, &mut notes);
            extra::drop(&mut arguments, known, &mut notes);
        }
        coerce::arguments(&mut arguments, &self.schema, self.ranges, &mut notes);
        let arguments = Value::Object(arguments);
        let compiled = self
            .compiled
            .get_or_init(|| generate::compile(&self.schema));
        let validator = compiled.as_ref().map_err(|reason| {
            Error::Fault(format!("the tool's schema cannot be used: {reason}"))
        })?;
        validate::problems(validator, &arguments, &self.schema, &mut notes);
        let repairs = notes.into_repairs().map_err(Error::Invalid)?;
        Ok((arguments, repairs))
    }
}

/// The arguments as an object, whatever they came as.
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
