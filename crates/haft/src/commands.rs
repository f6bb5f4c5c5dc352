//! Commands of a session: how they are started and confined, what is shown while
//! one runs, and what is said of it afterwards in every toolset.

mod live;
mod notes;

pub(crate) use live::{Live, PACE};
pub(crate) use notes::{details, looks_refused, notes, notes_within, touched};

use haft_ops::exec::{Elsewhere, Sandbox, Surroundings, Vigil};
use haft_ops::executor::Executor;
use haft_ops::executor::sandbox::{
    self, Controls, Counting, Enforcement, Execution, Helper, Limits, Memory, Network, Request,
};
use haft_ops::scope::{FileRules, Places, Reading, Stands, Writing};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Processes and threads that a command may have at a time: more than a build on
/// so many processors needs, and few enough for the machine to stay responsive
/// when all of them want to run.
fn processes() -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(processors)
        .unwrap_or(u32::MAX)
        .saturating_mul(256)
        .clamp(1024, 16_384)
}

/// What a command may use up. Memory is not limited: programs reserve far more
/// than they use. When it runs out, commands are the first to go.
#[must_use]
pub fn limits() -> Limits {
    Limits {
        processes: processes(),
        counting: Counting::Always,
        memory: Memory::Unlimited,
    }
}

/// How a session runs commands. Without it, it runs none.
#[derive(Clone)]
pub struct Commands {
    /// What starts them.
    pub executor: Arc<dyn Executor>,
    /// What they see of the environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where they run.
    pub place: Place,
}

/// Where commands run, which says what can confine them.
#[derive(Debug, Clone)]
pub enum Place {
    /// On this machine, where the kernel confines them.
    Here {
        /// How to find out what it can.
        helper: Helper,
        /// What may be reached over the network.
        network: Network,
        /// Folders beside `/run` and `/tmp` in which sockets live: the user's
        /// runtime folder, other temp folders.
        sockets: Vec<PathBuf>,
    },
    /// On another machine, where nothing of ours confines them.
    Elsewhere {
        /// The folder there that stands for the work folder; the same path if
        /// there is none.
        dir: Option<PathBuf>,
    },
}

impl Commands {
    /// The surroundings of a session's commands, as its places and rules say.
    ///
    /// # Errors
    /// When they have to be confined and there is no place for what that needs:
    /// they must not run without.
    pub(crate) fn surroundings(
        self,
        places: &Places,
        outputs: Option<PathBuf>,
        vigil: &Arc<Vigil>,
    ) -> Result<Surroundings, NoTemp> {
        let confines = !is_off(places.rules);
        let elsewhere = match &self.place {
            Place::Elsewhere { dir: Some(there) } => Some(Elsewhere {
                here: places.work_dir.clone(),
                there: there.clone(),
            }),
            _ => None,
        };
        let sandbox = match self.place {
            Place::Here {
                helper,
                network,
                sockets,
            } if confines => {
                let temp = places.temp.as_ref().ok_or(NoTemp)?;
                let request = Request {
                    rules: places.rules,
                    work_dir: places.work_dir.clone(),
                    roots: places.roots.clone(),
                    readable: places.readable.clone(),
                    temp: temp.folder.clone(),
                    protect: with_targets(&places.protect),
                    repositories: Controls::default(),
                    homes: places.home.iter().cloned().collect(),
                    own: with_targets(&places.own),
                    closed: Vec::new(),
                    sockets,
                    execution: Execution::Anywhere,
                    network,
                    limits: limits(),
                };
                let sandbox = Sandbox::new(helper, request, outputs).watching(vigil);
                Some(Arc::new(sandbox))
            }
            // Off, or where nothing of ours reaches.
            Place::Here { .. } | Place::Elsewhere { .. } => None,
        };
        Ok(Surroundings {
            executor: self.executor,
            environment: self.environment,
            sandbox,
            elsewhere,
            closing: None,
            apart: None,
        })
    }
}

/// These places, and where links among them lead when the session begins: a command that
/// removes such a link does not unlock what it led to.
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
    /// What they may reach over the network, as far as that is decided here.
    pub(crate) fn network(&self) -> Network {
        match &self.place {
            Place::Here { network, .. } => *network,
            Place::Elsewhere { .. } => Network::Off,
        }
    }

    /// The same with another word on the network.
    pub(crate) fn with_network(mut self, other: Network) -> Self {
        if let Place::Here { network, .. } = &mut self.place {
            *network = other;
        }
        self
    }
}

/// Commands are confined, and there is no folder for their temporary files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoTemp;

impl Commands {
    /// Whether these commands see the private temp folder as `/tmp`: where there
    /// are no namespaces, they have it by its own name only.
    pub(crate) fn temp_stands(&self) -> Stands {
        match &self.place {
            Place::Here { helper, .. } => {
                let helper = helper.clone();
                Stands::Ask(Arc::new(move || {
                    !matches!(sandbox::probe(&helper), Enforcement::Partial { .. })
                }))
            }
            Place::Elsewhere { .. } => Stands::ForShared,
        }
    }
}

/// What is left of a limit, in a number that can be told.
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
