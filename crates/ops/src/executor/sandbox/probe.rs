//! How much of the confinement this machine can do, found by doing it in a
//! process that is thrown away.

use super::{Error, Level, Strength};
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// What commands are confined by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enforcement {
    /// Namespaces, Landlock and seccomp.
    Full {
        /// The version of Landlock.
        landlock: u8,
    },
    /// Landlock and seccomp.
    Partial {
        /// The version of Landlock.
        landlock: u8,
        /// Why there is no more.
        lacks: String,
    },
    /// Nothing: commands are refused in every mode but `off`.
    None {
        /// Why.
        reason: String,
    },
}

impl Enforcement {
    /// What to ask of `enter`.
    ///
    /// # Errors
    /// When nothing is enforced. The command must not run then.
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

    /// What is not covered, and what would raise it: the lines under the first.
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
                    "programs cannot make a terminal of their own".to_owned(),
                    "/tmp is the machine's and cannot be written; $TMPDIR is the private one"
                        .to_owned(),
                    "modes and times of files outside can be changed where the user owns them"
                        .to_owned(),
                ];
                if *landlock < 6 {
                    remarks.push(format!(
                        "landlock v{landlock} does not keep signals from other processes of the user"
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

/// The most that any machine enforces, as far as it is known here.
#[must_use]
pub fn most() -> Enforcement {
    #[cfg(target_os = "linux")]
    return Enforcement::Full {
        landlock: super::files::NEWEST,
    };
    #[cfg(not(target_os = "linux"))]
    return Enforcement::None {
        reason: "this system has no mechanism that haft knows".to_owned(),
    };
}

/// Whether a command's processes are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Processes {
    /// Up to this many at a time.
    Limited(u32),
    /// Any number.
    NotLimited {
        /// Why.
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

/// How this binary is started for a trial: with these arguments and one or two
/// words more, it has to print the line that [`rehearse`] returns for them.
#[derive(Debug, Clone)]
pub struct Helper {
    /// The binary.
    pub program: PathBuf,
    /// What leads to `rehearse`.
    pub args: Vec<OsString>,
    /// The most that is looked for. Less than `Full`, and `None` for nothing at
    /// all, is for tests.
    pub ceiling: Option<Level>,
}

#[cfg(not(target_os = "linux"))]
mod trial {
    use super::{Enforcement, Helper, Processes};
    use crate::executor::sandbox::Limits;

    /// What this machine enforces: nothing that is known here.
    #[must_use]
    pub fn probe(_helper: &Helper) -> Enforcement {
        Enforcement::None {
            reason: "this system has no mechanism that haft knows".to_owned(),
        }
    }

    /// The same.
    ///
    /// # Errors
    /// None here.
    pub fn probe_now(helper: &Helper) -> Result<Enforcement, String> {
        Ok(probe(helper))
    }

    /// The same.
    ///
    /// # Errors
    /// None here.
    pub fn probe_anew(helper: &Helper) -> Result<Enforcement, String> {
        Ok(probe(helper))
    }

    /// Whether processes are limited: they are not.
    #[must_use]
    pub fn processes(_helper: &Helper, _enforcement: &Enforcement, _limits: Limits) -> Processes {
        Processes::NotLimited {
            reason: "this system has no mechanism that haft knows".to_owned(),
        }
    }

    /// There is nothing to rehearse.
    #[must_use]
    pub fn rehearse(_helper: &Helper, _words: &[String]) -> String {
        "no nothing to try".to_owned()
    }
}

#[cfg(target_os = "linux")]
#[path = "trial.rs"]
mod trial;

pub use trial::{probe, probe_anew, probe_now, processes, rehearse};
