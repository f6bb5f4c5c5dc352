//! A new database: made aside and given its name when it is whole, so that an
//! empty or half-made file is never a new one but always a damaged one.

use super::open;
use super::{Form, Identity, PATIENCE};
use crate::problem::Problem;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{CWD, Mode, OFlags, chmodat, fsync, linkat, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where the database at `given` is or will be, its folder made where missing.
pub(super) fn place(given: &Path) -> Result<PathBuf, Problem> {
    let name = given.file_name().ok_or(Problem::NotAFile {
        kind: "a directory",
    })?;
    let folder = match given.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    folders(folder).map_err(|errno| Problem::io(&errno.into()))?;
    // SQLite is told to follow no link at all, so those above are followed here.
    #[expect(
        clippy::disallowed_methods,
        reason = "the folder of the database comes from the host, not from a model"
    )]
    let folder = std::fs::canonicalize(folder).map_err(|error| Problem::io(&error))?;
    Ok(folder.join(name))
}

/// Makes a folder and those above it that are missing, for their owner alone.
fn folders(folder: &Path) -> Result<(), Errno> {
    let missing: Vec<&Path> = folder
        .ancestors()
        .take_while(|folder| {
            !folder.as_os_str().is_empty()
                && rustix::fs::stat(*folder).is_err_and(|errno| errno == Errno::NOENT)
        })
        .collect();
    for folder in missing.into_iter().rev() {
        match mkdirat(CWD, folder, Mode::RWXU) {
            // The umask may have taken away what the owner needs.
            Ok(()) => chmodat(CWD, folder, Mode::RWXU, rustix::fs::AtFlags::empty())?,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Makes the database, unless another process just did.
pub(super) fn database(path: &Path, form: &Form) -> Result<Identity, Problem> {
    if let Some(log) = log_of(path) {
        // Another process may have made both since we looked.
        return open::identity(path)?.ok_or(Problem::Orphan { log });
    }
    let aside = aside(path);
    let made = fill(&aside, form).and_then(|()| name(&aside, path));
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let _ = unlinkat(CWD, beside(&aside, suffix), rustix::fs::AtFlags::empty());
    }
    made?;
    open::identity(path)?.ok_or(Problem::Moved)
}

/// A log with something in it. SQLite would play it into the new database.
fn log_of(path: &Path) -> Option<String> {
    ["-wal", "-journal"].iter().find_map(|suffix| {
        let log = beside(path, suffix);
        let stat = rustix::fs::lstat(&log).ok()?;
        (stat.st_size > 0).then(|| log.display().to_string())
    })
}

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// A name that nobody else uses.
fn aside(path: &Path) -> PathBuf {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    let thread = std::thread::current().id();
    beside(
        path,
        &format!(".new-{}-{thread:?}-{nanos}", std::process::id()).replace(['(', ')'], ""),
    )
}

fn fill(aside: &Path, form: &Form) -> Result<(), Problem> {
    let io = |errno: Errno| Problem::io(&errno.into());
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(CWD, aside, flags, Mode::RUSR | Mode::WUSR).map_err(io)?;
    rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR).map_err(io)?;
    drop(file);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(aside, flags)?;
    connection.busy_timeout(PATIENCE)?;
    let Form {
        page,
        application,
        schema,
        tables,
        added,
        ..
    } = form;
    let added = added.map_or("", |(_, make)| make);
    connection.execute_batch(&format!(
        "PRAGMA page_size = {page};
         PRAGMA synchronous = FULL;
         PRAGMA journal_mode = WAL;
         BEGIN IMMEDIATE;
         PRAGMA application_id = {application};
         PRAGMA user_version = {schema};
         {tables}
         {added}
         COMMIT;"
    ))?;
    // Takes the log into the file and removes it.
    connection
        .close()
        .map_err(|(_, error)| Problem::from(error))?;
    let file = openat(
        CWD,
        aside,
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(io)?;
    fsync(&file).map_err(io)
}

/// Gives the new database its name; the one that came first wins.
fn name(aside: &Path, path: &Path) -> Result<(), Problem> {
    let io = |errno: Errno| Problem::io(&errno.into());
    match linkat(CWD, aside, CWD, path, rustix::fs::AtFlags::empty()) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(io(errno)),
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(CWD, folder, flags, Mode::empty()).map_err(io)?;
    fsync(&folder).map_err(io)
}
