//! Dropping extra arguments that ask for nothing; each is listed as a repair.

use super::alias::{may_be_known, truth};
use super::limits;
use super::names::{NEW, OFF, OLD, ON_IN_SEARCH, REASONS, WRAPPERS, fold};
use super::notes::Notes;
use super::parse;
use serde_json::{Map, Value};

/// Maximum number of unknown parameters to drop.
const MAX_DROPPED: usize = 20;

/// Start of a repair that drops a parameter.
pub(super) const DROPPED: &str = "dropped: ";

/// Reason to drop most unknown parameters. The reply names these.
pub(super) const NOT_THERE: &str = "the tool has no such parameter";

/// Drops parameters that the tool does not have and that resemble none it has. One that
/// would limit or redirect the call is a problem.
pub(super) fn drop(
    arguments: &mut Map<String, Value>,
    known: &Map<String, Value>,
    required: Option<&Value>,
    notes: &mut Notes,
) {
    let known_names: Vec<String> = known.keys().cloned().collect();
    let mut required = required.and_then(Value::as_array).into_iter().flatten();
    // Something unknown may be what is missing, and a whole object of other things is not
    // a slip.
    let unclear = known.is_empty()
        || arguments.len() > known.len() + MAX_DROPPED
        || required.any(|name| {
            name.as_str()
                .is_some_and(|name| !arguments.contains_key(name))
        });
    let searches = known.contains_key("pattern") && known.contains_key("glob");
    arguments.retain(|name, value| {
        if known.contains_key(name) {
            return true;
        }
        let name_says = |names: &[&str]| names.contains(&fold(name).as_str());
        let is_reason = || {
            limits::words(name)
                .iter()
                .any(|word| REASONS.contains(&word.as_str()))
        };
        let why = if value.is_null() {
            "it is null"
        } else if value.is_string() && is_reason() {
            "only a reason for the call"
        } else if (truth(value) == Some(false) && name_says(OFF))
            || (truth(value) == Some(true) && searches && name_says(ON_IN_SEARCH))
        {
            "already the default"
        } else if unclear || may_be_known(name, value, known) || resembles(name, &known_names) {
            return true;
        } else if limits::asks(name, value, known) {
            notes.problem(limits::problem(name, known));
            return false;
        } else {
            NOT_THERE
        };
        notes.repair(name, format!("{DROPPED}{why}"));
        false
    });
}

/// Whether an unknown name may be meant for a parameter of the tool.
fn resembles(name: &str, known: &[String]) -> bool {
    let listed = known.iter().cloned();
    !haft_ops::text::spelling::closest(name, listed, 1).is_empty()
}

/// Unwraps the arguments: an object whose only field contains all of them, or a list with a
/// single edit.
pub(super) fn unwrap(
    arguments: &mut Map<String, Value>,
    known: &Map<String, Value>,
    notes: &mut Notes,
) {
    let sole = match arguments.keys().collect::<Vec<_>>().as_slice() {
        [one] if !known.contains_key(*one) => Some((*one).clone()),
        _ => None,
    };
    if let Some(name) = sole.filter(|name| WRAPPERS.contains(&fold(name).as_str()))
        && let Some(Value::Object(inner)) = arguments.get(&name).and_then(unstrung)
    {
        *arguments = inner;
        notes.repair(&name, "unwrapped");
    }
    one_edit(arguments, known, notes);
}

/// Unwraps `edits` with a single edit, for a tool that makes one edit at a time.
fn one_edit(arguments: &mut Map<String, Value>, known: &Map<String, Value>, notes: &mut Notes) {
    let has = |names: &[&str]| {
        known
            .keys()
            .any(|name| names.contains(&fold(name).as_str()))
    };
    if !has(OLD) || !has(NEW) || known.contains_key("edits") {
        return;
    }
    let Some(Value::Array(edits)) = arguments.get("edits").and_then(unstrung) else {
        return;
    };
    let [Value::Object(edit)] = edits.as_slice() else {
        return;
    };
    if edit.keys().any(|name| arguments.contains_key(name)) {
        return;
    }
    arguments.remove("edits");
    arguments.extend(edit.clone());
    notes.repair("edits", "the only edit was unwrapped");
}

/// Returns a value, or the value that its text contains as JSON.
fn unstrung(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => parse::nested(text),
        other => Some(other.clone()),
    }
}
