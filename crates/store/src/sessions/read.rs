//! Reads sessions. Everything here runs in a read transaction of its caller.

use super::error::{Error, WorkError};
use super::lease::Owner;
use super::tables::{event_seq, events_of, owner_of, rows_of};
use super::{
    Filter, Info, Loaded, OpenCall, PendingApproval, RecordItem, RecordedCall, RecordedEvent,
    SessionKind, StoredMessage, Summary, time,
};
use rusqlite::{Connection, OptionalExtension, Row, Rows, params};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Part of a history: the messages of one session up to the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) owner: i64,
    pub(super) last: i64,
}

/// Returns the history of a session, starting at the root. Sessions are numbered in the
/// order of their creation, so a fork has a higher number than its origin.
pub(super) fn path(connection: &Connection, number: i64) -> Result<Vec<Segment>, WorkError> {
    let mut statement = connection
        .prepare_cached("SELECT owner, last FROM segments WHERE session = ?1 ORDER BY owner")?;
    let shared = statement.query_map([number], |row| {
        Ok(Segment {
            owner: row.get(0)?,
            last: row.get(1)?,
        })
    })?;
    let mut path: Vec<Segment> = shared.collect::<Result<_, _>>()?;
    path.push(Segment {
        owner: number,
        last: rows_of(number).1,
    });
    Ok(path)
}

fn info(connection: &Connection, number: i64) -> Result<Info, WorkError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, kind, work_dir, toolset, provider, model, title, created, updated, parent,
                parent_call, forked_from, forked_at, text
         FROM sessions LEFT JOIN systems ON systems.session = sessions.number
         WHERE number = ?1",
    )?;
    Ok(statement.query_row([number], |row| {
        let kind: String = row.get(1)?;
        Ok(Info {
            id: row.get(0)?,
            kind: SessionKind::by_name(&kind),
            work_dir: folder(row, 2)?,
            toolset: row.get(3)?,
            provider: row.get(4)?,
            model: row.get(5)?,
            title: row.get(6)?,
            created: time(row.get(7)?),
            updated: time(row.get(8)?),
            parent: both(row.get(9)?, row.get(10)?),
            forked_from: both(row.get(11)?, row.get(12)?),
            system: row.get(13)?,
        })
    })?)
}

fn both<A, B>(a: Option<A>, b: Option<B>) -> Option<(A, B)> {
    a.zip(b)
}

fn folder(row: &Row<'_>, column: usize) -> rusqlite::Result<PathBuf> {
    Ok(OsString::from_vec(row.get(column)?).into())
}

