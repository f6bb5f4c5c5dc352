//! Why a database cannot be used, as facts, with what a person can do about it.

use rusqlite::ErrorCode;
use std::io;

/// Why a database cannot be used, now or at all. The text reads after the name
/// of its file: "… is locked by another process".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Another process was writing for longer than we wait.
    #[error("is locked by another process")]
    Locked,
    /// No room for what was to be written.
    #[error("cannot grow: no space left")]
    Full,
    /// A file, but not of SQLite.
    #[error("is not a database")]
    NotADatabase,
    /// A database that somebody else made.
    #[error("is a database of another program")]
    Foreign,
    /// A database of haft's for something else.
    #[error("is haft's {is}")]
    OtherKind {
        /// What it is.
        is: &'static str,
    },
    /// A database from a version that knows more than this one.
    #[error("was written by a newer version (schema {found}, this one knows {known})")]
    Newer {
        /// The schema it has.
        found: i64,
        /// The newest schema that can be used.
        known: i64,
    },
    /// A database that contradicts itself.
    #[error("is damaged: {detail}")]
    Damaged {
        /// What was found.
        detail: String,
    },
    /// No regular file.
    #[error("is {kind}")]
    NotAFile {
        /// What it is, with its article.
        kind: &'static str,
    },
    /// Gone, while the log that belongs to it is still there.
    #[error("is missing, but the log {log} that belongs to it is there")]
    Orphan {
        /// The log's name.
        log: String,
    },
    /// A log that cannot be read. SQLite would write over it.
    #[error(
        "has a damaged log, {log}: what was recorded last is only there, and some of it cannot be read, because the file was changed or the power failed while it was written"
    )]
    DamagedLog {
        /// The log's name.
        log: String,
    },
    /// Gone or replaced since it was opened.
    #[error("was moved, removed or replaced while it was in use")]
    Moved,
    /// It, or the folder it is in, may not be written.
    #[error("cannot be written: {detail}")]
    ReadOnly {
        /// What the system said.
        detail: String,
    },
    /// The system said no to something else.
    #[error("cannot be used: {detail}")]
    System {
        /// What the system said.
        detail: String,
    },
}

impl Problem {
    /// What to do about it, as a clause.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Locked => "try again",
            Self::Full => "free some space and try again",
            Self::NotADatabase | Self::Damaged { .. } => {
                "move it away, together with its -wal file, or restore it from a copy"
            }
            Self::Foreign | Self::OtherKind { .. } => "name another file",
            Self::Newer { .. } => "use the newer version, or name another file",
            Self::NotAFile { .. } => "name a regular file, or one that is not there yet",
            Self::DamagedLog { .. } => {
                "restore that log from a copy, or move it away (do not delete it) to go on without what was recorded last"
            }
            Self::Orphan { .. } => "put it back, or move that log away too",
            Self::Moved => "put it back, or start again to use what is there now",
            Self::ReadOnly { .. } => "change the permissions of the file or of its folder",
            Self::System { .. } => "look at the file and its folder",
        }
    }

    pub(crate) fn io(error: &io::Error) -> Self {
        let detail = error.to_string();
        let detail = match detail.split_once(" (os error") {
            Some((text, _)) => text.to_lowercase(),
            None => detail,
        };
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::ReadOnly { detail }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::System { detail },
        }
    }
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Self {
        let detail = match &error {
            rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
            other => other.to_string(),
        };
        match error.sqlite_error_code() {
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed,
            ) => Self::Locked,
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::NotADatabase) => Self::NotADatabase,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Self::ReadOnly { detail },
            // A table or a column that is not there, a value of another type.
            Some(
                ErrorCode::DatabaseCorrupt
                | ErrorCode::Unknown
                | ErrorCode::TypeMismatch
                | ErrorCode::ConstraintViolation,
            )
            | None => Self::Damaged { detail },
            Some(_) => Self::System { detail },
        }
    }
}
