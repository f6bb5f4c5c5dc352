//! Deleting a session: all of it but what a fork still needs.

use super::Deleted;
use super::error::Stop;
use super::read;
use super::tables::{events_of, rows_of};
use rusqlite::{Connection, OptionalExtension, params};

/// Deletes a session and those of the agents it started.
pub(super) fn delete(connection: &Connection, number: i64) -> Result<Deleted, Stop> {
    let mut family = vec![number];
    let mut at = 0;
    while let Some(member) = family.get(at).copied() {
        read::is_free(connection, member)?;
        let id = id_of(connection, member)?;
        let started = read::children(connection, &id)?;
        // A damaged file could say that a session started itself.
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
        let mut kept = false;
        for segment in shared {
            let needed = prune(connection, segment.owner, &mut deleted)?;
            kept |= segment.owner == member && needed;
        }
        if kept {
            deleted.still_needed.push(id.clone());
        }
        deleted.sessions.push(id);
    }
    Ok(deleted)
}

fn id_of(connection: &Connection, number: i64) -> Result<String, Stop> {
    let mut statement = connection.prepare_cached("SELECT id FROM sessions WHERE number = ?1")?;
    Ok(statement.query_row([number], |row| row.get(0))?)
}

fn remove(connection: &Connection, table: &str, (first, end): (i64, i64)) -> Result<(), Stop> {
    let statement = format!("DELETE FROM {table} WHERE id >= ?1 AND id < ?2");
    connection
        .prepare_cached(&statement)?
        .execute(params![first, end])?;
    Ok(())
}

/// Removes what nobody needs any more of what was said in a session, and says whether
/// something is left.
fn prune(connection: &Connection, owner: i64, deleted: &mut Deleted) -> Result<bool, Stop> {
    let mut living = connection.prepare_cached("SELECT 1 FROM sessions WHERE number = ?1")?;
    if living.exists([owner])? {
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
    let gone = "id > ?1 AND id < ?2 AND (?3 = ?1 OR coalesce(message, 0) > ?3)";
    let calls = format!("SELECT id FROM calls WHERE {gone}");
    let mut outputs = connection.prepare_cached(&format!(
        "SELECT output FROM outcomes WHERE output IS NOT NULL AND id IN ({calls})"
    ))?;
    for output in outputs.query_map(params![first, end, last], |row| row.get::<_, String>(0))? {
        deleted.outputs.push(output?.into());
    }
    for statement in [
        format!("DELETE FROM outcomes WHERE id IN ({calls})"),
        format!("DELETE FROM calls WHERE {gone}"),
        format!("DELETE FROM states WHERE {gone}"),
        format!("DELETE FROM files WHERE {gone}"),
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
