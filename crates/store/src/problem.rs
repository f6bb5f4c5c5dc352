//! Reasons why a database cannot be used, with what the user can do about them.

use rusqlite::ErrorCode;
use std::io;

/// Reason why a database cannot be used, now or at all. The text follows the name of its
/// file: "… is locked by another process".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Another process held the lock for longer than we wait.
    #[error("is locked by another process")]
    Locked,
    /// The disk is full.
    #[error("cannot grow: no space left")]
    Full,
    /// The file is not an SQLite database.
    #[error("is not a database")]
    NotADatabase,
    /// The database was created by another program.
    #[error("is a database of another program")]
    Foreign,
    /// The database belongs to haft, but has another purpose.
    #[error("is haft's {is}")]
    OtherKind {
        /// Its purpose, such as `store`.
        is: &'static str,
    },
    /// The database was written by a newer version of haft.
    #[error("was written by a newer version (schema {found}, this one knows {known})")]
    Newer {
        /// Schema version of the file.
        found: i64,
        /// Newest schema version that this program supports.
        known: i64,
    },
    /// The content of the database is inconsistent.
    #[error("is damaged: {detail}")]
    Damaged {
        /// Details of the inconsistency.
        detail: String,
    },
    /// The path is not a regular file.
    #[error("is {kind}")]
    NotAFile {
        /// The type of file, with an article.
        kind: &'static str,
    },
    /// The database is missing, but its log still exists.
    #[error("is missing, but its log {log} exists")]
    Orphan {
        /// File name of the log.
        log: String,
    },
    /// The log is damaged. SQLite would silently overwrite it.
    #[error(
        "has a damaged log, {log}: it contains the latest records, and some of them cannot be read because the file was modified or the power failed during a write"
    )]
    DamagedLog {
        /// File name of the log.
        log: String,
    },
    /// The file was moved or replaced after it was opened.
    #[error("was moved, removed or replaced while it was in use")]
    Moved,
    /// The file or its folder is not writable.
    #[error("cannot be written: {detail}")]
    ReadOnly {
        /// The operating system's error.
        detail: String,
    },
    /// Another error of the operating system.
    #[error("cannot be used: {detail}")]
    System {
        /// The operating system's error.
        detail: String,
    },
}

impl Problem {
    /// Returns what to do about it, as a clause.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Locked => "try again",
            Self::Full => "free some space and try again",
            Self::NotADatabase | Self::Damaged { .. } => {
                "move it away, together with its -wal file, or restore it from a copy"
            }
            Self::Foreign | Self::OtherKind { .. } => "use another file",
            Self::Newer { .. } => "use the newer version, or another file",
            Self::NotAFile { .. } => "use a regular file, or one that does not exist yet",
            Self::DamagedLog { .. } => {
                "restore that log from a copy, or move it away (do not delete it) to continue without the latest records"
            }
            Self::Orphan { .. } => "put it back, or move that log away too",
            Self::Moved => "put it back, or restart to use the new file",
            Self::ReadOnly { .. } => "change the permissions of the file or of its folder",
            Self::System { .. } => "check the file and its folder",
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
            // A missing table or column, or a value of the wrong type.
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
