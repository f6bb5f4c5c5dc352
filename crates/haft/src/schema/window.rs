//! Converting a range of lines, given as its first and last line, for a tool that takes an
//! offset and a number of lines. Line numbers count from 1, as in editors; the description
//! of the offset says what it counts from. The conversion is exact, or refused.

use super::alias::truth;
use super::coerce::integer;
use super::names::fold;
use super::notes::Notes;
use super::parse;
use super::validate::shown;
use crate::Problem;
use serde_json::{Map, Value};

const FIRST: &[&str] = &[
    "startline",
    "startlinenumber",
    "startlineoneindexed",
    "fromline",
    "firstline",
    "linestart",
    "linenumber",
    "line",
];

const LAST: &[&str] = &[
    "endline",
    "endlinenumber",
    "endlineoneindexed",
    "endlineinclusive",
    "endlineoneindexedinclusive",
    "toline",
    "lastline",
    "lineend",
];

/// `[first, last]`, where -1 is the end of the file.
const BOTH: &[&str] = &["viewrange", "linerange"];

const WHOLE: &[&str] = &["shouldreadentirefile", "readentirefile"];

/// A line number and the name it was given under.
struct LineNumber {
    name: String,
    number: i64,
}

pub(super) fn rename(
    arguments: &mut Map<String, Value>,
    known: &Map<String, Value>,
    notes: &mut Notes,
) {
    let Some(base) = base(known) else {
        return;
    };
    let (first, last) = take_lines(arguments, known, notes);
    // The first line, counted from 1, whichever parameter gave it.
    let begin = match (&first, arguments.get("offset")) {
        (Some(first), _) => Some(first.number),
        (None, None | Some(Value::Null)) => Some(1),
        (None, Some(offset)) => {
            integer(offset).map(|offset| offset.max(base).saturating_sub(base).saturating_add(1))
        }
    };
    if let Some(LineNumber { name, number }) = &first {
        let offset = number.saturating_sub(1).saturating_add(base);
        let change = if base == 1 {
            format!("taken from \"{name}\"")
        } else {
            format!("{offset} counted from {base}: \"{name}\" is {number} counted from 1")
        };
        notes.set(arguments, ("offset", offset.into()), name, change);
    }
    let Some(last) = last else {
        return;
    };
    let Some(begin) = begin else {
        // Not understood, so it is put back and reported.
        arguments.insert(last.name, last.number.into());
        return;
    };
    let wrong = match &first {
        Some(first) if begin < 1 => Some((first, 1)),
        _ if last.number < begin => Some((&last, begin)),
        _ => None,
    };
    if let Some((line, least)) = wrong {
        notes.problem(Problem::Wrong {
            name: line.name.clone(),
            wanted: format!("at least {least}"),
            got: line.number.to_string(),
        });
        return;
    }
    let lines = last.number.saturating_sub(begin).saturating_add(1);
    let change = format!("{lines}: from line {begin} to \"{}\"", last.name);
    notes.set(arguments, ("limit", lines.into()), &last.name, change);
}

/// Drops a flag that asks for the whole file, if no part is requested.
pub(super) fn whole(
    arguments: &mut Map<String, Value>,
    known: &Map<String, Value>,
    notes: &mut Notes,
) {
    if base(known).is_none() || arguments.contains_key("offset") || arguments.contains_key("limit")
    {
        return;
    }
    arguments.retain(|name, value| {
        let is_wish = WHOLE.contains(&fold(name).as_str()) && truth(value) == Some(true);
        if is_wish {
            notes.repair(name, "dropped: already the default");
        }
        !is_wish
    });
}

/// Returns what the offset of a tool counts from, according to its description.
fn base(known: &Map<String, Value>) -> Option<i64> {
    let description = known.get("offset")?.get("description")?.as_str()?;
    known.get("limit")?;
    if description.contains("counted from 0") {
        Some(0)
    } else {
        description.contains("counted from 1").then_some(1)
    }
}

/// Takes the line numbers out of the arguments. Anything that is not a line number is a
/// problem.
fn take_lines(
    arguments: &mut Map<String, Value>,
    known: &Map<String, Value>,
    notes: &mut Notes,
) -> (Option<LineNumber>, Option<LineNumber>) {
    let (mut first, mut last) = (None, None);
    let names: Vec<String> = arguments
        .keys()
        .filter(|name| !known.contains_key(*name))
        .cloned()
        .collect();
    for name in names {
        let folded = fold(&name);
        let says = |names: &[&str]| names.contains(&folded.as_str());
        let (is_first, is_last, is_both) = (says(FIRST), says(LAST), says(BOTH));
        if !is_first && !is_last && !is_both {
            continue;
        }
        // Null means that nothing was given.
        let Some(value) = arguments.remove(&name).filter(|value| !value.is_null()) else {
            continue;
        };
        let numbers = if is_both {
            range(&value)
        } else {
            integer(&value).map(|number| (number, Some(number)))
        };
        let Some((begin, end)) = numbers else {
            let wanted = if is_both {
                "the numbers of the first and last line"
            } else {
                "an integer"
            };
            notes.problem(Problem::Wrong {
                name,
                wanted: wanted.to_owned(),
                got: shown(&value),
            });
            continue;
        };
        if !is_last {
            put(&mut first, &name, begin, notes);
        }
        if let Some(end) = end.filter(|_| !is_first) {
            put(&mut last, &name, end, notes);
        }
    }
    (first, last)
}

fn put(line: &mut Option<LineNumber>, name: &str, number: i64, notes: &mut Notes) {
    match line {
        Some(other) if other.number != number => notes.problem(Problem::Conflict {
            name: other.name.clone(),
            alias: name.to_owned(),
        }),
        Some(_) => {}
        None => {
            *line = Some(LineNumber {
                name: name.to_owned(),
                number,
            });
        }
    }
}

fn range(value: &Value) -> Option<(i64, Option<i64>)> {
    let list = match value {
        Value::String(text) => parse::nested(text)?,
        other => other.clone(),
    };
    let [first, last] = list.as_array()?.as_slice() else {
        return None;
    };
    let last = integer(last)?;
    Some((integer(first)?, (last != -1).then_some(last)))
}
