//! Aliases of parameters: renames an unknown parameter if only one known parameter can be
//! meant.

use super::names::{CLAIMS, Claim, FOLDERS, GROUPS, OPPOSITES, fold};
use super::notes::Notes;
use crate::Problem;
use serde_json::{Map, Value};

/// Maximum number of unknown names that are looked up. With more, none of them is an alias,
/// and they are reported as unknown.
const MAX_UNKNOWN: usize = 100;

/// The meaning of an unknown name.
enum AliasMatch {
    This(String),
    /// This parameter, with the opposite value.
    Opposite(String),
    /// Would be this parameter, but in another unit or kind.
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
        .take(MAX_UNKNOWN + 1)
        .cloned()
        .collect();
    if unknown.len() > MAX_UNKNOWN {
        return;
    }
    for name in unknown {
        let Some(given) = arguments.get(&name).cloned() else {
            continue;
        };
        let (parameter_name, value, how) = match resolve_alias(&name, &given, known) {
            // A null under any name means that nothing was given.
            AliasMatch::This(_) | AliasMatch::Opposite(_) if given.is_null() => {
                arguments.remove(&name);
                continue;
            }
            AliasMatch::This(parameter_name) => (parameter_name, given, "taken from"),
            AliasMatch::Opposite(parameter_name) => match truth(&given) {
                Some(truth) => (parameter_name, Value::Bool(!truth), "the opposite of"),
                None => continue,
            },
            AliasMatch::Misfit(near) => {
                arguments.remove(&name);
                notes.problem(misfit(&name, &near, known));
                continue;
            }
            AliasMatch::Nothing => continue,
        };
        arguments.remove(&name);
        let change = format!("{how} \"{name}\"");
        notes.set(arguments, (&parameter_name, value), &name, change);
    }
}

/// Whether a name is another one for some parameter, even if it is not clear which.
pub(super) fn may_be_known(name: &str, value: &Value, known: &Map<String, Value>) -> bool {
    let folded = fold(name);
    let grouped = |own: &str| {
        GROUPS
            .iter()
            .any(|group| group.contains(&folded.as_str()) && group.contains(&own))
    };
    known.keys().any(|known| grouped(&fold(known)))
        || !matches!(resolve_alias(name, value, known), AliasMatch::Nothing)
}

/// Returns the single parameter that a name can mean.
fn resolve_alias(name: &str, value: &Value, known: &Map<String, Value>) -> AliasMatch {
    let folded = fold(name);
    if let Some(same) = known.keys().find(|known| fold(known) == folded) {
        return AliasMatch::This(same.clone());
    }
    let claims: Vec<&Claim> = CLAIMS
        .iter()
        .filter(|claim| claim.names.contains(&folded.as_str()))
        .collect();
    let mut candidates = Vec::new();
    let mut misfits = Vec::new();
    for (known, parameter) in known {
        // A flag is never an alias of a text or a number.
        let kind = parameter.get("type").or_else(|| parameter.get("anyOf"));
        if value.is_boolean() && kind.is_some_and(|kind| kind != "boolean") {
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
        ([one], _) => AliasMatch::This((*one).clone()),
        ([], [near]) => AliasMatch::Misfit((*near).clone()),
        ([], []) => opposite(&folded, known),
        _ => AliasMatch::Nothing,
    }
}

fn opposite(folded: &str, known: &Map<String, Value>) -> AliasMatch {
    let opposites = OPPOSITES.iter().find(|(names, _)| names.contains(&folded));
    let parameter_name =
        opposites.and_then(|(_, of)| known.keys().find(|known| fold(known) == *of));
    parameter_name.map_or(AliasMatch::Nothing, |parameter_name| {
        AliasMatch::Opposite(parameter_name.clone())
    })
}

/// Whether a parameter is a file and cannot be a folder. Only the start of the description
/// counts: the rest may mention the folder that it is relative to.
fn is_file(parameter: &Value) -> bool {
    let what = description(parameter).split([',', '.', '(']).next();
    what.is_some_and(|what| has_word(what, "file") && !has_word(what, "directory"))
}

pub(super) fn description(parameter: &Value) -> &str {
    let first = || parameter.get("anyOf")?.get(0)?.get("description");
    let description = parameter.get("description").or_else(first);
    description.and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric())
        .any(|other| other.eq_ignore_ascii_case(word))
}

/// Returns a problem that describes the similar parameter, so that the model does not just
/// reuse the value under that name.
fn misfit(name: &str, near: &str, known: &Map<String, Value>) -> Problem {
    let description = known.get(near).map(description).unwrap_or_default();
    let description = description.trim_end_matches('.');
    Problem::Other(format!(
        "unknown parameter \"{name}\", did you mean \"{near}\"? That is: {description}"
    ))
}

/// Parses a flag, which may be given as text.
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
