//! Forks a session: creates another one that continues from a message. The history up to
//! there is shared, not copied.

use super::error::{Error, WorkError};
use super::files;
use super::read::{self, Segment};
use super::tables::{row, rows_of};
use rusqlite::{Connection, params};

/// Creates the fork `id`.
pub(super) fn fork(
    connection: &Connection,
    (number, from): &(i64, String),
    at: Option<i64>,
    id: &str,
    now: i64,
) -> Result<(), WorkError> {
    let head: Option<i64> = connection
        .prepare_cached("SELECT head FROM sessions WHERE number = ?1")?
        .query_row([number], |row| row.get(0))?;
    let path = read::path(connection, *number)?;
    let shared = match at.or(head) {
        None => Vec::new(),
        Some(at) => read::path_to(connection, &path, at)?.ok_or_else(|| {
            WorkError::Rejected(Error::UnknownMessage {
                session: from.clone(),
                message: at,
            })
        })?,
    };
    let (messages, turns) = count(connection, &shared)?;
    connection
        .prepare_cached(
            "INSERT INTO sessions (id, kind, work_dir, toolset, provider, model, title,
                forked_from, forked_at, created, updated, head, messages, turns)
             SELECT ?2, kind, work_dir, toolset, provider, model, title,
                ?3, ?4, ?5, ?5, ?4, ?6, ?7 FROM sessions WHERE number = ?1",
        )?
        .execute(params![number, id, from, at.or(head), now, messages, turns])?;
    let fork_number = connection.last_insert_rowid();
    connection
        .prepare_cached(
            "INSERT INTO systems (session, text) SELECT ?2, text FROM systems WHERE session = ?1",
        )?
        .execute(params![number, fork_number])?;
    for Segment { owner, last } in &shared {
        connection
            .prepare_cached("INSERT INTO segments (session, owner, last) VALUES (?1, ?2, ?3)")?
            .execute(params![fork_number, owner, last])?;
    }
    files::fork(connection, &path, at.or(head), fork_number)?;
    // The state at that message, as far as it is known.
    let state = read::state(connection, &path, at.or(head))?;
    if let (Some(state), Some(first)) = (state, row(fork_number, 1)) {
        connection
            .prepare_cached("INSERT INTO states (id, message, state) VALUES (?1, ?2, ?3)")?
            .execute(params![first, at.or(head), state])?;
        connection
            .prepare_cached("UPDATE sessions SET own_states = 1 WHERE number = ?1")?
            .execute([fork_number])?;
    }
    Ok(())
}

/// Returns the numbers of messages and turns in a history.
fn count(connection: &Connection, path: &[Segment]) -> Result<(i64, i64), WorkError> {
    let mut all = (0, 0);
    for segment in path {
        let mut statement = connection.prepare_cached(
            "SELECT count(*), count(*) FILTER (WHERE role = 'assistant') FROM messages
             WHERE id > ?1 AND id <= ?2",
        )?;
        let (first, _) = rows_of(segment.owner);
        let (messages, turns): (i64, i64) = statement
            .query_row(params![first, segment.last], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        all = (all.0 + messages, all.1 + turns);
    }
    Ok(all)
}
