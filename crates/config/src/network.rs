//! `network`: the hosts that commands may reach. A project can only switch it off.

use super::Notes;
use super::setting::{TextOr, inline_schema};
use super::sources::{Given, Sources};
use crate::failure::Failure;
use haft::ops::text::decode::visible;
use haft::{NetworkAccess, OpenHost, Policy, RuleOwner, Verdict};
use schemars::json_schema;
use serde::de::{self, Deserialize, Deserializer};

/// Network access of commands: `on`, `off`, or hosts.
#[derive(Debug)]
pub(crate) enum NetworkEntry {
    On,
    Off,
    Hosts(Vec<HostEntry>),
}

/// A host, or `@` and the name of a group.
#[derive(Debug)]
pub(crate) struct HostEntry(Vec<OpenHost>);

impl<'de> Deserialize<'de> for NetworkEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hosts = |text: &str| {
            let entries = text.split(',').filter(|entry| !entry.trim().is_empty());
            entries.map(entry).collect::<Result<Vec<_>, _>>()
        };
        match TextOr::deserialize(deserializer)? {
            TextOr::Full(hosts) => Ok(Self::Hosts(hosts)),
            TextOr::Text(text) => match text.trim() {
                "on" => Ok(Self::On),
                "off" => Ok(Self::Off),
                "" => Err(de::Error::custom("must be on, off or a list of hosts")),
                text => hosts(text).map(Self::Hosts).map_err(de::Error::custom),
            },
        }
    }
}

impl<'de> Deserialize<'de> for HostEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        entry(&text).map_err(de::Error::custom)
    }
}

/// Parses one host of the list.
fn entry(text: &str) -> Result<HostEntry, String> {
    let on_off = ["on", "off", "true", "false", "yes", "no"];
    let word = text.trim().to_ascii_lowercase();
    if on_off.contains(&word.as_str()) {
        return Err(format!(
            "must be on, off or a list of hosts, and \"{word}\" is not a host"
        ));
    }
    let hosts = OpenHost::parse(text).map_err(|problem| format!("is not valid: {problem}"))?;
    Ok(HostEntry(hosts))
}

inline_schema!([] NetworkEntry, generator => {
    let hosts = Vec::<HostEntry>::json_schema(generator);
    json_schema!({ "anyOf": [{ "type": "string" }, hosts] })
});
inline_schema!([] HostEntry, _generator => json_schema!({ "type": "string", "minLength": 1 }));

/// Reads the hosts.
pub(crate) fn load(sources: &Sources, notes: &mut Notes) -> Result<NetworkAccess, Failure> {
    let given = match sources.apart(|file| &file.network)? {
        (person, Some(project)) if matches!(project.value, NetworkEntry::Off) => {
            let is_open =
                |given: &Given<'_, NetworkEntry>| !matches!(given.value, NetworkEntry::Off);
            match person {
                Some(person) if !is_open(&person) => Some(person),
                _ => Some(project),
            }
        }
        (person, Some(project)) => {
            notes.warn(project.ignored(
                "a project's file may only switch the network off; open hosts in your own file or with --network",
            ));
            person
        }
        (person, None) => person,
    };
    let Some(given) = given else {
        return Ok(NetworkAccess::default());
    };
    notes.show("network", &given);
    let from = given.from.to_string();
    let (is_whole, hosts) = match given.value {
        NetworkEntry::On => (true, Vec::new()),
        NetworkEntry::Off => (false, Vec::new()),
        NetworkEntry::Hosts(hosts) => {
            (false, hosts.into_iter().flat_map(|entry| entry.0).collect())
        }
    };
    Ok(NetworkAccess {
        hosts,
        is_whole,
        from,
    })
}

/// Warns about rules that have no effect.
pub(crate) fn check(policy: &Policy, notes: &mut Notes) {
    let access = policy.network();
    let closes = |verdict| matches!(verdict, Verdict::Deny | Verdict::Ask);
    for rule in policy.about_network() {
        if access.is_whole && closes(rule.verdict()) {
            notes.warn(format!(
                "{}: {rule} has no effect while `network` is on ({}); list hosts there instead",
                rule.location(),
                access.from
            ));
        }
    }
    for rule in policy.rules_of(RuleOwner::Project) {
        if rule.tool() == haft::NETWORK && rule.verdict() == Verdict::Allow {
            notes.warn(format!(
                "{}: {} opens nothing: a project's file may only close hosts",
                rule.location(),
                visible(&rule.to_string())
            ));
        }
    }
}
