//! Probes which parts of the confinement this machine supports, by applying them in a
//! throwaway process.

use super::{Error, Level, Strength};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// Mechanisms that confine commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enforcement {
    /// Namespaces, Landlock and seccomp.
    Full {
        /// Version of Landlock.
        landlock: u8,
    },
    /// Landlock and seccomp.
    Partial {
        /// Version of Landlock.
        landlock: u8,
        /// The reason why there are no namespaces.
        lacks: String,
    },
    /// Nothing. Commands are refused in every mode but `off`.
    None {
        /// The missing mechanism, as a clause.
        reason: String,
    },
}

impl Enforcement {
    /// Returns what `enter` should apply.
    ///
    /// # Errors
    /// Nothing is enforced. The command must not run then.
    pub fn strength(&self) -> super::Result<Strength> {
        match self {
            Self::Full { landlock } => Ok(Strength {
                level: Level::Full,
                landlock: *landlock,
            }),
            Self::Partial { landlock, .. } => Ok(Strength {
                level: Level::Partial,
                landlock: *landlock,
            }),
            Self::None { reason } => Err(Error::Unavailable {
                reason: reason.clone(),
            }),
        }
    }

    /// Returns what is not enforced and how to improve that, as lines below the summary.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        match self {
            Self::Full { .. } => {
                vec!["UNIX sockets outside /run and the temp folders can be reached".to_owned()]
            }
            Self::Partial { landlock, lacks } => {
                let mut remarks = vec![
                    format!("no namespaces: {lacks}"),
                    "other processes can be seen (not read, not traced)".to_owned(),
                    "programs cannot open a pseudo-terminal".to_owned(),
                    "/tmp is shared and read-only; use $TMPDIR, which is private".to_owned(),
                    "modes and times of the user's own files outside can be changed".to_owned(),
                ];
                if *landlock < 6 {
                    remarks.push(format!(
                        "landlock v{landlock} does not block signals to other processes of the user"
                    ));
                }
                remarks.push(
                    "allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, \
                     kernel.apparmor_restrict_unprivileged_userns, or the container's seccomp profile) for more"
                        .to_owned(),
                );
                remarks
            }
            Self::None { .. } => {
                vec!["commands are refused; `--sandbox off` runs them unconfined".to_owned()]
            }
        }
    }
}

impl fmt::Display for Enforcement {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { landlock } => {
                write!(
                    to,
                    "sandbox: full (namespaces, landlock v{landlock}, seccomp)"
                )
            }
            Self::Partial { .. } => write!(
                to,
                "sandbox: partial — protected folders inside the workspace are not enforced for commands"
            ),
            Self::None { reason } => write!(to, "sandbox: none — {reason}"),
        }
    }
}

/// Returns the highest enforcement that haft supports.
#[must_use]
pub fn most() -> Enforcement {
    #[cfg(target_os = "linux")]
    return Enforcement::Full {
        landlock: super::landlock_rules::NEWEST,
    };
    #[cfg(not(target_os = "linux"))]
    return Enforcement::None {
        reason: "this system has no mechanism that haft supports".to_owned(),
    };
}

/// Whether the number of a command's processes is limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Processes {
    /// Maximum number at a time.
    Limited(u32),
    /// The machine has no way to limit them.
    NotLimited {
        /// The missing mechanism, as a clause.
        reason: String,
    },
}

impl fmt::Display for Processes {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(count) => write!(to, "processes: limited to {count}"),
            Self::NotLimited { reason } => write!(to, "processes: not limited ({reason})"),
        }
    }
}

/// How to start this binary for a trial. With these arguments and one or two more, it must
/// print the line that [`rehearse`] returns for them.
#[derive(Debug, Clone)]
pub struct Helper {
    /// Path of the binary, which is haft itself.
    pub program: PathBuf,
    /// Arguments that make it call `rehearse`.
    pub args: Vec<OsString>,
    /// Highest level to try. Anything less than `Full` is for tests; `None` means no
    /// enforcement.
    pub ceiling: Option<Level>,
}

#[cfg(not(target_os = "linux"))]
mod trial {
    use super::{Enforcement, Helper, Processes};
    use crate::executor::sandbox::Limits;

    /// Returns no enforcement: this system has no supported mechanism.
    #[must_use]
    pub fn probe(_helper: &Helper) -> Enforcement {
        Enforcement::None {
            reason: "this system has no mechanism that haft supports".to_owned(),
        }
    }

    /// Same as [`probe`].
    ///
    /// # Errors
    /// Never.
    pub fn probe_now(helper: &Helper) -> Result<Enforcement, String> {
        Ok(probe(helper))
    }

    /// Same as [`probe`].
    ///
    /// # Errors
    /// Never.
    pub fn probe_anew(helper: &Helper) -> Result<Enforcement, String> {
        Ok(probe(helper))
    }

    /// Returns that processes are not limited.
    #[must_use]
    pub fn processes(_helper: &Helper, _enforcement: &Enforcement, _limits: Limits) -> Processes {
        Processes::NotLimited {
            reason: "this system has no mechanism that haft supports".to_owned(),
        }
    }

    /// Does nothing on this system.
    #[must_use]
    pub fn rehearse(_helper: &Helper, _words: &[String]) -> String {
        "no nothing to try".to_owned()
    }
}

#[cfg(target_os = "linux")]
#[path = "trial.rs"]
mod trial;

pub use trial::{probe, probe_anew, probe_now, processes, rehearse};
