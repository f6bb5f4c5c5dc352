//! Why something was not recorded or not found, for a person.

use crate::problem::Problem;
use std::path::PathBuf;
use std::time::SystemTime;

/// Why something was not recorded, or not found. Nothing of it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database cannot be used, now or at all.
    #[error("the session database {} {problem}; nothing was changed; {}", path.display(), problem.remedy())]
    Database {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        problem: Problem,
    },
    /// No session has this id or begins with it.
    #[error("there is no session \"{given}\"{}", meant(near.as_deref()))]
    Unknown {
        /// What was asked for.
        given: String,
        /// What was probably meant.
        near: Option<String>,
    },
    /// Several sessions begin with it.
    #[error("several sessions begin with \"{given}\": {}; give more of the id", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        given: String,
        /// The first few of them.
        candidates: Vec<String>,
    },
    /// Too little of an id.
    #[error(
        "\"{given}\" is too short for a session; give at least {} characters of its id",
        super::names::SHORTEST
    )]
    TooShort {
        /// What was asked for.
        given: String,
    },
    /// No id that a session could have.
    #[error(
        "\"{given}\" cannot be the id of a session: it has 4 to 64 letters, digits, - and _, and is given once"
    )]
    BadId {
        /// What was given.
        given: String,
    },
    /// A process that is still running writes to it.
    #[error("session {id} is in use by process {pid} (since {})", haft_ops::text::moment::to_seconds(*since))]
    InUse {
        /// The session.
        id: String,
        /// The process.
        pid: u32,
        /// Since when.
        since: SystemTime,
    },
    /// Another process took it over: what this one wants to add has no place there.
    #[error(
        "session {id} was taken over by another process; nothing more of this one is recorded in it"
    )]
    Lost {
        /// The session.
        id: String,
    },
    /// It was deleted while it was in use.
    #[error("session {id} was deleted; nothing more is recorded in it")]
    Deleted {
        /// The session.
        id: String,
    },
    /// A message that is not in the conversation.
    #[error("session {session} has no message {message}")]
    UnknownMessage {
        /// The session.
        session: String,
        /// What was asked for.
        message: i64,
    },
    /// A call that nobody made.
    #[error("there is no call \"{call_id}\"{}", session.as_ref().map(|id| format!(" in session {id}")).unwrap_or_default())]
    UnknownCall {
        /// What was asked for.
        call_id: String,
        /// Where it was looked for, if not everywhere.
        session: Option<String>,
    },
    /// Several sessions have a call of this id.
    #[error("several sessions have a call \"{call_id}\": {}", sessions.join(", "))]
    AmbiguousCall {
        /// What was asked for.
        call_id: String,
        /// The newest few of them.
        sessions: Vec<String>,
    },
    /// What was to be recorded contradicts what is.
    #[error("session {session}: {detail}")]
    Contradiction {
        /// The session.
        session: String,
        /// What.
        detail: String,
    },
}

fn meant(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean \"{near}\"?"))
        .unwrap_or_default()
}

/// Why a piece of work stopped: something to tell, or the database.
#[derive(Debug)]
pub(super) enum Stop {
    /// The work said no. What others did in the same transaction stands.
    Said(Error),
    /// The database did. Nothing of the transaction stands.
    Broken(Problem),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Said(error)
    }
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Broken(problem)
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Broken(error.into())
    }
}
