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
//! level; set-id bits on files in the workspace; UNIX sockets outside the covered folders at
//! the full level. A cover on a single *file* lasts until a process outside the sandbox
//! replaces that file.

pub(super) mod busy;
#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod cgroup;
mod confinement;
mod encode;
#[cfg(target_os = "linux")]
mod enter;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod layout;
#[cfg(target_os = "linux")]
mod mounts;
mod places;
mod plan;
#[cfg(target_os = "linux")]
mod privileges;
mod probe;
#[cfg(target_os = "linux")]
mod system;

pub use crate::git::{Controls, repositories};
#[cfg(target_os = "linux")]
pub use cgroup::Cage;
pub use confinement::{Confinement, Surface};
#[cfg(target_os = "linux")]
pub use enter::{enter, leave, split};
pub use places::secrets;
pub use plan::{Plan, Request, Watched, Why};
pub use probe::{
    Enforcement, Helper, Processes, most, probe, probe_anew, probe_now, processes, rehearse,
};
#[cfg(target_os = "linux")]
pub(super) use system::keep_standard_streams_only;

use std::io;
use std::path::{Path, PathBuf};

/// The result of confining something.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a confinement could not be planned or put on. Whatever it was, the
/// command must not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The rules let everything be reached: that is no confinement, and the
    /// caller has to say so instead of asking for a plan.
    #[error("these file rules confine nothing")]
    Unconfined,
    /// A folder of the request cannot be used.
    #[error("{}: {reason}", path.display())]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// At the partial level a secret place inside a folder that may be written
    /// stays reachable.
    #[error("{} lies in a folder that commands may write, and cannot be hidden there without namespaces", path.display())]
    NotHideable {
        /// The secret place.
        path: PathBuf,
    },
    /// The bytes are no plan.
    #[error("malformed sandbox plan: {0}")]
    Malformed(&'static str),
    /// The kernel refused a step.
    #[error("sandbox: {step}{}: {source}", at(path.as_deref()))]
    Step {
        /// What was being done.
        step: &'static str,
        /// To what.
        path: Option<PathBuf>,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A mechanism is there but does not hold what was asked of it.
    #[error("sandbox: {mechanism}: {reason}")]
    NotEnforced {
        /// Which one.
        mechanism: &'static str,
        /// Why.
        reason: String,
    },
    /// Nothing on this machine confines a command.
    #[error("no sandbox on this machine: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
}

impl Error {
    /// Whether the machine only had no room for it just now: that says nothing about
    /// what it can do.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Step { source, .. } if busy::is_passing(source))
    }
}

fn at(path: Option<&Path>) -> String {
    path.map_or_else(String::new, |path| format!(" ({})", path.display()))
}

/// What a command may reach over the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Nothing.
    Off,
    /// What the machine reaches.
    On,
}

/// Where programs can be started from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Execution {
    /// From anywhere that can be read.
    Anywhere,
    /// From anywhere but the work folder, the roots and what is listed. At the full level
    /// libraries cannot be loaded from there either. Nothing holds a folder that the
    /// system's own programs lie in, and nothing holds an interpreter that is given a
    /// file to read.
    OutsideRoots {
        /// The other folders.
        nor: Vec<PathBuf>,
        /// Those of all these folders, and folders around them, that programs may be
        /// started from after all.
        except: Vec<PathBuf>,
    },
}

/// How much memory each process of a command may map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// As much as the system gives; the command is the first to go when there
    /// is none left.
    Unlimited,
    /// This many bytes of address space. Programs that reserve far more than
    /// they use (garbage collectors do) need a generous figure.
    Bytes(u64),
}

/// When processes are counted. An ordinary user's are always, at no cost; those
/// of root only in a control group, and moving a process into one waits for
/// every other processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// Also root's.
    Always,
    /// Only where it costs nothing.
    WhereFree,
}

/// What a command may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Processes and threads alive at a time.
    pub processes: u32,
    /// Whether that is worth waiting for.
    pub counting: Counting,
    /// Memory of each process.
    pub memory: Memory,
}

/// How much is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Landlock and seccomp.
    Partial,
    /// Namespaces as well.
    Full,
}

/// What `enter` puts on, as [`probe`] found it possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strength {
    /// With or without namespaces.
    pub level: Level,
    /// The version of Landlock whose rights are demanded of the kernel.
    pub landlock: u8,
}

/// Which of the two supervisors calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The one that haft started.
    Outer,
    /// The one that the first one started.
    Inner,
}

/// What the calling process has to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Make another process for [`Stage::Inner`], with [`split`] or by starting
    /// the binary again: only a child is in
    /// the new PID namespace, and this one stays free to clean up. No thread can
    /// be started from here on.
    StartInner,
    /// Start the command and reap whatever it leaves behind.
    RunCommand,
}

/// A stage that is done.
#[derive(Debug)]
pub struct Entered {
    /// What to do next.
    pub role: Role,
    /// Holds the limit on processes where a control group does; to be kept
    /// until nothing of the command is alive, because dropping it removes the
    /// group.
    #[cfg(target_os = "linux")]
    pub cage: Option<Cage>,
}

/// Other systems have no mechanism here yet: whatever is asked is refused.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn enter(_plan: &Plan, _strength: Strength, _stage: Stage) -> Result<Entered> {
    Err(Error::Unavailable {
        reason: "it has no mechanism that haft knows".to_owned(),
    })
}
