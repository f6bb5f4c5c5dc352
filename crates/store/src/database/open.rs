//! Opens an existing database after checking that it is one of ours.
//!
//! The database file is only read through SQLite. Opening it as a plain file too would, on
//! closing, drop the locks of every connection of this process.

use super::{Database, DatabaseKind, Identity, LOCK_TIMEOUT, connect, create, kind, log};
use crate::problem::Problem;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, accessat, chmodat, statat};
use rustix::io::Errno;
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// A database could not be opened. It was not changed.
#[derive(Debug, thiserror::Error)]
#[error("the {kind} {} {problem}; nothing was changed; {}", path.display(), problem.remedy())]
pub struct OpenError {
    /// Kind of database: `store` or `session database`.
    pub kind: &'static str,
    /// The path that the caller gave.
    pub path: PathBuf,
    /// Reason why it cannot be opened.
    pub problem: Problem,
}

pub(super) fn open(
    given: &Path,
    database_kind: &'static DatabaseKind,
) -> Result<Database, Problem> {
    let path = create::resolve(given)?;
    let identity = match identity(&path)? {
        Some(identity) => identity,
        None => create::database(&path, database_kind)?,
    };
    check_writable(&path)?;
    log::check(&path)?;
    // Kept open until the writer is open, so that the log is recovered only once.
    let _recognized = check_application_id(&path, database_kind)?;
    remove_other_permissions(&path);
    let writer = connect(&path)?;
    if writer.is_readonly("main")? {
        let detail = "permission denied".to_owned();
        return Err(Problem::ReadOnly { detail });
    }
    let mode: String = writer.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        let detail = "its file system does not support shared access".to_owned();
        return Err(Problem::System { detail });
    }
    create_later_tables(&writer, database_kind)?;
    check_tables(&writer, database_kind)?;
    writer.pragma_update(None, "cache_size", -i64::from(database_kind.cache))?;
    Ok(Database::new(database_kind, path, identity, writer))
}

/// Returns the identity of the file at `path`, if it exists. A link is refused: one process
/// would put the log beside the link and another beside its target, and each would miss the
/// other's writes.
pub(super) fn identity(path: &Path) -> Result<Option<Identity>, Problem> {
    let stat = match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(Problem::io(&errno.into())),
    };
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_size == 0 => {
            // A new database is never empty, because it gets its name when it is complete.
            let detail = "it is empty".to_owned();
            return Err(Problem::Damaged { detail });
        }
        // SQLite would treat such a file as an empty database.
        FileType::RegularFile if stat.st_size < 512 => return Err(Problem::NotADatabase),
        FileType::RegularFile => {
            return Ok(Some(Identity {
                device: stat.st_dev,
                inode: stat.st_ino,
            }));
        }
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        _ => "not a regular file",
    };
    Err(Problem::NotAFile { kind })
}

/// Checks that the file and its folder are writable. SQLite would otherwise fall back to
/// reading, and leave a log that cannot be written either.
fn check_writable(path: &Path) -> Result<(), Problem> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    for (path, kind) in [(path, "the file"), (folder, "its folder")] {
        let access = Access::READ_OK | Access::WRITE_OK;
        if let Err(errno) = accessat(CWD, path, access, AtFlags::EACCESS) {
            return Err(match Problem::io(&errno.into()) {
                Problem::ReadOnly { detail } => Problem::ReadOnly {
                    detail: format!("{detail} for {kind}"),
                },
                other => other,
            });
        }
    }
    Ok(())
}

/// Removes other users' permissions from the files of a database that this user owns; a
/// copy may have gained them. SQLite creates its other files with the permissions of the
/// first.
fn remove_other_permissions(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let file = create::with_suffix(path, suffix);
        let Ok(stat) = statat(CWD, &file, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let is_own = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_uid == rustix::process::geteuid().as_raw();
        let is_open = Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO);
        if is_own && is_open {
            let mode = Mode::RUSR | Mode::WUSR;
            // File systems without permissions ignore this.
            if let Err(errno) = chmodat(CWD, &file, mode, AtFlags::empty()) {
                tracing::warn!(file = %file.display(), %errno, "cannot remove other users' permissions");
            }
        }
    }
}

/// Checks that the file is ours, on a read-only connection: a journal that another program
/// left beside its own database must not be replayed.
fn check_application_id(path: &Path, database_kind: &DatabaseKind) -> Result<Connection, Problem> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(LOCK_TIMEOUT)?;
    let application: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if application != database_kind.application {
        let other = kind::ALL
            .iter()
            .find(|other| other.application == application);
        return Err(match other {
            Some(other) => Problem::OtherKind { is: other.name },
            None => Problem::Foreign,
        });
    }
    check_version(&connection, database_kind)?;
    Ok(connection)
}

fn check_version(connection: &Connection, database_kind: &DatabaseKind) -> Result<(), Problem> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    match found.cmp(&database_kind.schema) {
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(Problem::Newer {
            found,
            known: database_kind.schema,
        }),
        Ordering::Less => Err(Problem::Damaged {
            detail: format!("unknown schema version {found}"),
        }),
    }
}

/// Creates tables that older databases lack.
fn create_later_tables(
    connection: &Connection,
    database_kind: &DatabaseKind,
) -> Result<(), Problem> {
    let Some((table, make)) = database_kind.later_tables else {
        return Ok(());
    };
    check_version(connection, database_kind)?;
    let mut there = connection.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?1")?;
    if !there.exists([table])? {
        connection.execute_batch(&format!("BEGIN IMMEDIATE; {make} COMMIT;"))?;
    }
    Ok(())
}

/// Checks that all required tables exist.
fn check_tables(connection: &Connection, database_kind: &DatabaseKind) -> Result<(), Problem> {
    check_version(connection, database_kind)?;
    for table in database_kind.required_tables {
        connection.prepare(&format!("SELECT 1 FROM {table} LIMIT 1"))?;
    }
    Ok(())
}
