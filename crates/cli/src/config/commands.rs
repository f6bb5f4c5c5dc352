//! What the settings say about commands: the network, the environment, where
//! they run. A project's file may take away and never give.

use super::sources::{Given, Sources};
use super::{Shown, given_or, text, written};
use crate::exit::Failure;
use haft::ops::executor::sandbox::Network;
use serde_json::Value;

/// How commands run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commands {
    pub(crate) network: Network,
    /// Names of variables that they may see whatever they hold.
    pub(crate) granted: Vec<String>,
    pub(crate) executor: Executor,
}

/// Where they run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Executor {
    Local,
    Ssh(String),
}

/// Reads them.
pub(crate) fn commands(
    sources: &Sources<'_>,
    warnings: &mut Vec<String>,
    shown: &mut Vec<Shown>,
) -> Result<Commands, Failure> {
    let network = network(sources, warnings)?;
    let granted = person_only(sources, "tools.env", Value::Array(Vec::new()), warnings)?;
    let executor = person_only(sources, "executor", "local".into(), warnings)?;
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

/// The network: on if the person says so and the project does not mind.
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

/// A value that is no business of a project.
fn person_only(
    sources: &Sources<'_>,
    key: &str,
    default: Value,
    warnings: &mut Vec<String>,
) -> Result<Given, Failure> {
    let (person, project) = sources.apart(key)?;
    if let Some(project) = project {
        warnings.push(format!(
            "{}: {key} is ignored: only the person's own file may set it",
            project.from
        ));
    }
    Ok(given_or(person, default))
}

fn executor_of(given: &Given) -> Result<Executor, Failure> {
    let host = given.value.get("ssh").and_then(Value::as_str);
    let alone = given.value.as_object().is_none_or(|map| map.len() == 1);
    match (given.value.as_str(), host) {
        (Some("local"), _) => Ok(Executor::Local),
        (_, Some(host)) if alone && !host.trim().is_empty() => Ok(Executor::Ssh(host.to_owned())),
        _ => Err(Failure::usage(format!(
            "{}: executor must be local or {{ ssh: HOST }}",
            given.from
        ))),
    }
}