/// Loads everything needed to resume a session.
pub(super) fn load(connection: &Connection, number: i64) -> Result<Loaded, WorkError> {
    let mut messages = Vec::new();
    let path = path(connection, number)?;
    for segment in &path {
        let mut statement = connection.prepare_cached(MESSAGES)?;
        let (first, _) = rows_of(segment.owner);
        let mut rows = statement.query(params![first, segment.last])?;
        while let Some(row) = rows.next()? {
            messages.push(message_from_row(row)?);
        }
    }
    let mut statement = connection.prepare_cached(
        "SELECT last_seq, tokens_in, tokens_out, cost FROM sessions WHERE number = ?1",
    )?;
    let (last_seq, tokens_in, tokens_out, cost): (i64, i64, i64, _) = statement
        .query_row([number], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?;
    let count = |number: i64| u64::try_from(number).unwrap_or(0);
    Ok(Loaded {
        info: info(connection, number)?,
        messages,
        open_calls: open_calls(connection, number)?,
        approvals: approvals(connection, number)?,
        state: state(connection, &path, None)?,
        last_seq: count(last_seq),
        usage: (count(tokens_in), count(tokens_out), cost),
    })
}

const MESSAGES: &str = "
    SELECT id, parent, time, role, body, batch FROM messages
    WHERE id > ?1 AND id <= ?2 ORDER BY id";

fn message_from_row(row: &Row<'_>) -> rusqlite::Result<StoredMessage> {
    Ok(StoredMessage {
        id: row.get(0)?,
        parent: row.get(1)?,
        time: time(row.get(2)?),
        role: row.get(3)?,
        body: row.get(4)?,
    })
}

fn open_calls(connection: &Connection, number: i64) -> Result<Vec<OpenCall>, WorkError> {
    let (first, last) = rows_of(number);
    let mut statement = connection.prepare_cached(
        "SELECT call_id, tool, arguments, has_effect, time FROM calls
         WHERE id > ?1 AND id < ?2
         AND NOT EXISTS (SELECT 1 FROM outcomes WHERE outcomes.id = calls.id)
         ORDER BY id",
    )?;
    let calls = statement.query_map(params![first, last], |row| {
        Ok(OpenCall {
            call_id: row.get(0)?,
            tool: row.get(1)?,
            arguments: row.get(2)?,
            has_effect: row.get(3)?,
            since: time(row.get(4)?),
        })
    })?;
    Ok(calls.collect::<Result<_, _>>()?)
}

fn approvals(connection: &Connection, number: i64) -> Result<Vec<PendingApproval>, WorkError> {
    let (first, last) = rows_of(number);
    let mut statement = connection.prepare_cached(
        "SELECT approvals.call_id, question, approvals.time, answer
         FROM approvals LEFT JOIN decisions ON decisions.id = approvals.id
         WHERE approvals.id > ?1 AND approvals.id < ?2
         AND NOT EXISTS (
             SELECT 1 FROM calls JOIN outcomes ON outcomes.id = calls.id
             WHERE calls.call_id = approvals.call_id AND calls.session = ?3)
         ORDER BY approvals.id",
    )?;
    let pending = statement.query_map(params![first, last, number], |row| {
        Ok(PendingApproval {
            call_id: row.get(0)?,
            question: row.get(1)?,
            since: time(row.get(2)?),
            decision: row.get(3)?,
        })
    })?;
    Ok(pending.collect::<Result<_, _>>()?)
}

/// Returns the newest state in this history, or the newest one up to the message `at`.
/// Message ids increase along a history. A fork has a copy of the state at the time of the
/// fork, so later states of the origin do not apply.
pub(super) fn state(
    connection: &Connection,
    path: &[Segment],
    at: Option<i64>,
) -> Result<Option<String>, WorkError> {
    let at = at.unwrap_or(i64::MAX);
    for (index, segment) in path.iter().enumerate().rev() {
        let (first, end) = rows_of(segment.owner);
        let mut statement = connection.prepare_cached(
            "SELECT state FROM states WHERE id > ?1 AND id < ?2 AND coalesce(message, 0) <= ?3
             ORDER BY id DESC LIMIT 1",
        )?;
        let found = statement.query_row(params![first, end, at], |row| row.get(0));
        if let Some(state) = found.optional()? {
            return Ok(Some(state));
        }
        let forked_at = index.checked_sub(1).and_then(|before| path.get(before));
        if forked_at.is_none_or(|before| at >= before.last) {
            return Ok(None);
        }
    }
    Ok(None)
}

/// Returns the history up to a message, if the message is part of it.
pub(super) fn path_to(
    connection: &Connection,
    path: &[Segment],
    at: i64,
) -> Result<Option<Vec<Segment>>, WorkError> {
    let owner = owner_of(at);
    let is_in_path = path
        .iter()
        .any(|segment| segment.owner == owner && at <= segment.last);
    let mut statement = connection.prepare_cached("SELECT 1 FROM messages WHERE id = ?1")?;
    if !is_in_path || !statement.exists([at])? {
        return Ok(None);
    }
    let before = path.iter().filter(|segment| segment.owner < owner).copied();
    Ok(Some(before.chain([Segment { owner, last: at }]).collect()))
}

/// Lists sessions, newest first.
pub(super) fn list(connection: &Connection, filter: &Filter) -> Result<Vec<Summary>, WorkError> {
    let mut statement = connection.prepare_cached(
        "SELECT id, kind, title, work_dir, model, created, updated, messages, turns, own_calls,
                tokens_in, tokens_out, cost, waiting, parent, parent_call, lease, owner_pid,
                owner_start, owner_boot
         FROM sessions
         WHERE (?1 IS NULL OR work_dir = ?1) AND (?2 OR parent IS NULL)
         ORDER BY updated DESC, number DESC",
    )?;
    let folder = filter.work_dir.as_deref().map(Path::as_os_str);
    let folder = folder.map(OsStrExt::as_bytes);
    let mut rows = statement.query(params![folder, filter.sub_agents])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        if filter.limit.is_some_and(|limit| found.len() >= limit) {
            break;
        }
        let kind: String = row.get(1)?;
        if filter.kinds.is_empty() || filter.kinds.contains(&SessionKind::by_name(&kind)) {
            found.push(summary(row)?);
        }
    }
    Ok(found)
}

