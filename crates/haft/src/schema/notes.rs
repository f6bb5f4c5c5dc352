//! What is said of the arguments while they are prepared.

use super::Repair;
use super::coerce::integer;
use super::names::{IDS, fold};
use crate::{Invalid, Problem};
use haft_ops::text::brief::{NAME, brief};
use serde_json::{Map, Value};

/// More problems than this help nobody.
pub(super) const MOST_PROBLEMS: usize = 10;
/// Nor does anybody read more repairs.
const MOST_REPAIRS: usize = 50;
/// How many characters of a repair are kept.
const REPAIR: usize = 300;

/// However much there is to say about the arguments, only so much of it is kept; the
/// rest is counted.
#[derive(Default)]
pub(super) struct Notes {
    repairs: Vec<Repair>,
    more_repairs: usize,
    problems: Vec<Problem>,
    more_problems: usize,
}

impl Notes {
    pub(super) fn repair(&mut self, parameter: &str, change: impl AsRef<str>) {
        if self.repairs.len() >= MOST_REPAIRS {
            self.more_repairs += 1;
            return;
        }
        self.repairs.push(Repair {
            parameter: brief(parameter, NAME),
            change: brief(change.as_ref(), REPAIR),
        });
    }

    pub(super) fn problem(&mut self, problem: Problem) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(problem.shortened());
            return;
        }
        self.more_problems += 1;
        // What is missing matters more than what is too much.
        let is_missing = |problem: &Problem| matches!(problem, Problem::Missing(_));
        let mut others = self.problems.iter_mut().rev();
        if is_missing(&problem)
            && let Some(other) = others.find(|other| !is_missing(other))
        {
            *other = problem.shortened();
        }
    }

    /// Counts problems that nobody looked at.
    pub(super) fn more_problems(&mut self, more: usize) {
        self.more_problems += more;
    }

    /// The repairs, if nothing is wrong.
    pub(super) fn into_repairs(self) -> Result<Vec<Repair>, Invalid> {
        let Self {
            mut repairs,
            more_repairs,
            mut problems,
            more_problems,
        } = self;
        if !problems.is_empty() {
            // Missing ones first: that line is what a caller reads.
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
            Some(_) => self.problem(Problem::Conflict {
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

/// 5 and "5" say the same.
fn is_same_number(one: &Value, other: &Value) -> bool {
    integer(one).is_some_and(|number| integer(other) == Some(number))
}
