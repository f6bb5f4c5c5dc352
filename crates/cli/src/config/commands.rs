//! Settings for commands: network, environment, and where they run. A project's file can
//! only take permissions away.

use super::Notes;
use super::setting::{Filled, OneOf, or_name};
use super::sources::{Given, Sources};
use crate::exit::Failure;
use haft::ops::executor::sandbox::Network;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;
use std::path::PathBuf;

/// Where commands run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
#[schemars(tag = "kind", transform = or_name)]
pub(crate) enum ExecutorEntry {
    /// On this machine.
    Local,
    /// On another machine, over ssh.
    Ssh {
        /// Name for ssh.
        ssh: Filled,
        /// Folder on that machine that corresponds to the work folder.
        dir: Option<Filled>,
        /// Extra ssh options, `Name=value`.
        #[serde(default)]
        options: Vec<String>,
    },
}

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
pub(crate) fn load(sources: &Sources, notes: &mut Notes) -> Result<Commands, Failure> {
    let off = Given::default(OneOf::default("off"), "off");
    let network = sources.stricter(
        |file| &file.network,
        off,
        |network| if network.0 == "off" { 1.0 } else { 0.0 },
        notes,
        "network VALUE is ignored: a project's file may only tighten",
    )?;
    let is_on = network.value.0 == "on";
    notes.show("network", &network);
    let granted = sources.first(|file| &file.tools.env)?;
    let granted = granted.unwrap_or_else(|| Given::default(Vec::new(), Vec::<String>::new()));
    notes.show("tools.env", &granted);
    let executor = sources.first(|file| &file.executor)?;
    let executor = executor.unwrap_or_else(|| Given::default(ExecutorEntry::Local, "local"));
    notes.show("executor", &executor);
    let shown = executor.written["ssh"].as_str().map(str::to_owned);
    Ok(Commands {
        network: if is_on { Network::On } else { Network::Off },
        granted: granted.value,
        executor: match executor.value {
            ExecutorEntry::Local => Executor::Local,
            ExecutorEntry::Ssh { ssh, dir, options } => Executor::Ssh(Host {
                shown: shown.unwrap_or_else(|| ssh.0.clone()),
                name: ssh.0,
                dir: dir.map(|dir| PathBuf::from(dir.0)),
                options,
            }),
        },
    })
}
