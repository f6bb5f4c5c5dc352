//! Other names for the same parameter: where only one can be meant, it is meant.

use super::names::{CLAIMS, Claim, FOLDERS, GROUPS, OPPOSITES, fold};
use super::notes::Notes;
use crate::Problem;
use serde_json::{Map, Value};

/// Who sends more names that the tool does not have means none of its parameters by
/// them: they are told which are unknown.
const MOST_UNKNOWN: usize = 100;

/// What a name that the tool does not have stands for.
enum Meant {
    This(String),
    /// This one, and the other way round.
    Opposite(String),
    /// It would be this one, if that did not count in something else.
    Misfit(String),
    Nothing,
}

pub(super) fn rename(arguments: &mut Map<String, Value>, schema: &Value, notes: &mut Notes) {
    let Some(known) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    let unknown: Vec<String> = arguments
        .keys()
        .filter(|name| !known.contains_key(*name))
        .take(MOST_UNKNOWN + 1)
        .cloned()
        .collect();
    if unknown.len() > MOST_UNKNOWN {
        return;
    }
    for name in unknown {
        let Some(given) = arguments.get(&name).cloned() else {
            continue;
        };
        let (meant, value, how) = match meant(&name, &given, known) {
            // Nothing was given, under whatever name.
            Meant::This(_) | Meant::Opposite(_) if given.is_null() => {
                arguments.remove(&name);
                continue;
            }
            Meant::This(meant) => (meant, given, "taken from"),
            Meant::Opposite(meant) => match truth(&given) {
                Some(truth) => (meant, Value::Bool(!truth), "the opposite of"),
                None => continue,
            },
            Meant::Misfit(near) => {
                arguments.remove(&name);
                notes.problem(misfit(&name, &near, known));
                continue;
            }
            Meant::Nothing => continue,
        };
        arguments.remove(&name);
        let change = format!("{how} \"{name}\"");
        notes.set(arguments, (&meant, value), &name, change);
    }
}

/// The one parameter a name can mean.
fn meant(name: &str, value: &Value, known: &Map<String, Value>) -> Meant {
    let folded = fold(name);
    if let Some(same) = known.keys().find(|known| fold(known) == folded) {
        return Meant::This(same.clone());
    }
    let claims: Vec<&Claim> = CLAIMS
        .iter()
        .filter(|claim| claim.names.contains(&folded.as_str()))
        .collect();
    let mut candidates = Vec::new();
    let mut misfits = Vec::new();
    for (known, parameter) in known {
        // A flag is never a text or a number by another name.
        if value.is_boolean() && parameter.get("type").is_some_and(|kind| kind != "boolean") {
            continue;
        }
        if FOLDERS.contains(&folded.as_str()) && is_file(parameter) {
            continue;
        }
        let own = fold(known);
        let is_grouped = GROUPS
            .iter()
            .any(|group| group.contains(&folded.as_str()) && group.contains(&own.as_str()));
        let claim = claims.iter().find(|claim| claim.parameter == own);
        if is_grouped || claim.is_some_and(|claim| has_word(description(parameter), claim.word)) {
            candidates.push(known);
        } else if claim.is_some() {
            misfits.push(known);
        }
    }
    match (candidates.as_slice(), misfits.as_slice()) {
        ([one], _) => Meant::This((*one).clone()),
        ([], [near]) => Meant::Misfit((*near).clone()),
        ([], []) => opposite(&folded, known),
        _ => Meant::Nothing,
    }
}

fn opposite(folded: &str, known: &Map<String, Value>) -> Meant {
    let opposites = OPPOSITES.iter().find(|(names, _)| names.contains(&folded));
    let meant = opposites.and_then(|(_, of)| known.keys().find(|known| fold(known) == *of));
    meant.map_or(Meant::Nothing, |meant| Meant::Opposite(meant.clone()))
}

/// Whether a parameter is a file and cannot be a folder. What it is stands at the
/// beginning: the rest may say to which folder it is relative.
fn is_file(parameter: &Value) -> bool {
    let what = description(parameter).split([',', '.', '(']).next();
    what.is_some_and(|what| has_word(what, "file") && !has_word(what, "directory"))
}

pub(super) fn description(parameter: &Value) -> &str {
    let description = parameter.get("description").and_then(Value::as_str);
    description.unwrap_or_default()
}

pub(super) fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric())
        .any(|other| other.eq_ignore_ascii_case(word))
}

/// Says what the parameter is, so that nobody puts the same value under its name.
fn misfit(name: &str, near: &str, known: &Map<String, Value>) -> Problem {
    let description = known.get(near).map(description).unwrap_or_default();
    let description = description.trim_end_matches('.');
    Problem::Other(format!(
        "unknown parameter \"{name}\", did you mean \"{near}\"? That is: {description}"
    ))
}

/// A flag, also as text.
pub(super) fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        },
        _ => None,
    }
}
