//! Deletes sessions, except for history that a fork shares.

use super::Deleted;
use super::error::WorkError;
use super::read;
use super::tables::{events_of, rows_of};
use rusqlite::{Connection, OptionalExtension, params};

/// Deletes a session and those of its sub-agents.
pub(super) fn delete(connection: &Connection, number: i64) -> Result<Deleted, WorkError> {
    let mut family = vec![number];
    let mut at = 0;
    while let Some(member) = family.get(at).copied() {
        read::check_free(connection, member)?;
        let id = id_of(connection, member)?;
        let started = read::children(connection, &id)?;
        // In a damaged database a session could be its own parent.
        family.extend(started.into_iter().filter(|child| *child > member));
        at += 1;
    }
    let mut deleted = Deleted::default();
    for member in family {
        let id = id_of(connection, member)?;
        let shared = read::path(connection, member)?;
        for table in ["approvals", "decisions"] {
            remove(connection, table, rows_of(member))?;
        }
        remove(connection, "events", events_of(member))?;
        for statement in [
            "DELETE FROM systems WHERE session = ?1",
            "DELETE FROM segments WHERE session = ?1",
            "DELETE FROM sessions WHERE number = ?1",
        ] {
            connection.prepare_cached(statement)?.execute([member])?;
        }
        let mut is_shared = false;
        for segment in shared {
            let needed = prune(connection, segment.owner, &mut deleted)?;
            is_shared |= segment.owner == member && needed;
        }
        if is_shared {
            deleted.still_needed.push(id.clone());
        }
        deleted.sessions.push(id);
    }
    Ok(deleted)
}

fn id_of(connection: &Connection, number: i64) -> Result<String, WorkError> {
    let mut statement = connection.prepare_cached("SELECT id FROM sessions WHERE number = ?1")?;
    Ok(statement.query_row([number], |row| row.get(0))?)
}

fn remove(connection: &Connection, table: &str, (first, end): (i64, i64)) -> Result<(), WorkError> {
    let statement = format!("DELETE FROM {table} WHERE id >= ?1 AND id < ?2");
    connection
        .prepare_cached(&statement)?
        .execute(params![first, end])?;
    Ok(())
}

/// Deletes the part of a session's history that no other session shares. Returns whether
/// any of it is left.
fn prune(connection: &Connection, owner: i64, deleted: &mut Deleted) -> Result<bool, WorkError> {
    let mut session_exists =
        connection.prepare_cached("SELECT 1 FROM sessions WHERE number = ?1")?;
    if session_exists.exists([owner])? {
        return Ok(true);
    }
    let mut shared =
        connection.prepare_cached("SELECT max(last) FROM segments WHERE owner = ?1")?;
    let needed: Option<i64> = shared
        .query_row([owner], |row| row.get(0))
        .optional()?
        .flatten();
    let (first, end) = rows_of(owner);
    let last = needed.unwrap_or(first);
    let unshared = "id > ?1 AND id < ?2 AND (?3 = ?1 OR coalesce(message, 0) > ?3)";
    let calls = format!("SELECT id FROM calls WHERE {unshared}");
    let mut outputs = connection.prepare_cached(&format!(
        "SELECT output FROM outcomes WHERE output IS NOT NULL AND id IN ({calls})"
    ))?;
    for output in outputs.query_map(params![first, end, last], |row| row.get::<_, String>(0))? {
        deleted.outputs.push(output?.into());
    }
    for statement in [
        format!("DELETE FROM outcomes WHERE id IN ({calls})"),
        format!("DELETE FROM calls WHERE {unshared}"),
        format!("DELETE FROM states WHERE {unshared}"),
        format!("DELETE FROM files WHERE {unshared}"),
    ] {
        connection
            .prepare_cached(&statement)?
            .execute(params![first, end, last])?;
    }
    connection
        .prepare_cached("DELETE FROM messages WHERE id > ?1 AND id < ?2")?
        .execute(params![last, end])?;
    Ok(needed.is_some())
}
