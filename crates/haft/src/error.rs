//! Errors of calls. Each toolset formats them in its own style.

use haft_ops::text::brief::{FEW, NAME, brief, few};
use std::fmt;
use std::time::Duration;

/// Maximum length of a free-form problem, in characters.
const WORDS: usize = 1_000;

/// The reason why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation failed.
    #[error(transparent)]
    Operation(#[from] haft_ops::Error),
    /// The arguments do not match the schema; the tool did not run.
    #[error("{0}")]
    Invalid(Invalid),
    /// No tool has this name.
    #[error("unknown tool: {}", brief(name, NAME))]
    UnknownTool {
        /// The name that was called.
        name: String,
        /// Similar names, which may have been intended.
        similar: Vec<String>,
        /// Names of all tools.
        known: Vec<String>,
    },
    /// The policy refused the call for the reason inside; the tool did not run.
    #[error(transparent)]
    Refused(Box<Self>),
    /// The policy denied the call, or a resource that the running call tried to use.
    #[error("denied: {reason}")]
    Denied {
        /// Rule or reason for the denial.
        reason: String,
    },
    /// The call needed approval and did not get it. Either the tool did not run, or it
    /// could not use a resource.
    #[error("not approved: {reason}\n{remedy}")]
    NotApproved {
        /// The rule that asked, and why there was no approval.
        reason: String,
        /// How to allow the call, in one sentence.
        remedy: String,
    },
    /// The user can only answer later: make the call again once they have.
    #[error("waits for approval: {question}")]
    Waiting {
        /// The question for the user.
        question: String,
    },
    /// The tool did not finish in time and was stopped.
    #[error("timed out after {}", haft_ops::text::seconds(*after))]
    TimedOut {
        /// The limit that was exceeded.
        after: Duration,
    },
    /// The caller cancelled the call.
    #[error("cancelled")]
    Cancelled,
    /// The tool panicked. The session continues.
    #[error("tool \"{tool}\" panicked: {message}")]
    Panicked {
        /// Name of the tool.
        tool: String,
        /// The panic message.
        message: String,
    },
    /// A failure described by the tool itself, for the model.
    #[error("{text}")]
    Failed {
        /// Message for the model.
        text: String,
        /// What to do next.
        hint: Option<String>,
    },
    /// The failure inside, with details for the front end.
    #[error("{error}")]
    Detailed {
        /// The failure itself.
        error: Box<Self>,
        /// Details that only the front end sees.
        details: serde_json::Map<String, serde_json::Value>,
    },
    /// An internal failure: recording the call, storing its output, or a broken schema.
    #[error("{0}")]
    Fault(String),
}

impl Error {
    /// Creates a failure with a message from the tool.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed {
            text: text.into(),
            hint: None,
        }
    }

    /// Creates the failure of a call that exceeded the session's limit for every call.
    #[must_use]
    pub fn session_limit(limit: Duration) -> Self {
        Self::Failed {
            text: Self::TimedOut { after: limit }.to_string(),
            hint: Some(Self::raise_session_limit(limit)),
        }
    }

    /// Returns a hint on how to raise the session's limit for every call.
    pub(crate) fn raise_session_limit(limit: Duration) -> String {
        let limit = haft_ops::text::seconds(limit);
        format!("`tools.timeout` limits every call to {limit}: raise it to allow more")
    }

    /// Adds a detail for the front end.
    #[must_use]
    pub fn detail(self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        let (error, mut details) = match self {
            Self::Detailed { error, details } => (error, details),
            error => (Box::new(error), serde_json::Map::new()),
        };
        details.insert(name.to_owned(), value.into());
        Self::Detailed { error, details }
    }

    /// Creates an error about invalid arguments from a single message.
    pub fn invalid(problem: impl Into<String>) -> Self {
        Self::Invalid(Invalid {
            problems: vec![Problem::Other(problem.into())],
        })
    }
}

/// Everything that is wrong with the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// At least one problem.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong with an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// A required parameter is missing.
    Missing(String),
    /// The tool has no parameter of this name.
    Unknown {
        /// Name that the model used.
        name: String,
        /// A similar parameter, which may have been intended.
        similar: Option<String>,
        /// Names of all parameters.
        known: Vec<String>,
    },
    /// A value has the wrong type or is out of range.
    Wrong {
        /// Name of the parameter.
        name: String,
        /// Description of the expected value.
        wanted: String,
        /// The value that was given.
        got: String,
    },
    /// The same parameter was given under two names, with different values.
    Conflict {
        /// Name in the schema.
        name: String,
        /// The other name that was used.
        alias: String,
    },
    /// Any other problem, as text.
    Other(String),
}

impl Problem {
    /// Shortens names and values so that they fit into a message.
    #[must_use]
    pub(crate) fn shortened(self) -> Self {
        let name = |name: String| brief(name, NAME);
        let words = |words: String| brief(words, WORDS);
        match self {
            Self::Missing(missing) => Self::Missing(name(missing)),
            Self::Unknown {
                name: unknown,
                similar,
                known,
            } => Self::Unknown {
                name: name(unknown),
                similar: similar.map(name),
                known,
            },
            Self::Wrong {
                name: wrong,
                wanted,
                got,
            } => Self::Wrong {
                name: name(wrong),
                wanted: words(wanted),
                got: words(got),
            },
            Self::Conflict { name: one, alias } => Self::Conflict {
                name: name(one),
                alias: name(alias),
            },
            Self::Other(said) => Self::Other(words(said)),
        }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("validation error: ")?;
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "missing required parameter \"{name}\""),
            Self::Unknown {
                name,
                similar: Some(similar),
                ..
            } => {
                write!(
                    f,
                    "unknown parameter \"{name}\", did you mean \"{similar}\"?"
                )
            }
            Self::Unknown { name, known, .. } if known.is_empty() => {
                write!(f, "unknown parameter \"{name}\" (the tool has none)")
            }
            Self::Unknown { name, known, .. } => {
                write!(
                    f,
                    "unknown parameter \"{name}\" (known: {})",
                    few(known, FEW)
                )
            }
            Self::Wrong { name, wanted, got } => {
                write!(f, "parameter \"{name}\" must be {wanted}, got {got}")
            }
            Self::Conflict { name, alias } => {
                write!(
                    f,
                    "parameters \"{name}\" and \"{alias}\" mean the same but differ: give one"
                )
            }
            Self::Other(words) => f.write_str(words),
        }
    }
}
