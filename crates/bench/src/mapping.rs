//! Mapping files: how to start a server, and how its edit tool is called.

use crate::case::{Case, Form, PathForm};
use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Style in which a server names files.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Paths {
    /// Relative to the work folder.
    Relative,
    /// Absolute on this machine.
    Absolute,
    /// Absolute in a root that is the work folder.
    Virtual,
}

/// Matches that an edit replaces by default.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Matches {
    /// The only one.
    One,
    /// All of them, as the tool's description says.
    All,
}

/// One mapping file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mapping {
    /// Name for the tables.
    pub(crate) name: String,
    /// Program and arguments; `{dir}` is the work folder.
    pub(crate) command: Vec<String>,
    /// Name of the tool that edits.
    pub(crate) tool: String,
    pub(crate) paths: Paths,
    #[serde(default = "one")]
    pub(crate) matches: Matches,
    /// Arguments; the texts `{path}`, `{old}` and `{new}` stand for the values.
    pub(crate) arguments: Map<String, Value>,
    /// Name of a tool that must read a file before it is edited, and its path parameter.
    #[serde(default)]
    pub(crate) read_first: Option<ReadFirst>,
}

/// A call before each edit, for servers that demand it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadFirst {
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
}

const fn one() -> Matches {
    Matches::One
}

impl Mapping {
    pub(crate) fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        serde_saphyr::from_str(&text).with_context(|| format!("{}", path.display()))
    }

    /// Returns the command with the work folder in place.
    pub(crate) fn command(&self, dir: &Path) -> Vec<String> {
        let dir = dir.display().to_string();
        self.command
            .iter()
            .map(|word| word.replace("{dir}", &dir))
            .collect()
    }

    /// Returns the path of a file as the server or the mistake wants it.
    fn path(&self, case: &Case, folder: &str, dir: &Path) -> String {
        let relative = format!("{folder}/{}", case.path);
        let host = dir.join(&relative).display().to_string();
        match (case.path_form, self.paths) {
            (PathForm::At, _) => format!("@{relative}"),
            (PathForm::Dot, _) => format!("./{relative}"),
            (PathForm::Relative, _) | (PathForm::Usual, Paths::Relative) => relative,
            (PathForm::Usual, Paths::Virtual) => format!("/{relative}"),
            (PathForm::Host, _) | (PathForm::Usual, Paths::Absolute) => host,
        }
    }

    /// Returns the arguments of a call that reads the file first.
    pub(crate) fn reading(&self, case: &Case, folder: &str, dir: &Path) -> Option<(String, Value)> {
        let read = self.read_first.as_ref()?;
        let values = [self.path(case, folder, dir), String::new(), String::new()];
        Some((
            read.tool.clone(),
            fill(&Value::Object(read.arguments.clone()), &values),
        ))
    }

    /// Returns the arguments of a case.
    pub(crate) fn arguments(&self, case: &Case, folder: &str, dir: &Path) -> Value {
        let path = self.path(case, folder, dir);
        let values = [path.clone(), case.old.clone(), case.new.clone()];
        let plain = fill(&Value::Object(self.arguments.clone()), &values);
        let path_name = self
            .arguments
            .iter()
            .find(|(_, value)| value.as_str() == Some("{path}"))
            .map_or_else(|| "path".to_owned(), |(name, _)| name.clone());
        match &case.form {
            Form::Plain => plain,
            Form::Extra { arguments } => {
                let mut plain = plain;
                if let Value::Object(fields) = &mut plain {
                    fields.extend(arguments.clone());
                }
                plain
            }
            Form::Named {
                path: name,
                old,
                new,
            } => {
                json!({ name: path, old: case.old, new: case.new })
            }
            Form::Edits { old, new } => {
                json!({ path_name: path, "edits": [{ old: case.old, new: case.new }] })
            }
            Form::EditsText { old, new } => {
                let edits = json!([{ old: case.old, new: case.new }]).to_string();
                json!({ path_name: path, "edits": edits })
            }
            Form::Wrapped { name } => json!({ name: plain }),
        }
    }
}

/// Puts the values in place of `{path}`, `{old}` and `{new}`.
fn fill(template: &Value, values: &[String; 3]) -> Value {
    let [path, old, new] = values;
    match template {
        Value::String(text) => {
            // One value after the other, because they may contain such words themselves.
            let mut filled = String::new();
            let mut rest = text.as_str();
            while let Some((before, after)) = rest.split_once('{') {
                filled.push_str(before);
                let value = after.split_once('}').and_then(|(name, after)| match name {
                    "path" => Some((path, after)),
                    "old" => Some((old, after)),
                    "new" => Some((new, after)),
                    _ => None,
                });
                rest = match value {
                    Some((value, after)) => {
                        filled.push_str(value);
                        after
                    }
                    None => {
                        filled.push('{');
                        after
                    }
                };
            }
            json!(filled + rest)
        }
        Value::Array(list) => list.iter().map(|value| fill(value, values)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), fill(value, values)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}
