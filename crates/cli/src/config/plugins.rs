//! Plugins in the configuration and on the command line. A project's plugins are only
//! read here; whether they run depends on trust.

use super::layer::Role;
use super::sources::{Listed, Origin, Sources};
use super::value;
use crate::env;
use crate::exit::Failure;
use crate::external::command::{is_interpreter, name_of};
use crate::external::limit;
use haft::Protocol;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    pub(crate) environment: Environment,
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
    /// Owner word a value from a file of this role is; one from no file was typed.
    pub(crate) fn of(role: Option<Role>) -> Self {
        match role {
            Some(Role::Project) => Self::Project,
            Some(Role::User) => Self::User,
            Some(Role::Named) => Self::Named,
            None => Self::Typed,
        }
    }
}

/// Environment variables that a plugin gets in addition to the default ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    /// Variables passed on from haft's environment.
    pub(crate) names: Vec<String>,
    /// Variables with values from the configuration.
    pub(crate) values: Vec<(String, String)>,
}

impl Configured {
    /// Returns the program's path, or its text if that contains variables.
    pub(crate) fn written_program(&self) -> String {
        value::shown_path(self.written_path(), &self.program)
    }

    fn written_path(&self) -> &str {
        let path = match &self.written {
            Value::Object(map) => map.get("path"),
            other => Some(other),
        };
        path.and_then(Value::as_str).unwrap_or_default().trim()
    }

    /// Whether it is the project's word.
    pub(crate) fn is_project(&self) -> bool {
        self.owner == Owner::Project
    }

