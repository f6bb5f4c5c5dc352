//! Commands of a session: how they are started and sandboxed, what is shown while one runs,
//! and the notes about it in every toolset.

mod live;
mod notes;

pub(crate) use live::{Live, PACE};
pub(crate) use notes::{details, findings, looks_refused, notes, notes_within};

use haft_ops::effects::Recording;
use haft_ops::exec::caches::{CacheSettings, Caches};
use haft_ops::exec::network::{Gateway, SharedNetwork};
use haft_ops::exec::{ExecContext, Monitor, RemoteFolder, Sandbox};
use haft_ops::executor::Executor;
use haft_ops::executor::sandbox::{
    self, Controls, Counting, Enforcement, Execution, Helper, Limits, Memory, Network, Request,
};
use haft_ops::scope::{FileRules, Reading, ReplacesShared, ScopeConfig, Writing};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of processes and threads of a command: more than a build on this number
/// of processors needs, and few enough to keep the machine responsive.
fn processes() -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(processors)
        .unwrap_or(u32::MAX)
        .saturating_mul(256)
        .clamp(1024, 16_384)
}

/// Returns the resource limits of a command. Memory is not limited, because programs
/// reserve far more than they use. When memory runs out, commands are killed first.
#[must_use]
pub fn limits() -> Limits {
    Limits {
        processes: processes(),
        counting: Counting::Always,
        memory: Memory::Unlimited,
    }
}

/// Settings for running commands. Without them, a session cannot run any.
#[derive(Clone)]
pub struct Commands {
    /// Starts the commands.
    pub executor: Arc<dyn Executor>,
    /// Environment variables of the commands.
    pub environment: Vec<(OsString, OsString)>,
    /// The machine that the commands run on.
    pub place: CommandLocation,
    /// Way out of the network that the commands of a session share.
    pub gateway: Option<Arc<dyn Gateway>>,
    /// Caches that the commands may fill, if any.
    pub caches: Option<CacheSettings>,
}

/// The machine that commands run on, which decides how they can be sandboxed.
#[derive(Debug, Clone)]
pub enum CommandLocation {
    /// On this machine, in the kernel's sandbox.
    Here {
        /// Finds out which sandbox this machine supports.
        helper: Helper,
        /// Network access of the commands.
        network: Network,
        /// Folders with sockets, in addition to `/run` and `/tmp`: the user's runtime
        /// folder, other temp folders.
        sockets: Vec<PathBuf>,
        /// Further folders that the commands may read, wherever they are.
        readable: Vec<PathBuf>,
    },
    /// On another machine, where haft cannot sandbox them.
    Elsewhere {
        /// The work folder on that machine; `None` for the same path.
        dir: Option<PathBuf>,
    },
}

impl Commands {
    /// Returns the environment and sandbox of commands for these places and rules. `caches`
    /// is the folder for the caches of this work folder.
    ///
    /// # Errors
    /// When commands must be sandboxed and there is no folder for their temporary files:
    /// they must not run without a sandbox.
    pub(crate) fn exec_context(
        self,
        scope_config: &ScopeConfig,
        outputs: Option<PathBuf>,
        monitor: &Arc<Monitor>,
        caches: Option<PathBuf>,
    ) -> Result<ExecContext, NoTemp> {
        let confines = !is_off(scope_config.rules);
        let remote_folder = match &self.place {
            CommandLocation::Elsewhere { dir: Some(remote) } => Some(RemoteFolder {
                local: scope_config.work_dir.clone(),
                remote: remote.clone(),
            }),
            _ => None,
        };
        let sandbox = match self.place {
            CommandLocation::Here {
                helper,
                network,
                sockets,
                readable,
            } if confines => {
                let temp = scope_config.temp.as_ref().ok_or(NoTemp)?;
                let request = Request {
                    rules: scope_config.rules,
                    work_dir: scope_config.work_dir.clone(),
                    roots: scope_config.roots.clone(),
                    readable: [scope_config.readable.as_slice(), &readable].concat(),
                    temp: temp.folder.clone(),
                    protect: with_targets(&scope_config.protect),
                    repositories: Controls::default(),
                    homes: scope_config.home.iter().cloned().collect(),
                    own: with_targets(&scope_config.own),
                    denied: Vec::new(),
                    sockets,
                    execution: Execution::Anywhere,
                    network,
                    limits: limits(),
                };
                let sandbox = Sandbox::new(helper, request, outputs).with_monitor(monitor);
                Some(Arc::new(sandbox))
            }
            // The sandbox is off, or out of reach on another machine.
            CommandLocation::Here { .. } | CommandLocation::Elsewhere { .. } => None,
        };
        let settings = self.caches.filter(|_| sandbox.is_some());
        let caches = settings.zip(caches);
        Ok(ExecContext {
            executor: self.executor,
            environment: self.environment,
            sandbox,
            remote_folder,
            filter: None,
            isolation: None,
            recording: Recording::Off,
            network: SharedNetwork::with_gateway(self.gateway),
            pass: None,
            caches: caches.map(|(settings, folder)| Arc::new(Caches::new(settings, folder))),
        })
    }
}

/// Returns the paths and the targets of links among them at the start of the session: a
/// command that removes such a link does not unlock its target.
fn with_targets(protect: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = protect.to_vec();
    for path in protect {
        if let Some(real) = haft_ops::scope::real(path).filter(|real| !all.contains(real)) {
            all.push(real);
        }
    }
    all
}

impl Commands {
    /// Returns the network access, as far as it is decided here.
    pub(crate) fn network(&self) -> Network {
        match &self.place {
            CommandLocation::Here { network, .. } => *network,
            CommandLocation::Elsewhere { .. } => Network::Off,
        }
    }

    /// Returns a copy with another network access.
    pub(crate) fn with_network(mut self, other: Network) -> Self {
        if let CommandLocation::Here { network, .. } = &mut self.place {
            *network = other;
        }
        self
    }
}

/// Commands are sandboxed, and there is no folder for their temporary files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoTemp;

impl Commands {
    /// Returns how commands see the private temp folder: as `/tmp`, or under its own name
    /// if the machine has no namespaces.
    pub(crate) fn temp_replaces_shared(&self) -> ReplacesShared {
        match &self.place {
            CommandLocation::Here { helper, .. } => {
                let helper = helper.clone();
                ReplacesShared::Ask(Arc::new(move || {
                    !matches!(sandbox::probe(&helper), Enforcement::Partial { .. })
                }))
            }
            CommandLocation::Elsewhere { .. } => ReplacesShared::Always,
        }
    }
}

/// Rounds a time limit for messages.
pub(crate) fn up_to_tenths(limit: Duration) -> Duration {
    let tenths = limit.as_millis().div_ceil(100);
    Duration::from_millis(
        u64::try_from(tenths)
            .unwrap_or(u64::MAX)
            .saturating_mul(100),
    )
}

/// Whether the rules leave everything to the operating system.
pub(crate) fn is_off(rules: FileRules) -> bool {
    rules.reading == Reading::Anywhere && rules.writing == Writing::Anywhere
}
