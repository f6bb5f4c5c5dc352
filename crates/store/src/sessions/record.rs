//! Writing a batch. Everything here runs inside a transaction of its caller.

use super::batch::{Approval, Batch, Call, Decision, NewMessage, Outcome};
use super::error::{Error, Stop};
use super::files;
use super::lease::Owner;
use super::tables::{event_row, row, rows_of};
use super::{New, millis, title_of};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::os::unix::ffi::OsStrExt;

/// A state that is longer than this is not kept beside an older one.
const LONG_STATE: usize = 16 << 10;

/// What is said when there is no place for one more row.
const FULL: &str = "it is full: begin another one";

/// What the row of a session says.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) number: i64,
    pub(super) id: String,
    pub(super) lease: Option<i64>,
    head: Option<i64>,
    batch: i64,
    own_messages: i64,
    own_calls: i64,
    own_approvals: i64,
    own_states: i64,
    messages: i64,
    turns: i64,
    tokens_in: i64,
    tokens_out: i64,
    cost: Option<f64>,
    waiting: i64,
    last_seq: i64,
    title: Option<String>,
    updated: i64,
}

impl Current {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            number: row.get(0)?,
            id: row.get(1)?,
            lease: row.get(2)?,
            head: row.get(3)?,
            batch: row.get(4)?,
            own_messages: row.get(5)?,
            own_calls: row.get(6)?,
            own_approvals: row.get(7)?,
            own_states: row.get(8)?,
            messages: row.get(9)?,
            turns: row.get(10)?,
            tokens_in: row.get(11)?,
            tokens_out: row.get(12)?,
            cost: row.get(13)?,
            waiting: row.get(14)?,
            last_seq: row.get(15)?,
            title: row.get(16)?,
            updated: row.get(17)?,
        })
    }

    /// The session of exactly this id.
    pub(super) fn find(connection: &Connection, id: &str) -> Result<Option<Self>, Stop> {
        let mut statement = connection.prepare_cached(
            "SELECT number, id, lease, head, batches, own_messages, own_calls, own_approvals,
                    own_states, messages, turns, tokens_in, tokens_out, cost, waiting, last_seq,
                    title, updated
             FROM sessions WHERE id = ?1",
        )?;
        Ok(statement.query_row([id], Self::of).optional()?)
    }

    fn place(&self, place: i64) -> Result<i64, Stop> {
        row(self.number, place).ok_or_else(|| self.contradiction(FULL))
    }

    fn contradiction(&self, detail: impl Into<String>) -> Stop {
        Stop::Said(Error::Contradiction {
            session: self.id.clone(),
            detail: detail.into(),
        })
    }
}

/// Makes the row of a session that nobody said anything in so far.
pub(super) fn begin(
    connection: &Connection,
    id: &str,
    new: &New,
    lease: i64,
    owner: &Owner,
    now: i64,
) -> Result<(), Stop> {
    let (parent, call) = match &new.parent {
        Some((parent, call)) => (Some(parent), Some(call)),
        None => (None, None),
    };
    connection
        .prepare_cached(
            "INSERT INTO sessions (id, kind, work_dir, toolset, provider, model, title, parent,
                parent_call, created, updated, lease, owner_pid, owner_start, owner_boot,
                owner_since)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?11, ?12, ?13, ?14, ?10)",
        )?
        .execute(params![
            id,
            new.kind.name(),
            new.work_dir.as_os_str().as_bytes(),
            new.toolset,
            new.provider,
            new.model,
            new.title,
            parent,
            call,
            now,
            lease,
            owner.pid,
            owner.start,
            owner.boot,
        ])?;
    if let Some(system) = &new.system {
        let number = connection.last_insert_rowid();
        connection
            .prepare_cached("INSERT INTO systems (session, text) VALUES (?1, ?2)")?
            .execute(params![number, system])?;
    }
    Ok(())
}

/// Writes a batch, and says which ids its messages have.
pub(super) fn write(
    connection: &Connection,
    current: &mut Current,
    batch: &Batch,
    now: i64,
) -> Result<Vec<i64>, Stop> {
    current.batch += 1;
    // Clocks go back; the order of things does not.
    let now = now.max(current.updated);
    current.updated = now;
    let mut ids = Vec::with_capacity(batch.messages.len());
    for new in &batch.messages {
        ids.push(message(connection, current, new, now)?);
    }
    for new in &batch.calls {
        call(connection, current, new, now)?;
    }
    for new in &batch.outcomes {
        outcome(connection, current, new, now)?;
    }
    for new in &batch.approvals {
        approval(connection, current, new, now)?;
    }
    for new in &batch.decisions {
        decision(connection, current, new, now)?;
    }
    for (seq, body) in &batch.events {
        event(connection, current, *seq, body, now)?;
    }
    if let Some(new) = &batch.state {
        state(connection, current, new)?;
    }
    for new in &batch.files {
        files::write(connection, current.number, current.head, new)?
            .ok_or_else(|| current.contradiction(FULL))?;
    }
    let asked = !batch.approvals.is_empty() || !batch.decisions.is_empty();
    if asked || (current.own_approvals > 0 && !batch.outcomes.is_empty()) {
        current.waiting = waiting(connection, current)?;
    }
    if let Some(title) = &batch.title {
        current.title = Some(title.clone());
    }
    save(connection, current)?;
    if let Some((provider, model)) = &batch.model {
        connection
            .prepare_cached("UPDATE sessions SET provider = ?2, model = ?3 WHERE number = ?1")?
            .execute(params![current.number, provider, model])?;
    }
    Ok(ids)
}

