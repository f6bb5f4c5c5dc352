//! Settings for commands: network, environment, and where they run. A project's file can
//! only take permissions away.

use super::sources::{Given, Sources};
use super::{Shown, given_or, text, written};
use crate::exit::Failure;
use haft::ops::executor::sandbox::Network;
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;

/// Effective settings for commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commands {
    pub(crate) network: Network,
    /// Variables that commands get even if they look secret.
    pub(crate) granted: Vec<String>,
    pub(crate) executor: Executor,
}

/// Machine that commands run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Executor {
    Local,
    Ssh(Host),
}

/// Machine that commands run on over ssh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    /// Name for ssh.
    pub(crate) name: String,
    /// Name for messages, with variables unexpanded.
    pub(crate) shown: String,
    /// Folder on that machine that corresponds to the work folder.
    pub(crate) dir: Option<PathBuf>,
    /// Extra ssh options, `Name=value`.
    pub(crate) options: Vec<String>,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Reads the settings.
pub(crate) fn commands(
    sources: &Sources<'_>,
    warnings: &mut Vec<String>,
    shown: &mut Vec<Shown>,
) -> Result<Commands, Failure> {
    let network = network(sources, warnings)?;
    let granted = user_only(sources, "tools.env", Value::Array(Vec::new()), warnings)?;
    let executor = user_only(sources, "executor", "local".into(), warnings)?;
    let commands = Commands {
        network: if text(&network) == "on" {
            Network::On
        } else {
            Network::Off
        },
        granted: granted
            .value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|name| Some(name.as_str()?.to_owned()))
            .collect(),
        executor: executor_of(&executor)?,
    };
    for (key, given) in [
        ("network", network),
        ("tools.env", granted),
        ("executor", executor),
    ] {
        shown.push(Shown {
            key,
            value: given.written,
            from: given.from.to_string(),
        });
    }
    Ok(commands)
}

/// Returns whether commands get network access: only if the user enables it and the
/// project does not disable it.
fn network(sources: &Sources<'_>, warnings: &mut Vec<String>) -> Result<Given, Failure> {
    let (person, project) = sources.apart("network")?;
    let person = given_or(person, "off".into());
    match project {
        Some(project) if text(&project) == "off" => Ok(project),
        Some(project) if text(&person) == "off" => {
            warnings.push(format!(
                "{}: network {} is ignored: a project's file may only tighten",
                project.from,
                written(&project)
            ));
            Ok(person)
        }
        _ => Ok(person),
    }
}

/// Returns a value that only the user can set; a project's value causes a warning.
pub(super) fn user_only(
    sources: &Sources<'_>,
    key: &str,
    default: Value,
    warnings: &mut Vec<String>,
) -> Result<Given, Failure> {
    let (person, project) = sources.apart(key)?;
    if let Some(project) = project {
        warnings.push(format!(
            "{}: {key} is ignored: only your own haft.yaml can set it",
            project.from
        ));
    }
    Ok(given_or(person, default))
}

fn executor_of(given: &Given) -> Result<Executor, Failure> {
    let wrong = |what: &str| {
        Err(Failure::usage(format!(
            "{}: executor must be local or {{ ssh: HOST, dir: FOLDER, options: [NAME=VALUE] }}{what}",
            given.from
        )))
    };
    let map = match &given.value {
        Value::String(name) if name == "local" => return Ok(Executor::Local),
        Value::Object(map) => map,
        _ => return wrong(""),
    };
    if let Some(other) = map
        .keys()
        .find(|key| !["ssh", "dir", "options"].contains(&key.as_str()))
    {
        return wrong(&format!(", not \"{other}\""));
    }
    let text = |key: &str| match map.get(key) {
        None => Ok(None),
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
        Some(_) => wrong(&format!("; {key} must be text")).map(|_: Executor| None),
    };
    let options = match map.get("options") {
        None => Vec::new(),
        Some(Value::Array(all)) if all.iter().all(Value::is_string) => all
            .iter()
            .filter_map(|option| Some(option.as_str()?.to_owned()))
            .collect(),
        Some(_) => return wrong("; options must be a list of texts"),
    };
    match text("ssh")? {
        None => wrong(""),
        Some(name) => Ok(Executor::Ssh(Host {
            shown: given.written["ssh"].as_str().unwrap_or(&name).to_owned(),
            name,
            dir: text("dir")?.map(PathBuf::from),
            options,
        })),
    }
}
