//! Creates a database under a temporary name, and renames it when it is complete. So an
//! empty or partial file is never a new database but always a damaged one.

use super::open;
use super::{DatabaseKind, Identity, LOCK_TIMEOUT};
use crate::problem::Problem;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{CWD, Mode, OFlags, chmodat, fsync, linkat, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Returns the full path for the database at `given`, and creates its folder if it is
/// missing.
pub(super) fn resolve(given: &Path) -> Result<PathBuf, Problem> {
    let name = given.file_name().ok_or(Problem::NotAFile {
        kind: "a directory",
    })?;
    let folder = match given.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    create_folders(folder).map_err(|errno| Problem::io(&errno.into()))?;
    // SQLite is opened with NOFOLLOW, so links in the parent folders are resolved here.
    #[expect(
        clippy::disallowed_methods,
        reason = "the folder of the database comes from the host, not from a model"
    )]
    let folder = std::fs::canonicalize(folder).map_err(|error| Problem::io(&error))?;
    Ok(folder.join(name))
}

/// Creates a folder and its missing parents, accessible to their owner only.
fn create_folders(folder: &Path) -> Result<(), Errno> {
    let missing: Vec<&Path> = folder
        .ancestors()
        .take_while(|folder| {
            !folder.as_os_str().is_empty()
                && rustix::fs::stat(*folder).is_err_and(|errno| errno == Errno::NOENT)
        })
        .collect();
    for folder in missing.into_iter().rev() {
        match mkdirat(CWD, folder, Mode::RWXU) {
            // The umask may have removed permissions that the owner needs.
            Ok(()) => chmodat(CWD, folder, Mode::RWXU, rustix::fs::AtFlags::empty())?,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Creates the database, unless another process just has.
pub(super) fn database(path: &Path, kind: &DatabaseKind) -> Result<Identity, Problem> {
    if let Some(log) = leftover_log(path) {
        // Another process may have created both since we checked.
        return open::identity(path)?.ok_or(Problem::Orphan { log });
    }
    let temporary = temporary(path);
    let created = create_tables(&temporary, kind).and_then(|()| link_into_place(&temporary, path));
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let _ = unlinkat(
            CWD,
            with_suffix(&temporary, suffix),
            rustix::fs::AtFlags::empty(),
        );
    }
    created?;
    open::identity(path)?.ok_or(Problem::Moved)
}

/// Returns a log that is not empty. SQLite would replay it into the new database.
fn leftover_log(path: &Path) -> Option<String> {
    ["-wal", "-journal"].iter().find_map(|suffix| {
        let log = with_suffix(path, suffix);
        let stat = rustix::fs::lstat(&log).ok()?;
        (stat.st_size > 0).then(|| log.display().to_string())
    })
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns a unique temporary name.
fn temporary(path: &Path) -> PathBuf {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    let thread = std::thread::current().id();
    with_suffix(
        path,
        &format!(".new-{}-{thread:?}-{nanos}", std::process::id()).replace(['(', ')'], ""),
    )
}

fn create_tables(temporary: &Path, kind: &DatabaseKind) -> Result<(), Problem> {
    let io = |errno: Errno| Problem::io(&errno.into());
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(CWD, temporary, flags, Mode::RUSR | Mode::WUSR).map_err(io)?;
    rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR).map_err(io)?;
    drop(file);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(temporary, flags)?;
    connection.busy_timeout(LOCK_TIMEOUT)?;
    let DatabaseKind {
        page,
        application,
        schema,
        tables,
        later_tables,
        ..
    } = kind;
    let later_tables = later_tables.map_or("", |(_, make)| make);
    connection.execute_batch(&format!(
        "PRAGMA page_size = {page};
         PRAGMA synchronous = FULL;
         PRAGMA journal_mode = WAL;
         BEGIN IMMEDIATE;
         PRAGMA application_id = {application};
         PRAGMA user_version = {schema};
         {tables}
         {later_tables}
         COMMIT;"
    ))?;
    // Copies the log into the file and removes the log.
    connection
        .close()
        .map_err(|(_, error)| Problem::from(error))?;
    let file = openat(
        CWD,
        temporary,
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(io)?;
    fsync(&file).map_err(io)
}

/// Gives the new database its name, unless another process was faster.
fn link_into_place(temporary: &Path, path: &Path) -> Result<(), Problem> {
    let io = |errno: Errno| Problem::io(&errno.into());
    match linkat(CWD, temporary, CWD, path, rustix::fs::AtFlags::empty()) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(io(errno)),
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(CWD, folder, flags, Mode::empty()).map_err(io)?;
    fsync(&folder).map_err(io)
}
