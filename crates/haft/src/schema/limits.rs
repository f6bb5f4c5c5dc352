//! Unknown parameters that would limit or redirect a call. Without them the call would do
//! more than was asked, or something else, so they are refused, not dropped.

use super::alias::truth;
use super::names::{NEW, OLD, fold};
use crate::Problem;
use haft_ops::text::brief::{FEW, few};
use serde_json::{Map, Value};

/// Words of names that limit or redirect a call, by what they choose. [`asks`] says when a
/// value asks for nothing.
const WORDS: &[&[&str]] = &[
    // Effect of the call.
    &[
        "dry",
        "dryrun",
        "preview",
        "simulate",
        "confirm",
        "approval",
        "append",
        "prepend",
        "insert",
        "backup",
        "force",
        "undo",
        "action",
        "command",
        "operation",
        "mode",
        "edits",
        "patch",
        "diff",
    ],
    COUNTS,
    // Part of a file.
    &[
        "line",
        "lines",
        "linenumber",
        "start",
        "startline",
        "end",
        "endline",
        "from",
        "range",
        "offset",
        "head",
        "tail",
        "skip",
        "position",
        "before",
        "after",
        "column",
        "page",
        "entire",
        "whole",
    ],
    // Place and user of a command.
    &[
        "cwd",
        "dir",
        "workdir",
        "directory",
        "folder",
        "root",
        "env",
        "environment",
        "user",
        "sudo",
        "shell",
        "host",
        "stdin",
        "input",
        "timeout",
        "background",
        "detach",
        "paths",
        "files",
        "permissions",
        "sandbox",
    ],
    // Selection of entries, and form of the output.
    &[
        "exclude",
        "ignore",
        "include",
        "only",
        "filter",
        "type",
        "case",
        "regex",
        "word",
        "invert",
        "recursive",
        "depth",
        "hidden",
        "follow",
        "sort",
        "reverse",
        "output",
        "encoding",
    ],
];

/// Words that choose the number of places.
const COUNTS: &[&str] = &[
    "all",
    "replaceall",
    "every",
    "multiple",
    "global",
    "once",
    "first",
    "last",
    "nth",
    "index",
    "count",
    "expected",
    "occurrence",
    "occurrences",
    "limit",
    "max",
    "min",
];

/// Words of flags that are on unless they are switched off: `overwrite: false` asks for
/// something.
const ON: &[&str] = &[
    "allow",
    "create",
    "follow",
    "ignore",
    "multiple",
    "n",
    "overwrite",
    "recursive",
    "replace",
    "respect",
];

/// Values that ask for what the tool does anyway.
const DEFAULTS: &[&str] = &[
    "",
    "auto",
    "content",
    "default",
    "none",
    "normal",
    "overwrite",
    "replace",
    "strreplace",
    "text",
    "utf8",
];

/// Whether leaving out an unknown parameter would make a call do more or something else.
pub(super) fn asks(name: &str, value: &Value, known: &Map<String, Value>) -> bool {
    let words = words(name);
    let among = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    // One letter is an option of a command, such as `-A` of `grep`.
    let limits = WORDS.iter().any(|list| among(list)) || fold(name).chars().count() < 2;
    match value {
        Value::Null => false,
        _ if truth(value) == Some(false) => among(ON),
        _ if !limits => false,
        Value::String(text) => !DEFAULTS.contains(&fold(text).as_str()),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Number(number) => {
            number.as_u64() != Some(1) || !among(COUNTS) || !changes_one_place(known)
        }
        Value::Bool(_) => true,
    }
}

/// Whether a tool replaces a text in one place, if nothing else is asked.
fn changes_one_place(known: &Map<String, Value>) -> bool {
    let all = |parameter: &Value| parameter.get("default") == Some(&Value::Bool(true));
    texts(known).is_some() && !known.values().any(all)
}

/// Returns the names of the parameters with the old and the new text.
fn texts(known: &Map<String, Value>) -> Option<(&String, &String)> {
    let one_of = |names: &[&str]| {
        let mut known = known.keys();
        known.find(|name| names.contains(&fold(name).as_str()))
    };
    Some((one_of(OLD)?, one_of(NEW)?))
}

/// Returns the problem with such a parameter: what the tool does without it.
pub(super) fn problem(name: &str, known: &Map<String, Value>) -> Problem {
    let names: Vec<String> = known.keys().cloned().collect();
    let instead = instead(known).map_or_else(String::new, |instead| format!(": {instead}"));
    Problem::Other(format!(
        "unknown parameter \"{}\" (known: {}){instead}",
        haft_ops::text::brief::brief(name, haft_ops::text::brief::NAME),
        few(&names, FEW)
    ))
}

/// Describes what a tool does, and how to ask for something else, by its parameters.
fn instead(known: &Map<String, Value>) -> Option<String> {
    let has = |name: &str| known.contains_key(name);
    if let Some((old, new)) = texts(known) {
        return Some(format!(
            "the tool replaces {old} with {new} at once; choose the place by the text in {old}"
        ));
    }
    if has("command") && !has("action") {
        return Some("the command runs as it is; put this into the command line".to_owned());
    }
    if has("content") && (has("path") || has("file_path")) {
        return Some("the tool replaces the whole file at once with content".to_owned());
    }
    (has("offset") && has("limit"))
        .then(|| "offset and limit choose the lines that the tool reads".to_owned())
}

/// Splits a name into its words in lower case: `dry_run`, `dry-run` and `dryRun` are two.
/// The name without separators is one more.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut in_capitals = true;
    for c in name.chars().take(200) {
        let starts = c.is_uppercase() && !in_capitals;
        in_capitals = c.is_uppercase();
        if starts || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words.push(fold(name));
    words
}