fn save(connection: &Connection, current: &Current) -> Result<(), Stop> {
    connection
        .prepare_cached(
            "UPDATE sessions SET head = ?2, batches = ?3, own_messages = ?4, own_calls = ?5,
                own_approvals = ?6, own_states = ?7, messages = ?8, turns = ?9, tokens_in = ?10,
                tokens_out = ?11, cost = ?12, waiting = ?13, last_seq = ?14, title = ?15,
                updated = ?16
             WHERE number = ?1",
        )?
        .execute(params![
            current.number,
            current.head,
            current.batch,
            current.own_messages,
            current.own_calls,
            current.own_approvals,
            current.own_states,
            current.messages,
            current.turns,
            current.tokens_in,
            current.tokens_out,
            current.cost,
            current.waiting,
            current.last_seq,
            current.title,
            current.updated,
        ])?;
    Ok(())
}

fn message(
    connection: &Connection,
    current: &mut Current,
    new: &NewMessage,
    now: i64,
) -> Result<i64, Stop> {
    current.own_messages += 1;
    let id = current.place(current.own_messages)?;
    let usage = new.usage.map(|(tokens_in, tokens_out, cost)| {
        let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        (count(tokens_in), count(tokens_out), cost)
    });
    connection
        .prepare_cached(
            "INSERT INTO messages (id, parent, batch, time, role, tokens_in, tokens_out, cost, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            id,
            current.head,
            current.batch,
            now,
            new.role,
            usage.map(|usage| usage.0),
            usage.map(|usage| usage.1),
            usage.and_then(|usage| usage.2),
            new.body,
        ])?;
    current.head = Some(id);
    current.messages += 1;
    if new.role == "assistant" {
        current.turns += 1;
    }
    if let Some((tokens_in, tokens_out, cost)) = usage {
        current.tokens_in = current.tokens_in.saturating_add(tokens_in);
        current.tokens_out = current.tokens_out.saturating_add(tokens_out);
        if let Some(cost) = cost {
            current.cost = Some(current.cost.unwrap_or(0.0) + cost);
        }
    }
    if current.title.is_none() && new.role == "user" {
        current.title = title_of(&new.body);
    }
    Ok(id)
}

fn call(connection: &Connection, current: &mut Current, new: &Call, now: i64) -> Result<(), Stop> {
    if row_of(connection, current, &new.call_id)?.is_some() {
        let detail = format!("call \"{}\" was recorded before", new.call_id);
        return Err(current.contradiction(detail));
    }
    current.own_calls += 1;
    let id = current.place(current.own_calls)?;
    connection
        .prepare_cached(
            "INSERT INTO calls (id, session, call_id, message, batch, time, has_effect, tool,
                arguments)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            id,
            current.number,
            new.call_id,
            current.head,
            current.batch,
            now,
            new.has_effect,
            new.tool,
            new.arguments,
        ])?;
    Ok(())
}

fn row_of(connection: &Connection, current: &Current, call_id: &str) -> Result<Option<i64>, Stop> {
    let mut statement =
        connection.prepare_cached("SELECT id FROM calls WHERE call_id = ?1 AND session = ?2")?;
    let found = statement.query_row(params![call_id, current.number], |row| row.get(0));
    Ok(found.optional()?)
}

fn outcome(
    connection: &Connection,
    current: &Current,
    new: &Outcome,
    now: i64,
) -> Result<(), Stop> {
    let Some(id) = row_of(connection, current, &new.call_id)? else {
        return Err(Stop::Said(Error::UnknownCall {
            call_id: new.call_id.clone(),
            session: Some(current.id.clone()),
        }));
    };
    // One outcome a call: the second would deny the first.
    let added = connection
        .prepare_cached(
            "INSERT INTO outcomes (id, time, is_error, duration_ms, output, reply)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (id) DO NOTHING",
        )?
        .execute(params![
            id,
            now,
            new.is_error,
            i64::try_from(new.duration_ms).unwrap_or(i64::MAX),
            new.output,
            new.reply,
        ])?;
    if added == 0 {
        let detail = format!("call \"{}\" has an outcome already", new.call_id);
        return Err(current.contradiction(detail));
    }
    Ok(())
}

