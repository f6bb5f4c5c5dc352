//! Repairs and problems that are collected while arguments are prepared.

use super::Repair;
use super::coerce::integer;
use super::names::{IDS, fold};
use super::parse;
use crate::json::{MAX_VALUES, Shape};
use crate::{Invalid, Problem};
use haft_ops::text::brief::{NAME, brief};
use serde_json::{Map, Value};

/// Maximum number of problems that are reported.
pub(super) const MAX_PROBLEMS: usize = 10;
/// Maximum number of repairs that are listed.
const MAX_REPAIRS: usize = 50;
/// Maximum length of a repair, in characters.
const REPAIR: usize = 300;

/// The collected repairs and problems. Beyond the limits they are only counted.
#[derive(Default)]
pub(super) struct Notes {
    repairs: Vec<Repair>,
    more_repairs: usize,
    problems: Vec<Problem>,
    more_problems: usize,
    /// Number of values parsed from strings.
    parsed_values: usize,
}

impl Notes {
    /// Parses an object or a list that was given as a string. All strings of a call share
    /// one limit, because each value takes many times its length.
    pub(super) fn nested(&mut self, text: &str) -> Option<Value> {
        if !text.trim_start().starts_with(['{', '[']) {
            return None;
        }
        let seen = Shape::of(text.as_bytes()).values();
        self.take(seen)?;
        let value = parse::nested(text)?;
        // Text with the quotation marks of Python may have more values than it seems to.
        let found = Shape::of(value.to_string().as_bytes()).values();
        self.take(found.saturating_sub(seen))?;
        Some(value)
    }

    /// Counts values against the limit. `None` if there are too many.
    fn take(&mut self, values: usize) -> Option<()> {
        if self.parsed_values + values > MAX_VALUES {
            self.problem(Problem::Other(format!(
                "the arguments are too large: the lists and objects in their strings have more \
                 than {MAX_VALUES} values; send less at once"
            )));
            return None;
        }
        self.parsed_values += values;
        Some(())
    }

    pub(super) fn repair(&mut self, parameter: &str, change: impl AsRef<str>) {
        if self.repairs.len() >= MAX_REPAIRS {
            self.more_repairs += 1;
            return;
        }
        self.repairs.push(Repair {
            parameter: brief(parameter, NAME),
            change: brief(change.as_ref(), REPAIR),
        });
    }

    pub(super) fn problem(&mut self, problem: Problem) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem.shortened());
            return;
        }
        self.more_problems += 1;
        // Missing parameters matter more than unknown ones.
        let is_missing = |problem: &Problem| matches!(problem, Problem::Missing(_));
        let mut others = self.problems.iter_mut().rev();
        if is_missing(&problem)
            && let Some(other) = others.find(|other| !is_missing(other))
        {
            *other = problem.shortened();
        }
    }

    /// Counts problems that were not examined.
    pub(super) fn more_problems(&mut self, more: usize) {
        self.more_problems += more;
    }

    /// Returns the repairs, or the problems if there are any.
    pub(super) fn into_repairs(self) -> Result<Vec<Repair>, Invalid> {
        let Self {
            mut repairs,
            more_repairs,
            mut problems,
            more_problems,
            parsed_values: _,
        } = self;
        if !problems.is_empty() {
            // Missing parameters come first, because callers show the first line.
            problems.sort_by_key(|problem| !matches!(problem, Problem::Missing(_)));
            if more_problems > 0 {
                problems.push(Problem::Other(format!("and {more_problems} more problems")));
            }
            return Err(Invalid { problems });
        }
        if more_repairs > 0 {
            repairs.push(Repair {
                parameter: String::new(),
                change: format!("and {more_repairs} more repairs"),
            });
        }
        Ok(repairs)
    }

    /// Gives a parameter the value that came under another name. If both names were given,
    /// the values must be equal.
    pub(super) fn set(
        &mut self,
        arguments: &mut Map<String, Value>,
        (name, value): (&str, Value),
        alias: &str,
        change: String,
    ) {
        // A blank id has no meaning, so the other value counts.
        let is_blank = |value: &Value| {
            IDS.contains(&fold(name).as_str())
                && value.as_str().is_some_and(|text| text.trim().is_empty())
        };
        let has_value = |value: &&Value| !value.is_null() && !is_blank(value);
        match arguments.get(name).filter(has_value) {
            Some(_) if is_blank(&value) => {
                self.repair(name, format!("\"{alias}\" was blank and was dropped"));
            }
            None => {
                arguments.insert(name.to_owned(), value);
                self.repair(name, change);
            }
            Some(same) if *same == value || is_same_number(same, &value) => {
                self.repair(
                    name,
                    format!("\"{alias}\" had the same value and was dropped"),
                );
            }
            Some(_) => self.problem(Problem::Conflict {
                name: name.to_owned(),
                alias: alias.to_owned(),
            }),
        }
    }

    /// Adds the notes about the inside of a parameter.
    pub(super) fn inside(&mut self, parameter: &str, inner: Self) {
        let within = |name: &str| format!("{parameter}.{name}");
        for Repair {
            parameter: field,
            change,
        } in inner.repairs
        {
            self.repair(&within(&field), change);
        }
        for problem in inner.problems {
            self.problem(match problem {
                Problem::Conflict { name, alias } => Problem::Conflict {
                    name: within(&name),
                    alias: within(&alias),
                },
                other => other,
            });
        }
        self.more_repairs += inner.more_repairs;
        self.more_problems += inner.more_problems;
    }
}

/// Whether both are the same number, as in 5 and "5".
fn is_same_number(one: &Value, other: &Value) -> bool {
    integer(one).is_some_and(|number| integer(other) == Some(number))
}
