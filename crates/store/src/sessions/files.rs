//! Files that only exist in a session. Every change is added, so that a fork can get older
//! versions; of large files only the newest version is kept.

use super::SessionFile;
use super::error::WorkError;
use super::read::Segment;
use super::tables::{row, rows_of};
use super::{millis, time};
use rusqlite::{Connection, OptionalExtension, params};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Maximum size in bytes of a file whose older versions are kept.
const MAX_KEPT: i64 = 16 << 10;

/// Selects the newest version of each path up to a message.
const NEWEST_UP_TO: &str = "
    SELECT max(id) FROM files
    WHERE id > ?1 AND id < ?2 AND coalesce(message, 0) <= ?3
    GROUP BY session, path";

/// Records a version of a file after the message `head`. Returns `None` if the session has
/// no room for another row.
pub(super) fn write(
    connection: &Connection,
    session: i64,
    head: Option<i64>,
    file: &SessionFile,
) -> Result<Option<()>, WorkError> {
    let path = file.path.as_os_str().as_bytes();
    let before: Option<(i64, Option<i64>, i64)> = connection
        .prepare_cached(
            "SELECT id, message, coalesce(length(bytes), 0) FROM files
             WHERE session = ?1 AND path = ?2 ORDER BY id DESC LIMIT 1",
        )?
        .query_row(params![session, path], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    // Replaces the version that is not kept, so that forks from before get the new one too.
    let (replaced, since) = match before {
        Some((id, message, length)) if message == head || length > MAX_KEPT => (Some(id), message),
        _ => (None, head),
    };
    let id = match replaced {
        Some(id) => id,
        None => match next(connection, session)? {
            Some(id) => id,
            None => return Ok(None),
        },
    };
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO files (id, session, path, message, modified, bytes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            id,
            session,
            path,
            since,
            millis(file.modified),
            file.bytes.as_deref(),
        ])?;
    Ok(Some(()))
}

/// Returns the next free row of a session.
fn next(connection: &Connection, session: i64) -> Result<Option<i64>, WorkError> {
    let (first, end) = rows_of(session);
    let mut statement =
        connection.prepare_cached("SELECT max(id) FROM files WHERE id > ?1 AND id < ?2")?;
    let last: Option<i64> = statement.query_row(params![first, end], |row| row.get(0))?;
    Ok(row(session, last.map_or(0, |last| last - first) + 1))
}

/// Returns the current files of a session.
pub(super) fn current(
    connection: &Connection,
    session: i64,
) -> Result<Vec<SessionFile>, WorkError> {
    let (first, end) = rows_of(session);
    let mut statement = connection.prepare_cached(&format!(
        "SELECT path, modified, bytes FROM files
         WHERE id IN ({NEWEST_UP_TO}) AND bytes IS NOT NULL ORDER BY path"
    ))?;
    let files = statement.query_map(params![first, end, i64::MAX], |row| {
        let bytes: Vec<u8> = row.get(2)?;
        Ok(SessionFile {
            path: PathBuf::from(OsString::from_vec(row.get(0)?)),
            modified: time(row.get(1)?),
            bytes: Some(bytes.into()),
        })
    })?;
    Ok(files.collect::<Result<_, _>>()?)
}

/// Copies the files after a message of the history to the fork.
pub(super) fn fork(
    connection: &Connection,
    path: &[Segment],
    at: Option<i64>,
    fork_number: i64,
) -> Result<(), WorkError> {
    let at = at.unwrap_or(0);
    // A fork has a copy of all files at the time of the fork; older versions are with its
    // origin.
    let before = path.iter().take(path.len().saturating_sub(1));
    let index = before.take_while(|segment| segment.last < at).count();
    let segment = match path.get(index) {
        // At the end of a segment, the next one has the full copy.
        Some(segment) if segment.last == at => path.get(index + 1),
        other => other,
    };
    let Some(owner) = segment.map(|segment| segment.owner) else {
        return Ok(());
    };
    let (first, end) = rows_of(owner);
    let (start, _) = rows_of(fork_number);
    connection
        .prepare_cached(&format!(
            "INSERT INTO files (id, session, path, message, modified, bytes)
             SELECT ?4 + row_number() OVER (ORDER BY id), ?5, path, ?3, modified, bytes
             FROM files WHERE id IN ({NEWEST_UP_TO}) AND bytes IS NOT NULL"
        ))?
        .execute(params![first, end, at, start, fork_number])?;
    Ok(())
}
