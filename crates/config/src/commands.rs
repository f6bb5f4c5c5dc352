//! Settings for commands: network, environment, and where they run. A project's file can
//! only take permissions away.

use super::Notes;
use super::network;
use super::setting::{Filled, or_name};
use super::sources::Sources;
use crate::failure::Failure;
use haft::NetworkAccess;
use haft::ops::executor::sandbox::Network;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;
use std::path::PathBuf;

/// Machine that commands run on.
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
#[derive(Debug, Clone)]
pub struct Commands {
    /// Network that commands have.
    pub network: Network,
    /// Hosts that commands may reach.
    pub(crate) access: NetworkAccess,
    /// Whether git over ssh may log in with the user's agent.
    pub ssh_agent: bool,
    /// Variables that commands get even if they look secret.
    pub granted: Vec<String>,
    /// Machine that they run on.
    pub executor: Executor,
}

/// Machine that commands run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Executor {
    /// This machine.
    Local,
    /// Another machine, over ssh.
    Ssh(Host),
}

/// Machine that commands run on over ssh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Name for ssh.
    pub name: String,
    /// Name for messages, with variables unexpanded.
    pub(crate) shown: String,
    /// Folder on that machine that corresponds to the work folder.
    pub dir: Option<PathBuf>,
    /// Extra ssh options, `Name=value`.
    pub options: Vec<String>,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Reads the settings.
pub(crate) fn load(sources: &Sources, notes: &mut Notes) -> Result<Commands, Failure> {
    let access = network::load(sources, notes)?;
    let granted = sources.shown("tools.env", |file| &file.tools.env, notes)?;
    let ssh_agent = sources.shown("ssh_agent", |file| &file.ssh_agent, notes)?;
    let executor = sources.shown("executor", |file| &file.executor, notes)?;
    let shown = executor.written["ssh"].as_str().map(str::to_owned);
    Ok(Commands {
        network: match access.is_whole {
            true => Network::On,
            false => Network::Session,
        },
        access,
        ssh_agent: ssh_agent.value,
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
