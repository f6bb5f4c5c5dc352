//! Looking sessions up. Everything here runs in one moment of the database.

use super::error::{Error, Stop};
use super::lease::Owner;
use super::tables::{event_seq, events_of, owner_of, rows_of};
use super::{
    Entry, Filter, Info, Kind, Loaded, OpenCall, Pending, RecordedCall, RecordedEvent, Stored,
    Summary, time,
};
use rusqlite::{Connection, OptionalExtension, Row, Rows, params};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Part of a conversation: messages of one session, up to one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) owner: i64,
    pub(super) last: i64,
}

/// The conversation of a session, from the root on. Sessions are numbered in the order
/// they began, and a fork begins after what it was forked from.
pub(super) fn path(connection: &Connection, number: i64) -> Result<Vec<Segment>, Stop> {
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

fn info(connection: &Connection, number: i64) -> Result<Info, Stop> {
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
            kind: Kind::by_name(&kind),
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

/// All that is needed to go on with a session.
pub(super) fn load(connection: &Connection, number: i64) -> Result<Loaded, Stop> {
    let mut messages = Vec::new();
    let path = path(connection, number)?;
    for segment in &path {
        let mut statement = connection.prepare_cached(MESSAGES)?;
        let (first, _) = rows_of(segment.owner);
        let mut rows = statement.query(params![first, segment.last])?;
        while let Some(row) = rows.next()? {
            messages.push(stored(row)?);
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

fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    Ok(Stored {
        id: row.get(0)?,
        parent: row.get(1)?,
        time: time(row.get(2)?),
        role: row.get(3)?,
        body: row.get(4)?,
    })
}

fn open_calls(connection: &Connection, number: i64) -> Result<Vec<OpenCall>, Stop> {
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

fn approvals(connection: &Connection, number: i64) -> Result<Vec<Pending>, Stop> {
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
        Ok(Pending {
            call_id: row.get(0)?,
            question: row.get(1)?,
            since: time(row.get(2)?),
            decision: row.get(3)?,
        })
    })?;
    Ok(pending.collect::<Result<_, _>>()?)
}

/// The newest state that was known in this conversation, or when it had come so far.
/// Along a conversation the ids of messages rise. A fork has a copy of what was known
/// when it was made: what the other one came to know later is none of its business.
pub(super) fn state(
    connection: &Connection,
    path: &[Segment],
    at: Option<i64>,
) -> Result<Option<String>, Stop> {
    let at = at.unwrap_or(i64::MAX);
    for (place, segment) in path.iter().enumerate().rev() {
        let (first, end) = rows_of(segment.owner);
        let mut statement = connection.prepare_cached(
            "SELECT state FROM states WHERE id > ?1 AND id < ?2 AND coalesce(message, 0) <= ?3
             ORDER BY id DESC LIMIT 1",
        )?;
        let found = statement.query_row(params![first, end, at], |row| row.get(0));
        if let Some(state) = found.optional()? {
            return Ok(Some(state));
        }
        let forked_at = place.checked_sub(1).and_then(|before| path.get(before));
        if forked_at.is_none_or(|before| at >= before.last) {
            return Ok(None);
        }
    }
    Ok(None)
}

/// Whether a message is in the conversation, and the conversation up to it.
pub(super) fn path_to(
    connection: &Connection,
    path: &[Segment],
    at: i64,
) -> Result<Option<Vec<Segment>>, Stop> {
    let owner = owner_of(at);
    let on_path = path
        .iter()
        .any(|segment| segment.owner == owner && at <= segment.last);
    let mut statement = connection.prepare_cached("SELECT 1 FROM messages WHERE id = ?1")?;
    if !on_path || !statement.exists([at])? {
        return Ok(None);
    }
    let before = path.iter().filter(|segment| segment.owner < owner).copied();
    Ok(Some(before.chain([Segment { owner, last: at }]).collect()))
}

/// Sessions, the newest first.
pub(super) fn list(connection: &Connection, filter: &Filter) -> Result<Vec<Summary>, Stop> {
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
        if filter.most.is_some_and(|most| found.len() >= most) {
            break;
        }
        let kind: String = row.get(1)?;
        if filter.kinds.is_empty() || filter.kinds.contains(&Kind::by_name(&kind)) {
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
        kind: Kind::by_name(&kind),
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

/// Who has a session: the columns `lease, owner_pid, owner_start, owner_boot`.
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

/// Fails when somebody who is alive writes to it.
pub(super) fn is_free(connection: &Connection, number: i64) -> Result<(), Stop> {
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

fn recorded(row: &Row<'_>) -> rusqlite::Result<RecordedCall> {
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

/// A call by its id, and the session it is of.
pub(super) fn call(
    connection: &Connection,
    session: Option<&(i64, String)>,
    call_id: &str,
) -> Result<(String, RecordedCall), Stop> {
    let mut statement = connection.prepare_cached(&format!(
        "{CALLS} WHERE calls.call_id = ?1 AND (?2 IS NULL OR calls.session = ?2)
         ORDER BY calls.session DESC LIMIT 5"
    ))?;
    let number = session.map(|(number, _)| *number);
    let mut found: Vec<(i64, RecordedCall)> = statement
        .query_map(params![call_id, number], |row| {
            Ok((row.get(10)?, recorded(row)?))
        })?
        .collect::<Result<_, _>>()?;
    let id_of = |number: i64| -> Result<Option<String>, Stop> {
        let mut statement =
            connection.prepare_cached("SELECT id FROM sessions WHERE number = ?1")?;
        Ok(statement.query_row([number], |row| row.get(0)).optional()?)
    };
    let mut sessions = Vec::new();
    for (number, _) in &found {
        // One that only a fork still needs has none.
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

/// The session of a folder that was used last and has a call of this id.
pub(super) fn with_call(
    connection: &Connection,
    work_dir: &Path,
    call_id: &str,
) -> Result<Option<String>, Stop> {
    let mut statement = connection.prepare_cached(
        "SELECT sessions.id FROM calls JOIN sessions ON sessions.number = calls.session
         WHERE calls.call_id = ?1 AND sessions.work_dir = ?2
         ORDER BY sessions.updated DESC, sessions.number DESC LIMIT 1",
    )?;
    let folder = work_dir.as_os_str().as_bytes();
    let found = statement.query_row(params![call_id, folder], |row| row.get(0));
    Ok(found.optional()?)
}

/// Shows a session piece by piece, in the order in which things were recorded; then the
/// sessions of the agents it started.
pub(super) fn walk(
    connection: &Connection,
    number: i64,
    visit: &mut dyn FnMut(Entry) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, Stop> {
    let info = info(connection, number)?;
    let id = info.id.clone();
    if visit(Entry::Session(Box::new(info))).is_break() {
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

/// The sessions of agents that this one started.
pub(super) fn children(connection: &Connection, id: &str) -> Result<Vec<i64>, Stop> {
    let mut statement = connection
        .prepare_cached("SELECT number FROM sessions WHERE parent = ?1 ORDER BY number")?;
    let children = statement.query_map([id], |row| row.get(0))?;
    Ok(children.collect::<Result<_, _>>()?)
}

fn walk_segment(
    connection: &Connection,
    number: i64,
    segment: Segment,
    visit: &mut dyn FnMut(Entry) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, Stop> {
    let (first, end) = rows_of(segment.owner);
    let mut statement = connection.prepare_cached(MESSAGES)?;
    let mut messages = Cursor::new(statement.query(params![first, segment.last])?, |row| {
        Ok((row.get(5)?, Entry::Message(stored(row)?)))
    })?;
    let mut statement = connection.prepare_cached(&format!(
        "{CALLS} WHERE calls.id > ?1 AND calls.id < ?2 AND coalesce(calls.message, 0) <= ?3
         ORDER BY calls.id"
    ))?;
    let mut calls = Cursor::new(statement.query(params![first, end, segment.last])?, |row| {
        Ok((row.get(9)?, Entry::Call(recorded(row)?)))
    })?;
    let mut statement = connection.prepare_cached(
        "SELECT id, time, body, batch FROM events WHERE id >= ?1 AND id < ?2 ORDER BY batch, id",
    )?;
    // What happened elsewhere is not what happened here.
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
        Ok((row.get(3)?, Entry::Event(event)))
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

/// Rows that are looked at one ahead.
struct Cursor<'a, F> {
    rows: Rows<'a>,
    read: F,
    ahead: Option<(i64, Entry)>,
}

impl<'a, F: Fn(&Row<'_>) -> rusqlite::Result<(i64, Entry)>> Cursor<'a, F> {
    fn new(rows: Rows<'a>, read: F) -> Result<Self, Stop> {
        let mut cursor = Self {
            rows,
            read,
            ahead: None,
        };
        cursor.next()?;
        Ok(cursor)
    }

    fn batch(&self) -> Option<i64> {
        self.ahead.as_ref().map(|(batch, _)| *batch)
    }

    fn next(&mut self) -> Result<Option<Entry>, Stop> {
        let next = match self.rows.next()? {
            Some(row) => Some((self.read)(row)?),
            None => None,
        };
        Ok(std::mem::replace(&mut self.ahead, next).map(|(_, entry)| entry))
    }
}
