//! Files that a session holds itself. What changes is added, so that a fork can have the
//! files as they were: but of long ones only the newest is kept.

use super::batch::SessionFile;
use super::error::Stop;
use super::read::Segment;
use super::tables::{row, rows_of};
use super::{millis, time};
use rusqlite::{Connection, OptionalExtension, params};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// What a file held before is not kept beside what it holds now if it is longer than this.
const LONG: i64 = 16 << 10;

/// Of each path the newest that was known when the conversation had come so far.
const AT: &str = "
    SELECT max(id) FROM files
    WHERE id > ?1 AND id < ?2 AND coalesce(message, 0) <= ?3
    GROUP BY session, path";

/// Records what became of a file after the message `head`; nothing if there is no place
/// for it.
pub(super) fn write(
    connection: &Connection,
    session: i64,
    head: Option<i64>,
    file: &SessionFile,
) -> Result<Option<()>, Stop> {
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
    // It takes the place of what is not kept: whoever goes on from before gets it as well.
    let (same, since) = match before {
        Some((id, message, length)) if message == head || length > LONG => (Some(id), message),
        _ => (None, head),
    };
    let id = match same {
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

/// The next free row of a session.
fn next(connection: &Connection, session: i64) -> Result<Option<i64>, Stop> {
    let (first, end) = rows_of(session);
    let mut statement =
        connection.prepare_cached("SELECT max(id) FROM files WHERE id > ?1 AND id < ?2")?;
    let last: Option<i64> = statement.query_row(params![first, end], |row| row.get(0))?;
    Ok(row(session, last.map_or(0, |last| last - first) + 1))
}

/// The files of a session as they are now.
pub(super) fn of(connection: &Connection, session: i64) -> Result<Vec<SessionFile>, Stop> {
    let (first, end) = rows_of(session);
    let mut statement = connection.prepare_cached(&format!(
        "SELECT path, modified, bytes FROM files
         WHERE id IN ({AT}) AND bytes IS NOT NULL ORDER BY path"
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

/// Gives the fork `own` the files as they were after a message of the conversation.
pub(super) fn fork(
    connection: &Connection,
    path: &[Segment],
    at: Option<i64>,
    own: i64,
) -> Result<(), Stop> {
    let at = at.unwrap_or(0);
    // A fork has a copy of what there was when it was made; what was before that is with
    // the session it was made from.
    let before = path.iter().take(path.len().saturating_sub(1));
    let place = before.take_while(|segment| segment.last < at).count();
    let holds = match path.get(place) {
        // Where a part ends, the one after it begins with all there was.
        Some(segment) if segment.last == at => path.get(place + 1),
        other => other,
    };
    let Some(owner) = holds.map(|segment| segment.owner) else {
        return Ok(());
    };
    let (first, end) = rows_of(owner);
    let (start, _) = rows_of(own);
    connection
        .prepare_cached(&format!(
            "INSERT INTO files (id, session, path, message, modified, bytes)
             SELECT ?4 + row_number() OVER (ORDER BY id), ?5, path, ?3, modified, bytes
             FROM files WHERE id IN ({AT}) AND bytes IS NOT NULL"
        ))?
        .execute(params![first, end, at, start, own])?;
    Ok(())
}
