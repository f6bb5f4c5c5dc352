//! The confinement of a command, enforced by the kernel.
//!
//! ```text
//! haft ──plan──▶ outer supervisor ──fork──▶ inner supervisor ──▶ command
//!                leaves haft's              mounts, Landlock, seccomp;
//!                namespaces                 PID 1 of the namespace
//! ```
//!
//! haft builds a [`Plan`] of real paths from the session's folders and rules and sends it to
//! the supervisor. The outer supervisor enters new namespaces and forks. It stays outside the
//! PID namespace, where the command cannot signal it. The inner one rebuilds the file system
//! (`mounts`: clone every source, make everything read-only at once, put the clones on top),
//! applies Landlock with the same rules, then seccomp, and starts the command. If the kernel
//! refuses any step, the command does not run. Where namespaces are not available the fork
//! still happens, so that a command cannot kill the process that cleans up after it.
//!
//! [`probe`] finds out what a machine can do by trying it in a process that is thrown away. If
//! a step fails later that worked before, haft probes again, once. If the machine is merely
//! out of resources (`busy`), that one command is refused. Landlock rules are required: a rule
//! that is not fully enforced is an error.
//!
//! Output is bounded in memory (2 MiB per stream) and goes to disk beyond that. Past the limit
//! on disk, the beginning is kept and the end goes to a second file used as a ring.
//!
//! Not prevented: changing modes and times of the user's own files outside at the partial
//! level; set-id bits on files in the workspace; UNIX sockets outside the hidden folders at
//! the full level. A cover on a single *file* lasts until a process outside the sandbox
//! replaces that file.

pub(super) mod busy;
#[cfg(target_os = "linux")]
mod cgroup;
mod changeable;
mod confinement;
mod encode;
#[cfg(target_os = "linux")]
mod enter;
mod known_paths;
#[cfg(target_os = "linux")]
mod landlock_rules;
#[cfg(target_os = "linux")]
mod layers;
#[cfg(not(target_os = "linux"))]
#[path = "sandbox/no_layers.rs"]
mod layers;
#[cfg(target_os = "linux")]
mod layout;
#[cfg(target_os = "linux")]
mod maker;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod network;
#[cfg(not(target_os = "linux"))]
#[path = "sandbox/no_network.rs"]
mod network;
#[cfg(target_os = "linux")]
mod overlay;
mod plan;
#[cfg(target_os = "linux")]
mod privileges;
mod probe;
mod scaffold;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod syscalls;

pub use crate::git::{Controls, repositories};
#[cfg(target_os = "linux")]
pub use cgroup::ControlGroup;
pub use confinement::{CommonConfinement, Confinement};
#[cfg(target_os = "linux")]
pub use enter::{enter, leave, split};
pub use known_paths::secrets;
pub(crate) use known_paths::{names as entries, real as real_place};
#[cfg(not(target_os = "linux"))]
pub use layers::LayerSource;
pub use layers::{MAX_LAYERS, SessionLayers};
pub use network::SessionNetwork;
#[cfg(target_os = "linux")]
pub use overlay::LayerSource;
pub use plan::{Plan, Request, WatchReason, Watched};
pub use probe::{
    Enforcement, Helper, Processes, most, probe, probe_anew, probe_now, processes, rehearse,
};
pub use scaffold::Scaffold;
#[cfg(target_os = "linux")]
pub(super) use syscalls::keep_standard_streams_only;

use std::io;
use std::path::{Path, PathBuf};

/// Result of a step of confining a process.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reason why a confinement could not be planned or applied. In every case, the command
/// must not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The rules allow everything. The caller must handle that case instead of asking for a
    /// plan.
    #[error("these file rules confine nothing")]
    Unconfined,
    /// A folder of the request cannot be used.
    #[error("{}: {reason}", path.display())]
    Unusable {
        /// Folder or file that the plan needs.
        path: PathBuf,
        /// The problem, as a clause after the path.
        reason: &'static str,
    },
    /// At the partial level, a secret path inside a writable folder would stay reachable.
    #[error("{} is in a folder that commands may write, and cannot be hidden there without namespaces", path.display())]
    NotHideable {
        /// The secret path.
        path: PathBuf,
    },
    /// The bytes are not a valid plan.
    #[error("malformed sandbox plan: {0}")]
    Malformed(&'static str),
    /// The kernel refused a step.
    #[error("sandbox: {step}{}: {source}", at(path.as_deref()))]
    Step {
        /// Name of the step.
        step: &'static str,
        /// The path it was about, if any.
        path: Option<PathBuf>,
        /// The error that the kernel returned.
        source: io::Error,
    },
    /// A mechanism exists but does not enforce what was requested.
    #[error("sandbox: {mechanism}: {reason}")]
    NotEnforced {
        /// Name of the mechanism.
        mechanism: &'static str,
        /// The missing mechanism, as a clause.
        reason: String,
    },
    /// The machine is out of resources.
    #[error("sandbox: {reason}")]
    Busy {
        /// The failed step and its error.
        reason: String,
    },
    /// This machine has no mechanism that confines a command.
    #[error("no sandbox on this machine: {reason}")]
    Unavailable {
        /// The missing mechanism, as a clause.
        reason: String,
    },
}