fn summary(row: &Row<'_>) -> rusqlite::Result<Summary> {
    let count = |column| -> rusqlite::Result<u64> {
        Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
    };
    let kind: String = row.get(1)?;
    Ok(Summary {
        id: row.get(0)?,
        kind: SessionKind::by_name(&kind),
        title: row.get(2)?,
        work_dir: folder(row, 3)?,
        model: row.get(4)?,
        created: time(row.get(5)?),
        updated: time(row.get(6)?),
        messages: count(7)?,
        turns: count(8)?,
        calls: count(9)?,
        tokens: count(10)?.saturating_add(count(11)?),
        cost: row.get(12)?,
        waiting: count(13)?,
        parent: both(row.get(14)?, row.get(15)?),
        in_use_by: owner(row, 16)?
            .filter(Owner::is_alive)
            .map(|owner| owner.pid),
    })
}

/// Reads the owner of a session from the columns `lease, owner_pid, owner_start,
/// owner_boot`.
pub(super) fn owner(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Owner>> {
    if row.get::<_, Option<i64>>(first)?.is_none() {
        return Ok(None);
    }
    Ok(Some(Owner {
        pid: row.get(first + 1)?,
        start: row.get(first + 2)?,
        boot: row.get(first + 3)?,
    }))
}

/// Fails if a running process writes to the session.
pub(super) fn check_free(connection: &Connection, number: i64) -> Result<(), WorkError> {
    let mut statement = connection.prepare_cached(
        "SELECT lease, owner_pid, owner_start, owner_boot, owner_since, id
         FROM sessions WHERE number = ?1",
    )?;
    let (owner, since, id): (_, Option<i64>, String) = statement.query_row([number], |row| {
        Ok((owner(row, 0)?, row.get(4)?, row.get(5)?))
    })?;
    match owner.filter(Owner::is_alive) {
        None => Ok(()),
        Some(owner) => Err(Error::InUse {
            id,
            pid: owner.pid,
            since: time(since.unwrap_or(0)),
        }
        .into()),
    }
}

const CALLS: &str = "
    SELECT calls.call_id, tool, arguments, has_effect, calls.time, reply, is_error, duration_ms,
           output, calls.batch, calls.session
    FROM calls LEFT JOIN outcomes ON outcomes.id = calls.id ";

fn call_from_row(row: &Row<'_>) -> rusqlite::Result<RecordedCall> {
    let duration: Option<i64> = row.get(7)?;
    Ok(RecordedCall {
        call_id: row.get(0)?,
        tool: row.get(1)?,
        arguments: row.get(2)?,
        has_effect: row.get(3)?,
        time: time(row.get(4)?),
        reply: row.get(5)?,
        is_error: row.get::<_, Option<bool>>(6)?.unwrap_or(false),
        duration_ms: duration.and_then(|duration| u64::try_from(duration).ok()),
        output: row.get(8)?,
    })
}

/// Finds a call by its id, and the session it belongs to.
pub(super) fn call(
    connection: &Connection,
    session: Option<&(i64, String)>,
    call_id: &str,
) -> Result<(String, RecordedCall), WorkError> {
    let mut statement = connection.prepare_cached(&format!(
        "{CALLS} WHERE calls.call_id = ?1 AND (?2 IS NULL OR calls.session = ?2)
         ORDER BY calls.session DESC LIMIT 5"
    ))?;
    let number = session.map(|(number, _)| *number);
    let mut found: Vec<(i64, RecordedCall)> = statement
        .query_map(params![call_id, number], |row| {
            Ok((row.get(10)?, call_from_row(row)?))
        })?
        .collect::<Result<_, _>>()?;
    let id_of = |number: i64| -> Result<Option<String>, WorkError> {
        let mut statement =
            connection.prepare_cached("SELECT id FROM sessions WHERE number = ?1")?;
        Ok(statement.query_row([number], |row| row.get(0)).optional()?)
    };
    let mut sessions = Vec::new();
    for (number, _) in &found {
        // A deleted session whose history a fork still shares has no row.
        sessions.push(id_of(*number)?.unwrap_or_else(|| "(deleted)".to_owned()));
    }
    match (found.pop(), found.is_empty()) {
        (Some((_, call)), true) => Ok((sessions.pop().unwrap_or_default(), call)),
        (Some(_), false) => Err(Error::AmbiguousCall {
            call_id: call_id.to_owned(),
            sessions,
        }
        .into()),
        (None, _) => Err(Error::UnknownCall {
            call_id: call_id.to_owned(),
            session: session.map(|(_, id)| id.clone()),
        }
        .into()),
    }
}

/// Returns the session of a folder that was used last and contains a call with this id.
pub(super) fn with_call(
    connection: &Connection,
    work_dir: &Path,
    call_id: &str,
) -> Result<Option<String>, WorkError> {
    let mut statement = connection.prepare_cached(
        "SELECT sessions.id FROM calls JOIN sessions ON sessions.number = calls.session
         WHERE calls.call_id = ?1 AND sessions.work_dir = ?2
         ORDER BY sessions.updated DESC, sessions.number DESC LIMIT 1",
    )?;
    let folder = work_dir.as_os_str().as_bytes();
    let found = statement.query_row(params![call_id, folder], |row| row.get(0));
    Ok(found.optional()?)
}

/// Visits all records of a session in the order in which they were recorded, then those of
/// its sub-agents.
pub(super) fn walk(
    connection: &Connection,
    number: i64,
    visit: &mut dyn FnMut(RecordItem) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, WorkError> {
    let info = info(connection, number)?;
    let id = info.id.clone();
    if visit(RecordItem::Session(Box::new(info))).is_break() {
        return Ok(ControlFlow::Break(()));
    }
    for segment in path(connection, number)? {
        if walk_segment(connection, number, segment, visit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    for child in children(connection, &id)? {
        if walk(connection, child, visit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Returns the sessions of sub-agents that this one started.
pub(super) fn children(connection: &Connection, id: &str) -> Result<Vec<i64>, WorkError> {
    let mut statement = connection
        .prepare_cached("SELECT number FROM sessions WHERE parent = ?1 ORDER BY number")?;
    let children = statement.query_map([id], |row| row.get(0))?;
    Ok(children.collect::<Result<_, _>>()?)
}

fn walk_segment(
    connection: &Connection,
    number: i64,
    segment: Segment,
    visit: &mut dyn FnMut(RecordItem) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, WorkError> {
    let (first, end) = rows_of(segment.owner);
    let mut statement = connection.prepare_cached(MESSAGES)?;
    let mut messages = Cursor::new(statement.query(params![first, segment.last])?, |row| {
        Ok((row.get(5)?, RecordItem::Message(message_from_row(row)?)))
    })?;
    let mut statement = connection.prepare_cached(&format!(
        "{CALLS} WHERE calls.id > ?1 AND calls.id < ?2 AND coalesce(calls.message, 0) <= ?3
         ORDER BY calls.id"
    ))?;
    let mut calls = Cursor::new(statement.query(params![first, end, segment.last])?, |row| {
        Ok((row.get(9)?, RecordItem::Call(call_from_row(row)?)))
    })?;
    let mut statement = connection.prepare_cached(
        "SELECT id, time, body, batch FROM events WHERE id >= ?1 AND id < ?2 ORDER BY batch, id",
    )?;
    // Events of the origin of a fork do not belong to the fork.
    let (from, to) = if segment.owner == number {
        events_of(number)
    } else {
        (0, 0)
    };
    let mut events = Cursor::new(statement.query(params![from, to])?, |row| {
        let event = RecordedEvent {
            seq: event_seq(row.get(0)?),
            time: time(row.get(1)?),
            body: row.get(2)?,
        };
        Ok((row.get(3)?, RecordItem::Event(event)))
    })?;
    loop {
        // Within a batch: messages, then calls, then events.
        let next = [messages.batch(), calls.batch(), events.batch()];
        let first = next.into_iter().flatten().min();
        let Some(first) = first else {
            return Ok(ControlFlow::Continue(()));
        };
        let entry = if messages.batch() == Some(first) {
            messages.next()?
        } else if calls.batch() == Some(first) {
            calls.next()?
        } else {
            events.next()?
        };
        if let Some(entry) = entry
            && visit(entry).is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
    }
}

/// Iterates over rows with a lookahead of one.
struct Cursor<'a, F> {
    rows: Rows<'a>,
    read: F,
    peeked: Option<(i64, RecordItem)>,
}

impl<'a, F: Fn(&Row<'_>) -> rusqlite::Result<(i64, RecordItem)>> Cursor<'a, F> {
    fn new(rows: Rows<'a>, read: F) -> Result<Self, WorkError> {
        let mut cursor = Self {
            rows,
            read,
            peeked: None,
        };
        cursor.next()?;
        Ok(cursor)
    }

    fn batch(&self) -> Option<i64> {
        self.peeked.as_ref().map(|(batch, _)| *batch)
    }

    fn next(&mut self) -> Result<Option<RecordItem>, WorkError> {
        let next = match self.rows.next()? {
            Some(row) => Some((self.read)(row)?),
            None => None,
        };
        Ok(std::mem::replace(&mut self.peeked, next).map(|(_, entry)| entry))
    }
}