fn approval(
    connection: &Connection,
    current: &mut Current,
    new: &Approval,
    now: i64,
) -> Result<(), Stop> {
    current.own_approvals += 1;
    let id = current.place(current.own_approvals)?;
    connection
        .prepare_cached(
            "INSERT INTO approvals (id, call_id, time, question) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![id, new.call_id, now, new.question])?;
    Ok(())
}

/// Answers the questions about a call that have no answer: it may have been asked about
/// more than once, and none of them is open when it is made.
fn decision(
    connection: &Connection,
    current: &Current,
    new: &Decision,
    now: i64,
) -> Result<(), Stop> {
    let (first, last) = rows_of(current.number);
    let answered = connection
        .prepare_cached(
            "INSERT INTO decisions (id, time, answer)
             SELECT id, ?4, ?5 FROM approvals WHERE id BETWEEN ?1 AND ?2 AND call_id = ?3
             AND NOT EXISTS (SELECT 1 FROM decisions WHERE decisions.id = approvals.id)",
        )?
        .execute(params![first, last, new.call_id, now, new.answer])?;
    if answered == 0 {
        let detail = format!("nothing is asked about call \"{}\"", new.call_id);
        return Err(current.contradiction(detail));
    }
    Ok(())
}

/// How many calls there are that may still be made once somebody has answered.
fn waiting(connection: &Connection, current: &Current) -> Result<i64, Stop> {
    let (first, last) = rows_of(current.number);
    let mut statement = connection.prepare_cached(
        "SELECT count(DISTINCT call_id) FROM approvals WHERE id BETWEEN ?1 AND ?2
         AND NOT EXISTS (SELECT 1 FROM decisions WHERE decisions.id = approvals.id)
         AND NOT EXISTS (
             SELECT 1 FROM calls JOIN outcomes ON outcomes.id = calls.id
             WHERE calls.call_id = approvals.call_id AND calls.session = ?3)",
    )?;
    Ok(statement.query_row(params![first, last, current.number], |row| row.get(0))?)
}

fn event(
    connection: &Connection,
    current: &mut Current,
    seq: u64,
    body: &str,
    now: i64,
) -> Result<(), Stop> {
    let id = event_row(current.number, seq)
        .ok_or_else(|| current.contradiction(format!("no event can have the number {seq}")))?;
    let added = connection
        .prepare_cached(
            "INSERT INTO events (id, batch, time, body) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (id) DO NOTHING",
        )?
        .execute(params![id, current.batch, now, body])?;
    if added == 0 {
        return Err(current.contradiction(format!("event {seq} was recorded before")));
    }
    current.last_seq = current.last_seq.max(i64::try_from(seq).unwrap_or(i64::MAX));
    Ok(())
}

/// The state as it is after the newest message. Of a long one only the newest is kept.
fn state(connection: &Connection, current: &mut Current, new: &str) -> Result<(), Stop> {
    let same = match current.own_states {
        0 => None,
        place => {
            let id = current.place(place)?;
            let mut statement =
                connection.prepare_cached("SELECT message FROM states WHERE id = ?1")?;
            let message: Option<Option<i64>> =
                statement.query_row([id], |row| row.get(0)).optional()?;
            (new.len() > LONG_STATE || message == Some(current.head)).then_some(id)
        }
    };
    let id = match same {
        Some(id) => id,
        None => {
            current.own_states += 1;
            current.place(current.own_states)?
        }
    };
    connection
        .prepare_cached("INSERT OR REPLACE INTO states (id, message, state) VALUES (?1, ?2, ?3)")?
        .execute(params![id, current.head, new])?;
    Ok(())
}

/// Gives a session to an owner.
pub(super) fn own(
    connection: &Connection,
    number: i64,
    lease: i64,
    owner: &Owner,
) -> Result<(), Stop> {
    connection
        .prepare_cached(
            "UPDATE sessions SET lease = ?2, owner_pid = ?3, owner_start = ?4, owner_boot = ?5,
                owner_since = ?6 WHERE number = ?1",
        )?
        .execute(params![
            number,
            lease,
            owner.pid,
            owner.start,
            owner.boot,
            millis(std::time::SystemTime::now()),
        ])?;
    Ok(())
}

/// Takes it away from who has it by this lease.
pub(super) fn disown(connection: &Connection, lease: i64, id: &str) -> Result<(), Stop> {
    connection
        .prepare_cached("UPDATE sessions SET lease = NULL WHERE id = ?2 AND lease = ?1")?
        .execute(params![lease, id])?;
    Ok(())
}
