//! What is said of the arguments while they are prepared.

use super::Repair;
use super::coerce::integer;
use super::names::{IDS, fold};
use crate::Problem;
use serde_json::{Map, Value};

#[derive(Default)]
pub(super) struct Notes {
    pub(super) repairs: Vec<Repair>,
    pub(super) problems: Vec<Problem>,
}

impl Notes {
    pub(super) fn repair(&mut self, parameter: &str, change: impl Into<String>) {
        self.repairs.push(Repair {
            parameter: parameter.to_owned(),
            change: change.into(),
        });
    }

    /// Gives a parameter the value that came under another name. Who says both
    /// must say the same.
    pub(super) fn set(
        &mut self,
        arguments: &mut Map<String, Value>,
        (name, value): (&str, Value),
        alias: &str,
        change: String,
    ) {
        // An id that is blank says nothing, so the other one counts.
        let is_blank = |value: &Value| {
            IDS.contains(&fold(name).as_str())
                && value.as_str().is_some_and(|text| text.trim().is_empty())
        };
        let said = |value: &&Value| !value.is_null() && !is_blank(value);
        match arguments.get(name).filter(said) {
            Some(_) if is_blank(&value) => {
                self.repair(name, format!("\"{alias}\" was blank and was dropped"));
            }
            None => {
                arguments.insert(name.to_owned(), value);
                self.repair(name, change);
            }
            Some(same) if *same == value || is_same_number(same, &value) => {
                self.repair(name, format!("\"{alias}\" said the same and was dropped"));
            }
            Some(_) => self.problems.push(Problem::Conflict {
                name: name.to_owned(),
                alias: alias.to_owned(),
            }),
        }
    }

    /// Takes over what was noted about the inside of a parameter.
    pub(super) fn inside(&mut self, parameter: &str, inner: Self) {
        let within = |name: &str| format!("{parameter}.{name}");
        for Repair {
            parameter: field,
            change,
        } in inner.repairs
        {
            self.repair(&within(&field), change);
        }
        let problems = inner.problems.into_iter().map(|problem| match problem {
            Problem::Conflict { name, alias } => Problem::Conflict {
                name: within(&name),
                alias: within(&alias),
            },
            other => other,
        });
        self.problems.extend(problems);
    }
}

/// 5 and "5" say the same.
fn is_same_number(one: &Value, other: &Value) -> bool {
    integer(one).is_some_and(|number| integer(other) == Some(number))
}
