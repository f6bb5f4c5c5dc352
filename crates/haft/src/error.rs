//! Why a call failed. A toolset turns it into a reply in its own words.

use haft_ops::text::brief::{FEW, NAME, brief, few};
use std::fmt;
use std::time::Duration;

/// How many characters of a problem in words are kept.
const WORDS: usize = 1_000;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation said no.
    #[error(transparent)]
    Operation(#[from] haft_ops::Error),
    /// The arguments do not fit the schema; the tool did not run.
    #[error("{0}")]
    Invalid(Invalid),
    /// No tool of that name.
    #[error("unknown tool: {}", brief(name, NAME))]
    UnknownTool {
        /// The name that was called.
        name: String,
        /// Names that may have been meant.
        similar: Vec<String>,
        /// The names there are.
        known: Vec<String>,
    },
    /// The policy said no for the reason inside; the tool did not run.
    #[error(transparent)]
    Refused(Box<Self>),
    /// The policy said no; the tool did not run.
    #[error("denied: {reason}")]
    Denied {
        /// Why.
        reason: String,
    },
    /// A person would have had to say yes, and nobody did; the tool did not run.
    #[error("not approved: {reason}\n{remedy}")]
    NotApproved {
        /// Which rule asked about what, and why there was no yes.
        reason: String,
        /// What would change that, in a sentence.
        remedy: String,
    },
    /// Nobody can say yet whether it may: the call is to be made again once they did.
    #[error("waits for approval: {question}")]
    Waiting {
        /// What a person is asked.
        question: String,
    },
    /// The tool did not end in time and was stopped.
    #[error("timed out after {}", haft_ops::text::seconds(*after))]
    TimedOut {
        /// The limit.
        after: Duration,
    },
    /// The caller stopped it.
    #[error("cancelled")]
    Cancelled,
    /// The tool panicked. The session goes on.
    #[error("tool \"{tool}\" panicked: {message}")]
    Panicked {
        /// Which.
        tool: String,
        /// What it said.
        message: String,
    },
    /// The tool's own words for the model.
    #[error("{text}")]
    Failed {
        /// What happened.
        text: String,
        /// What to do next.
        hint: Option<String>,
    },
    /// The failure inside, with details for the host.
    #[error("{error}")]
    Detailed {
        /// Why it failed.
        error: Box<Self>,
        /// What only the host sees.
        details: serde_json::Map<String, serde_json::Value>,
    },
    /// Something on our side: recording, the file system of outputs, a schema.
    #[error("{0}")]
    Fault(String),
}

impl Error {
    /// A failure in the tool's own words.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed {
            text: text.into(),
            hint: None,
        }
    }

    /// A call that took longer than `limit`, the limit that the session has for every call.
    #[must_use]
    pub fn session_limit(limit: Duration) -> Self {
        Self::Failed {
            text: Self::TimedOut { after: limit }.to_string(),
            hint: Some(Self::raise_session_limit(limit)),
        }
    }

    /// How to allow more than `limit` to every call of a session.
    pub(crate) fn raise_session_limit(limit: Duration) -> String {
        let limit = haft_ops::text::seconds(limit);
        format!("`tools.timeout` limits every call to {limit}: raise it to allow more")
    }

    /// The same failure with a detail for the host.
    #[must_use]
    pub fn detail(self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        let (error, mut details) = match self {
            Self::Detailed { error, details } => (error, details),
            error => (Box::new(error), serde_json::Map::new()),
        };
        details.insert(name.to_owned(), value.into());
        Self::Detailed { error, details }
    }

    /// A single problem with the arguments, in words.
    pub fn invalid(problem: impl Into<String>) -> Self {
        Self::Invalid(Invalid {
            problems: vec![Problem::Other(problem.into())],
        })
    }
}

/// Everything that is wrong with the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// One entry for each problem.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong with an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// A required parameter is not there.
    Missing(String),
    /// A parameter the tool does not have.
    Unknown {
        /// Its name.
        name: String,
        /// The parameter that may have been meant.
        similar: Option<String>,
        /// Those there are.
        known: Vec<String>,
    },
    /// A parameter of another type or range.
    Wrong {
        /// Its name.
        name: String,
        /// What was wanted.
        wanted: String,
        /// What came.
        got: String,
    },
    /// Two names of one parameter, with different values.
    Conflict {
        /// The name the tool knows.
        name: String,
        /// The other one.
        alias: String,
    },
    /// Anything else, in words.
    Other(String),
}

impl Problem {
    /// The same with names that are short enough for a message, whoever made them up.
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
