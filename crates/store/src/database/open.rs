//! Opening what is there, and nothing that only looks like it.
//!
//! The database is looked at through SQLite alone. Opening it as a plain file as
//! well would, on closing, drop the locks of every connection of this process.

use super::{Database, Form, Identity, PATIENCE, connect, form, log, make};
use crate::problem::Problem;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, accessat, chmodat, statat};
use rustix::io::Errno;
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// A database that was not opened, and was not changed.
#[derive(Debug, thiserror::Error)]
#[error("the {what} {} {problem}; nothing was changed; {}", path.display(), problem.remedy())]
pub struct OpenError {
    /// What it is: `store`, `session database`.
    pub what: &'static str,
    /// The path as it was given.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

pub(super) fn open(given: &Path, form: &'static Form) -> Result<Database, Problem> {
    let path = make::place(given)?;
    let identity = match identity(&path)? {
        Some(identity) => identity,
        None => make::database(&path, form)?,
    };
    writable(&path)?;
    log::check(&path)?;
    // Open until the other is: a log would be taken up twice.
    let _recognized = recognize(&path, form)?;
    close_to_others(&path);
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
    add(&writer, form)?;
    check(&writer, form)?;
    writer.pragma_update(None, "cache_size", -i64::from(form.cache))?;
    Ok(Database::new(form, path, identity, writer))
}

/// The file at `path`, where there is one. A link is refused rather than
/// followed: the log would lie beside the link for one process and beside its
/// target for another, and each would miss what the other wrote.
pub(super) fn identity(path: &Path) -> Result<Option<Identity>, Problem> {
    let stat = match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(Problem::io(&errno.into())),
    };
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_size == 0 => {
            // Never made so: a new one appears whole.
            let detail = "it is empty".to_owned();
            return Err(Problem::Damaged { detail });
        }
        // SQLite would take it for an empty one.
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

/// Whether the file and its folder may be written. SQLite would fall back to
/// reading, and leave a log beside it that nobody can write either.
fn writable(path: &Path) -> Result<(), Problem> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    for (path, what) in [(path, "the file"), (folder, "its folder")] {
        let access = Access::READ_OK | Access::WRITE_OK;
        if let Err(errno) = accessat(CWD, path, access, AtFlags::EACCESS) {
            return Err(match Problem::io(&errno.into()) {
                Problem::ReadOnly { detail } => Problem::ReadOnly {
                    detail: format!("{detail} for {what}"),
                },
                other => other,
            });
        }
    }
    Ok(())
}

/// Takes away what others may do with the files of a database that is this user's own, as
/// a new one is made. Who copied one here may have lost that; SQLite makes its other files
/// with the permissions of the first.
fn close_to_others(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let file = make::beside(path, suffix);
        let Ok(stat) = statat(CWD, &file, AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let is_own = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_uid == rustix::process::geteuid().as_raw();
        let is_open = Mode::from_raw_mode(stat.st_mode).intersects(Mode::RWXG | Mode::RWXO);
        if is_own && is_open {
            let mode = Mode::RUSR | Mode::WUSR;
            // A file system without permissions keeps none, whatever is asked of it.
            if let Err(errno) = chmodat(CWD, &file, mode, AtFlags::empty()) {
                tracing::warn!(file = %file.display(), %errno, "cannot be closed to other users");
            }
        }
    }
}

/// Whether the file is ours, found out without the right to change it: a journal
/// that another program left beside its database is not played back by us.
fn recognize(path: &Path, form: &Form) -> Result<Connection, Problem> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    let application: i64 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    if application != form.application {
        let other = form::ALL
            .iter()
            .find(|other| other.application == application);
        return Err(match other {
            Some(other) => Problem::OtherKind { is: other.word },
            None => Problem::Foreign,
        });
    }
    schema(&connection, form)?;
    Ok(connection)
}

fn schema(connection: &Connection, form: &Form) -> Result<(), Problem> {
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    match found.cmp(&form.schema) {
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(Problem::Newer {
            found,
            known: form.schema,
        }),
        Ordering::Less => Err(Problem::Damaged {
            detail: format!("it has no schema {found}"),
        }),
    }
}

/// Makes the tables that came later, where they are not there.
fn add(connection: &Connection, form: &Form) -> Result<(), Problem> {
    let Some((table, make)) = form.added else {
        return Ok(());
    };
    schema(connection, form)?;
    let mut there = connection.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?1")?;
    if !there.exists([table])? {
        connection.execute_batch(&format!("BEGIN IMMEDIATE; {make} COMMIT;"))?;
    }
    Ok(())
}

/// Whether what every call needs is there.
fn check(connection: &Connection, form: &Form) -> Result<(), Problem> {
    schema(connection, form)?;
    for table in form.names {
        connection.prepare(&format!("SELECT 1 FROM {table} LIMIT 1"))?;
    }
    Ok(())
}