    /// Whether another entry starts the same program in the same way.
    fn is_same(&self, other: &Self) -> bool {
        let one = |plugin: &Self| {
            let Environment { names, values } = plugin.environment.clone();
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
    sources: &Sources<'_>,
    flags: &[String],
    current: &Path,
    warnings: &mut Vec<String>,
) -> Result<Vec<Configured>, Failure> {
    let mut all = Vec::new();
    for line in flags {
        all.push(from_flag(line, current)?);
    }
    let mut listed = sources.items("tools.plugins");
    listed.sort_by_key(|(item, _)| item.is_project);
    for (item, folder) in listed {
        let Listed {
            from,
            value,
            written,
            ..
        } = item;
        match value {
            Ok(value) => {
                let reader = Reader { from: &from };
                let mut plugin = reader.plugin(&value, &folder)?;
                plugin.owner = Owner::of(sources.role_of(&from));
                plugin.written = written;
                plugin.label = label(plugin.written_path(), &plugin.written_arguments());
                plugin.name.clone_from(&plugin.label);
                all.push(plugin);
            }
            Err(failure) => warnings.push(format!("{}: skipped this plugin", failure.message)),
        }
    }
    let mut unique: Vec<Configured> = Vec::new();
    for plugin in all {
        if !unique.iter().any(|other| other.is_same(&plugin)) {
            unique.push(plugin);
        }
    }
    number_duplicates(&mut unique);
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
fn from_flag(line: &str, current: &Path) -> Result<Configured, Failure> {
    let wrong =
        || Failure::usage("--plugin must be a program with its arguments, quoted as in a shell");
    let mut words = shlex::split(line).ok_or_else(wrong)?.into_iter();
    let program = words.next().ok_or_else(wrong)?;
    let arguments: Vec<String> = words.collect();
    Ok(Configured {
        label: label(&program, &arguments),
        name: label(&program, &arguments),
        program: located(&program, current),
        arguments,
        environment: Environment::default(),
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
pub(super) fn located(program: &str, folder: &Path) -> PathBuf {
    if program.contains('/') {
        located_folder(program, folder)
    } else {
        PathBuf::from(program)
    }
}

/// Returns a path relative to its file's folder or the home folder.
pub(super) fn located_folder(path: &str, folder: &Path) -> PathBuf {
    folder.join(from_home(path)).components().collect()
}

/// Replaces `~` at the start by the home folder, since no shell does.
fn from_home(word: &str) -> String {
    let below = word.strip_prefix('~');
    let below = below.filter(|below| below.is_empty() || below.starts_with('/'));
    let home = env::folders().home;
    match (below, home.as_deref().and_then(Path::to_str)) {
        (Some(below), Some(home)) => format!("{}{below}", home.trim_end_matches('/')),
        _ => word.to_owned(),
    }
}

/// Reads the arguments of a program.
pub(super) fn arguments(map: &Map<String, Value>) -> Result<Vec<String>, String> {
    let words = texts(map, "args")?;
    Ok(words.iter().map(|word| from_home(word)).collect())
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

struct Reader<'a> {
    from: &'a Origin,
}

impl Reader<'_> {
    fn wrong(&self, what: &str) -> Failure {
        Failure::usage(format!("{}: tools.plugins: {what}", self.from))
    }

    fn plugin(&self, value: &Value, folder: &Path) -> Result<Configured, Failure> {
        let map = match value {
            Value::String(path) => &Map::from_iter([("path".to_owned(), path.clone().into())]),
            Value::Object(map) => map,
            _ => return Err(self.wrong("a plugin must be a path or a map with a path")),
        };
        let known = [
            "path",
            "args",
            "env",
            "cwd",
            "protocol",
            "timeout",
            "start_timeout",
            "override",
        ];
        if let Some(other) = map.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(self.wrong(&format!(
                "unknown key \"{other}\"; known keys: {}",
                known.join(", ")
            )));
        }
        let path = match map.get("path") {
            Some(Value::String(path)) if !path.trim().is_empty() => path.trim(),
            _ => return Err(self.wrong("path is missing")),
        };
        let arguments = arguments(map).map_err(|what| self.wrong(&what))?;
        Ok(Configured {
            label: String::new(),
            name: String::new(),
            program: located(path, folder),
            environment: Environment::read(map).map_err(|what| self.wrong(&what))?,
            protocol: match map
                .get("protocol")
                .map(|protocol| protocol.as_str().unwrap_or_default())
            {
                None | Some("auto") => Protocol::Auto,
                Some("describe") => Protocol::Describe,
                Some("init") => Protocol::Init,
                Some(_) => return Err(self.wrong("protocol must be auto, describe or init")),
            },
            timeout: self.limit(map, "timeout")?,
            start_timeout: self.limit(map, "start_timeout")?,
            overrides: match map.get("override") {
                None => false,
                Some(Value::Bool(overrides)) => *overrides,
                Some(_) => return Err(self.wrong("override must be true or false")),
            },
            arguments,
            dir: match map.get("cwd") {
                None | Some(Value::Null) => None,
                Some(Value::String(dir)) => Some(located_folder(dir, folder)),
                Some(_) => return Err(self.wrong("cwd must be a folder")),
            },
            owner: Owner::User,
            folder: folder.to_owned(),
            written: Value::Null,
            from: self.from.to_string(),
        })
    }

    fn limit(&self, map: &Map<String, Value>, key: &str) -> Result<Option<Duration>, Failure> {
        match map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => limit(value).ok_or_else(|| {
                self.wrong(&format!(
                    "{key} must be a number of seconds up to a day (0 for the default limit)"
                ))
            }),
        }
    }
}

/// Returns the texts of a list. Numbers and booleans count as text.
pub(super) fn texts(map: &Map<String, Value>, key: &str) -> Result<Vec<String>, String> {
    let items = match map.get(key) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(format!("{key} must be a list")),
    };
    let text = |item: &Value| match item {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        _ => Err(format!("{key} must be a list of texts")),
    };
    items.iter().map(text).collect()
}

impl Environment {
    /// Returns the variables sorted by name, because their order does not matter.
    pub(crate) fn sorted(&self) -> Self {
        let mut sorted = self.clone();
        sorted.names.sort();
        sorted.values.sort();
        sorted
    }

    /// Reads `env`: a list of names to pass on, or a map with values.
    pub(super) fn read(map: &Map<String, Value>) -> Result<Self, String> {
        let mut environment = Self::default();
        match map.get("env") {
            None | Some(Value::Null) => {}
            Some(Value::Object(values)) => {
                for (name, value) in values {
                    let text = match value {
                        Value::String(text) => text.clone(),
                        Value::Null => String::new(),
                        other => other.to_string(),
                    };
                    environment.values.push((name.clone(), text));
                }
            }
            Some(Value::Array(_)) => environment.names = texts(map, "env")?,
            Some(_) => return Err("env must be a list of names, or a map".to_owned()),
        }
        Ok(environment)
    }
}
