//! Plugins in the configuration and on the command line. A project's plugins are only
//! read here; whether they run depends on trust.

use super::layer::Role;
use super::setting::{Filled, Seconds, TextOr, Word, inline_schema};
use super::sources::Sources;
use super::{Notes, variables};
use crate::environment::Environment;
use crate::external::command::{is_interpreter, name_of};
use crate::failure::Failure;
use haft::Protocol;
use schemars::{JsonSchema, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A program that provides tools.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PluginEntry {
    /// The program, relative to this file, or a name in PATH.
    path: Filled,
    /// Arguments of the program.
    #[serde(default)]
    args: Vec<Word>,
    /// Additional environment variables.
    #[serde(default)]
    env: AddedVariables,
    /// Folder to run it in.
    cwd: Option<String>,
    /// Protocol that it speaks; by default haft finds out.
    #[serde(default)]
    protocol: ProtocolName,
    /// Seconds a call may take; 0 for the default limit.
    timeout: Option<Seconds>,
    /// Seconds the handshake may take; 0 for the default limit.
    start_timeout: Option<Seconds>,
    /// Whether its tools may replace others of the same name.
    #[serde(default, rename = "override")]
    overrides: bool,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ProtocolName {
    #[default]
    Auto,
    Describe,
    Init,
}

/// A configured plugin.
#[derive(Debug, Clone)]
pub(crate) struct Configured {
    /// Name in messages and of the log: the plugin's name, with a number if an earlier
    /// plugin has the same one.
    pub(crate) label: String,
    /// The plugin's name without a number, so it does not depend on other plugins.
    pub(crate) name: String,
    /// Absolute path, or a name to look up in PATH.
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// Additional environment variables.
    pub(crate) environment: AddedVariables,
    pub(crate) protocol: Protocol,
    /// Time limit of a call.
    pub(crate) timeout: Option<Duration>,
    /// Time limit of the handshake.
    pub(crate) start_timeout: Option<Duration>,
    pub(crate) overrides: bool,
    /// Folder to run in, if configured.
    pub(crate) dir: Option<PathBuf>,
    pub(crate) owner: Owner,
    /// Folder that relative paths in the arguments start from.
    pub(crate) folder: PathBuf,
    /// The entry as written, which the user is shown before trusting it.
    pub(crate) written: Value,
    pub(crate) from: String,
}

/// Owner of the configuration of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The user, in their own file, for all folders.
    User,
    /// The user, in a file named for this run.
    Named,
    /// The user, on the command line.
    Typed,
    /// The project's file.
    Project,
}

impl Owner {
    /// Returns the owner of a value in a file of this role.
    pub(crate) fn of(role: Role) -> Self {
        match role {
            Role::Project => Self::Project,
            Role::User => Self::User,
            Role::Named => Self::Named,
            Role::Explicit | Role::Default => Self::Typed,
        }
    }
}

/// Environment variables that a plugin gets in addition to the default ones.
#[derive(Debug, Clone, Default)]
pub struct AddedVariables {
    /// Variables passed on from haft's environment.
    pub(crate) names: Vec<String>,
    /// Variables with values from the configuration.
    pub(crate) values: Vec<(String, String)>,
}

impl Configured {
    /// Returns the program's path, or its text if that contains variables.
    pub(crate) fn written_program(&self) -> String {
        variables::shown_path(self.written_path(), &self.program)
    }

    fn written_path(&self) -> &str {
        let path = match &self.written {
            Value::Object(map) => map.get("path"),
            other => Some(other),
        };
        path.and_then(Value::as_str).unwrap_or_default().trim()
    }

    /// Whether the project's file configures it.
    pub(crate) fn is_project(&self) -> bool {
        self.owner == Owner::Project
    }

    /// Whether another entry starts the same program in the same way.
    fn is_same(&self, other: &Self) -> bool {
        let one = |plugin: &Self| {
            let AddedVariables { names, values } = plugin.environment.clone();
            let how = (plugin.program.clone(), plugin.arguments.clone());
            let place = (plugin.dir.clone(), plugin.folder.clone(), plugin.owner);
            let limits = (plugin.timeout, plugin.start_timeout);
            let rest = (plugin.overrides, plugin.protocol);
            (how, place, names, values, limits, rest)
        };
        one(self) == one(other)
    }

    /// Returns the arguments with variables unexpanded.
    pub(crate) fn written_arguments(&self) -> Vec<String> {
        let text = |item: &Value| match item {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match self.written.get("args") {
            Some(Value::Array(items)) => items.iter().map(text).collect(),
            _ => Vec::new(),
        }
    }
}

/// Reads the plugins: flags first, then the user's file, then the project's.
pub(crate) fn load(
    sources: &Sources,
    flags: &[String],
    current: &Path,
    notes: &mut Notes,
) -> Result<Vec<Configured>, Failure> {
    let mut all = Vec::new();
    for line in flags {
        all.push(from_flag(line, current, &sources.environment)?);
    }
    let mut listed = sources.all(|file| &file.tools.plugins)?;
    listed.sort_by_key(|(_, plugin)| plugin.is_project());
    for entry in listed {
        let Some(given) = notes.skip_unset(entry, "plugin") else {
            continue;
        };
        let (folder, owner) = (given.folder(), Owner::of(given.role()));
        let environment = &sources.environment;
        let word = |word: &Word| from_home(&word.0, environment);
        let empty = given.wrong("the path is empty");
        let entry = match given.value {
            TextOr::Full(entry) => entry,
            TextOr::Text(path) if path.trim().is_empty() => return Err(empty),
            TextOr::Text(path) => PluginEntry {
                path: Filled(path.trim().to_owned()),
                ..PluginEntry::default()
            },
        };
        let mut plugin = Configured {
            label: String::new(),
            name: String::new(),
            program: located(&entry.path.0, folder, environment),
            arguments: entry.args.iter().map(word).collect(),
            environment: entry.env,
            protocol: match entry.protocol {
                ProtocolName::Auto => Protocol::Auto,
                ProtocolName::Describe => Protocol::Describe,
                ProtocolName::Init => Protocol::Init,
            },
            timeout: entry.timeout.and_then(|limit| haft::time_limit(limit.0)),
            start_timeout: entry
                .start_timeout
                .and_then(|limit| haft::time_limit(limit.0)),
            overrides: entry.overrides,
            dir: entry
                .cwd
                .map(|dir| located_folder(&dir, folder, environment)),
            owner,
            folder: folder.to_owned(),
            written: given.written,
            from: given.from.to_string(),
        };
        plugin.label = label(plugin.written_path(), &plugin.written_arguments());
        plugin.name.clone_from(&plugin.label);
        all.push(plugin);
    }
    let mut unique: Vec<Configured> = Vec::new();
    for plugin in all {
        if !unique.iter().any(|other| other.is_same(&plugin)) {
            unique.push(plugin);
        }
    }
    number_duplicates(&mut unique);
    if !unique.is_empty() {
        let labels: Vec<&str> = unique.iter().map(|plugin| plugin.label.as_str()).collect();
        let from: Vec<&str> = unique.iter().map(|plugin| plugin.from.as_str()).collect();
        notes.show_value("tools.plugins", labels.into(), from.join(", "));
    }
    Ok(unique)
}

/// Makes labels unique: plugins with the same label would share a log.
fn number_duplicates(all: &mut [Configured]) {
    for at in 1..all.len() {
        let (before, rest) = all.split_at_mut(at);
        let Some(plugin) = rest.first_mut() else {
            return;
        };
        let base = plugin.label.clone();
        let mut number = 2;
        while before.iter().any(|other| other.label == plugin.label) {
            plugin.label = format!("{base}_{number}");
            number += 1;
        }
    }
}

/// Parses `--plugin "python3 ./tool.py --verbose"`.
fn from_flag(line: &str, current: &Path, environment: &Environment) -> Result<Configured, Failure> {
    let wrong =
        || Failure::usage("--plugin must be a program with its arguments, quoted as in a shell");
    let mut words = shlex::split(line).ok_or_else(wrong)?.into_iter();
    let program = words.next().ok_or_else(wrong)?;
    let arguments: Vec<String> = words.collect();
    Ok(Configured {
        label: label(&program, &arguments),
        name: label(&program, &arguments),
        program: located(&program, current, environment),
        arguments,
        environment: AddedVariables::default(),
        protocol: Protocol::Auto,
        timeout: None,
        start_timeout: None,
        overrides: false,
        dir: None,
        owner: Owner::Typed,
        folder: current.to_owned(),
        written: line.into(),
        from: "flag --plugin".to_owned(),
    })
}

/// Returns a program's path, relative to its file's folder or the home folder. A bare
/// name is looked up in PATH later.
pub(super) fn located(program: &str, folder: &Path, environment: &Environment) -> PathBuf {
    if program.contains('/') {
        located_folder(program, folder, environment)
    } else {
        PathBuf::from(program)
    }
}

/// Returns a path relative to its file's folder or the home folder.
pub(super) fn located_folder(path: &str, folder: &Path, environment: &Environment) -> PathBuf {
    let path = from_home(path, environment);
    folder.join(path).components().collect()
}

/// Replaces `~` at the start by the home folder, since no shell does.
pub(super) fn from_home(word: &str, environment: &Environment) -> String {
    let below = word.strip_prefix('~');
    let below = below.filter(|below| below.is_empty() || below.starts_with('/'));
    let home = environment.folders().home;
    match (below, home.as_deref().and_then(Path::to_str)) {
        (Some(below), Some(home)) => format!("{}{below}", home.trim_end_matches('/')),
        _ => word.to_owned(),
    }
}

/// Returns the name of the program, or of the script it runs.
fn label(program: &str, arguments: &[String]) -> String {
    let is_script = |word: &&String| !word.starts_with('-') && word.contains(['/', '.']);
    let named = if program.contains('/') && !is_interpreter(&name_of(Path::new(program))) {
        program
    } else {
        arguments
            .iter()
            .find(is_script)
            .map_or(program, String::as_str)
    };
    let stem = Path::new(named)
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    stem.unwrap_or_default()
        .chars()
        .map(plain)
        .take(60)
        .collect()
}

impl AddedVariables {
    /// Returns the variables sorted by name, because their order does not matter.
    pub(crate) fn sorted(&self) -> Self {
        let mut sorted = self.clone();
        sorted.names.sort();
        sorted.values.sort();
        sorted
    }
}

/// A list of names to pass on, or a map with values.
impl<'de> Deserialize<'de> for AddedVariables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Variables;
        impl<'de> Visitor<'de> for Variables {
            type Value = AddedVariables;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of names, or a map")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<AddedVariables, A::Error> {
                let mut environment = AddedVariables::default();
                while let Some(Word(name)) = seq.next_element()? {
                    environment.names.push(name);
                }
                Ok(environment)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AddedVariables, A::Error> {
                let mut environment = AddedVariables::default();
                while let Some((name, value)) = map.next_entry()? {
                    let value = match value {
                        Value::String(text) => text,
                        Value::Null => String::new(),
                        other => other.to_string(),
                    };
                    environment.values.push((name, value));
                }
                Ok(environment)
            }
        }
        deserializer.deserialize_any(Variables)
    }
}

inline_schema!([] AddedVariables, _generator => json_schema!({ "anyOf": [
    { "type": "object", "additionalProperties": { "type": "string" } },
    { "type": "array", "items": { "type": "string" } },
] }));
