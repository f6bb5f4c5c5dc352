//! Other names for the same parameter. Models carry names from the tools they
//! were trained on; where only one parameter can be meant, it is meant.

use super::Repair;
use crate::Problem;
use serde_json::{Map, Value};

/// Names that mean the same, folded. A name may stand in several groups: it is
/// only taken where the tool has exactly one of them.
const GROUPS: &[&[&str]] = &[
    &[
        "path",
        "filepath",
        "file",
        "filename",
        "absolutepath",
        "targetfile",
        "dir",
        "directory",
        "folder",
        "dirpath",
        "directorypath",
    ],
    &[
        "oldtext",
        "oldstring",
        "oldstr",
        "old",
        "searchtext",
        "find",
    ],
    &[
        "newtext",
        "newstring",
        "newstr",
        "new",
        "replacement",
        "replacetext",
        "replace",
    ],
    &[
        "content",
        "contents",
        "text",
        "filetext",
        "filecontent",
        "filecontents",
        "data",
        "body",
    ],
    &[
        "pattern",
        "query",
        "regex",
        "regexp",
        "search",
        "searchpattern",
        "name",
    ],
    &[
        "glob",
        "include",
        "includes",
        "includepattern",
        "fileglob",
        "filepattern",
    ],
    &[
        "maxresults",
        "limit",
        "max",
        "maxmatches",
        "headlimit",
        "maxcount",
        "count",
    ],
    &["limit", "lines", "numlines", "maxlines", "linecount"],
    &["offset", "startline", "line", "start", "fromline"],
    &["contextlines", "context", "c"],
    &["casesensitive", "matchcase"],
    &["showhidden", "hidden", "all", "includehidden"],
    &["command", "cmd", "script", "bash", "shell"],
    &["timeout", "timeoutseconds", "timeoutsecs"],
    &[
        "timeout",
        "timeoutms",
        "timeoutmillis",
        "timeoutmilliseconds",
    ],
    &["type", "kind", "filetype", "entrytype"],
    &["url", "uri", "link", "href"],
    &["processid", "pid", "process", "procid"],
    &[
        "workingdir",
        "workingdirectory",
        "workdir",
        "cwd",
        "dir",
        "directory",
    ],
];

/// Names that say a unit, and the unit: taken only where the description of the
/// parameter begins with it. A number in another unit would be a guess.
const UNITS: &[(&[&str], &str)] = &[
    (&["timeoutseconds", "timeoutsecs"], "Seconds"),
    (
        &["timeoutms", "timeoutmillis", "timeoutmilliseconds"],
        "Milliseconds",
    ),
];

/// Whether a parameter counts in the unit that a name says, if it says one.
fn counts_in(name: &str, parameter: &Value) -> bool {
    let unit = UNITS.iter().find(|(names, _)| names.contains(&name));
    let described = parameter.get("description").and_then(Value::as_str);
    unit.is_none_or(|(_, unit)| described.is_some_and(|words| words.starts_with(unit)))
}

/// Letters and digits only, lower case: `filePath`, `file-path` and `file_path`
/// are one name.
fn fold(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

pub(super) fn rename(
    arguments: &mut Map<String, Value>,
    schema: &Value,
    repairs: &mut Vec<Repair>,
    problems: &mut Vec<Problem>,
) {
    let Some(known) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    let unknown: Vec<String> = arguments
        .keys()
        .filter(|name| !known.contains_key(*name))
        .cloned()
        .collect();
    for name in unknown {
        let Some(meant) = meant(&name, known) else {
            continue;
        };
        match arguments.get(&meant) {
            None => {
                if let Some(value) = arguments.remove(&name) {
                    arguments.insert(meant.clone(), value);
                    repairs.push(Repair {
                        parameter: meant,
                        change: format!("taken from \"{name}\""),
                    });
                }
            }
            Some(value) if Some(value) == arguments.get(&name) => {
                arguments.remove(&name);
                repairs.push(Repair {
                    parameter: meant,
                    change: format!("\"{name}\" said the same and was dropped"),
                });
            }
            Some(_) => {
                arguments.remove(&name);
                problems.push(Problem::Conflict {
                    name: meant,
                    alias: name,
                });
            }
        }
    }
}

/// The one parameter a name can mean.
fn meant(name: &str, known: &Map<String, Value>) -> Option<String> {
    let folded = fold(name);
    if let Some(same) = known.keys().find(|known| fold(known) == folded) {
        return Some(same.clone());
    }
    let groups = GROUPS
        .iter()
        .filter(|group| group.contains(&folded.as_str()));
    let mut candidates: Vec<&String> = groups
        .flat_map(|group| {
            known
                .iter()
                .filter(|(known, _)| group.contains(&fold(known).as_str()))
        })
        .filter(|(_, parameter)| counts_in(&folded, parameter))
        .map(|(known, _)| known)
        .collect();
    candidates.sort();
    candidates.dedup();
    match candidates.as_slice() {
        [one] => Some((*one).clone()),
        _ => None,
    }
}
