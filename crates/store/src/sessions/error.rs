//! Errors about sessions, with messages for users.

use crate::problem::Problem;
use std::path::PathBuf;
use std::time::SystemTime;

/// Reason why something was not recorded or not found. Nothing was recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database cannot be used, now or at all.
    #[error("the session database {} {problem}; nothing was changed; {}", path.display(), problem.remedy())]
    Database {
        /// Path of the database.
        path: PathBuf,
        /// Reason why it cannot be used.
        problem: Problem,
    },
    /// No session has this id or an id that starts with it.
    #[error("session not found: \"{given}\"{}", suggestion(similar.as_deref()))]
    Unknown {
        /// The id that the caller gave.
        given: String,
        /// A similar id.
        similar: Option<String>,
    },
    /// Several ids start with the given text.
    #[error("several sessions begin with \"{given}\": {}; give more of the id", candidates.join(", "))]
    Ambiguous {
        /// The id that the caller gave.
        given: String,
        /// The first few matching ids.
        candidates: Vec<String>,
    },
    /// The given part of an id is too short.
    #[error(
        "session id too short: \"{given}\"; give at least {} characters",
        super::names::MIN_LENGTH
    )]
    TooShort {
        /// The id that the caller gave.
        given: String,
    },
    /// The id is not valid, or is already in use.
    #[error(
        "invalid session id: \"{given}\"; use an unused id of 4 to 64 letters, digits, - and _"
    )]
    BadId {
        /// The id that the caller gave.
        given: String,
    },
    /// A running process writes to the session.
    #[error("session {id} is in use by process {pid} (since {})", haft_ops::text::moment::to_seconds(*since))]
    InUse {
        /// Id of the session.
        id: String,
        /// Id of the process.
        pid: u32,
        /// Time when the process started to use the session.
        since: SystemTime,
    },
    /// Another process has taken over the session, so this one may no longer write to it.
    #[error(
        "session {id} was taken over by another process; this process can no longer record anything in it"
    )]
    Lost {
        /// Id of the session.
        id: String,
    },
    /// The session was deleted while it was in use.
    #[error("session {id} was deleted; nothing more can be recorded in it")]
    Deleted {
        /// Id of the session.
        id: String,
    },
    /// The message is not part of the session's history.
    #[error("session {session} has no message {message}")]
    UnknownMessage {
        /// Id of the session.
        session: String,
        /// The id that the caller gave.
        message: i64,
    },
    /// No such call is recorded.
    #[error("call not found: \"{call_id}\"{}", session.as_ref().map(|id| format!(" in session {id}")).unwrap_or_default())]
    UnknownCall {
        /// The id that the caller gave.
        call_id: String,
        /// The session that was searched; `None` for all.
        session: Option<String>,
    },
    /// Several sessions have a call with this id.
    #[error("several sessions have a call \"{call_id}\": {}", sessions.join(", "))]
    AmbiguousCall {
        /// The id that the caller gave.
        call_id: String,
        /// The newest few sessions.
        sessions: Vec<String>,
    },
    /// A new record contradicts an existing one.
    #[error("session {session}: {detail}")]
    Contradiction {
        /// Id of the session.
        session: String,
        /// Description of the contradiction.
        detail: String,
    },
}

fn suggestion(similar: Option<&str>) -> String {
    similar
        .map(|similar| format!("; did you mean \"{similar}\"?"))
        .unwrap_or_default()
}

/// Reason why work in a transaction failed.
#[derive(Debug)]
pub(super) enum WorkError {
    /// The work itself was rejected. Other work in the same transaction is not affected.
    Rejected(Error),
    /// The database failed. The whole transaction is rolled back.
    Database(Problem),
}

impl From<Error> for WorkError {
    fn from(error: Error) -> Self {
        Self::Rejected(error)
    }
}

impl From<Problem> for WorkError {
    fn from(problem: Problem) -> Self {
        Self::Database(problem)
    }
}

impl From<rusqlite::Error> for WorkError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error.into())
    }
}