impl Error {
    /// Whether the machine was only out of resources, which says nothing about what it can
    /// enforce.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Busy { .. } => true,
            Self::Step { source, .. } => busy::is_passing(source),
            _ => false,
        }
    }
}

fn at(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| format!(" ({})", path.display()))
}

/// Kind of a path at which a layer may be mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceKind {
    Folder,
    Missing,
    /// A file, a link or unknown.
    Other,
}

pub(crate) fn place_kind(path: &Path) -> PlaceKind {
    match known_paths::kind(path) {
        known_paths::Kind::Folder => PlaceKind::Folder,
        known_paths::Kind::Nothing => PlaceKind::Missing,
        _ => PlaceKind::Other,
    }
}

/// Network access of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// No connections to anything outside the command.
    Off,
    /// No connections to anything outside the session: its commands share a network. Without
    /// namespaces this is the same as `Off`.
    Session,
    /// Whatever the machine can reach.
    On,
}

/// Folders from which programs can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Execution {
    /// Any folder that can be read.
    Anywhere,
    /// Any folder except the work folder, the roots and those in `nor`. At the full level
    /// libraries cannot be loaded from these either. Folders that contain the system's own
    /// programs are not restricted, and an interpreter can still be given a file to read.
    OutsideRoots {
        /// Further folders to exclude.
        nor: Vec<PathBuf>,
        /// Exceptions: excluded folders, or folders around them, from which programs may be
        /// started after all.
        except: Vec<PathBuf>,
    },
}

/// Address space that each process of a command may map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// No limit. When memory runs out, the command is killed first.
    Unlimited,
    /// Maximum in bytes. Programs that reserve far more than they use (garbage collectors
    /// do) need a generous value.
    Bytes(u64),
}

/// When the number of processes is limited. For an ordinary user that is free. For root it
/// needs a control group, and moving a process into one waits for every other processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// For root too.
    Always,
    /// Only where it is free.
    WhereFree,
}

/// Resource limits of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of processes and threads alive at a time.
    pub processes: u32,
    /// Whether `processes` is also enforced where that costs time.
    pub counting: Counting,
    /// Limit for each process.
    pub memory: Memory,
}

/// Level of enforcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Landlock and seccomp.
    Partial,
    /// Namespaces, Landlock and seccomp.
    Full,
}

/// Mechanisms that `enter` applies, as [`probe`] found them possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strength {
    /// Whether namespaces are used.
    pub level: Level,
    /// Version of Landlock whose rights the kernel must enforce.
    pub landlock: u8,
}

/// The supervisor that is calling: there are two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The one that haft started.
    Outer,
    /// The one that the outer supervisor started.
    Inner,
}

/// Next task of the calling process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Create a process for [`Stage::Inner`], with [`split`] or by starting the binary
    /// again. Only a child is in the new PID namespace, and this process stays free to
    /// clean up. It can no longer start threads.
    StartInner,
    /// Start the command, and reap the processes it leaves behind.
    RunCommand,
}

/// Result of a completed stage.
#[derive(Debug)]
pub struct Entered {
    /// The next task of the calling process.
    pub role: Role,
    /// The control group that limits the number of processes, if one is used. Keep it until
    /// no process of the command is alive, because dropping it removes the group.
    #[cfg(target_os = "linux")]
    pub control_group: Option<ControlGroup>,
    /// The command's copies of the cache layers.
    #[cfg(target_os = "linux")]
    pub layers: Vec<std::os::fd::OwnedFd>,
}

/// Refuses: other systems have no supported mechanism yet.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn enter(
    _plan: &Plan,
    _strength: Strength,
    _stage: Stage,
    _layers: &[std::os::fd::OwnedFd],
) -> Result<Entered> {
    Err(Error::Unavailable {
        reason: "this system has no mechanism that haft supports".to_owned(),
    })
}
