//! Writes batches. Everything here runs inside a transaction of its caller.

use super::error::{Error, WorkError};
use super::files;
use super::lease::Owner;
use super::tables::{event_row, row, rows_of};
use super::{Approval, Batch, Call, Decision, NewMessage, Outcome};
use super::{NewSession, millis, title_of};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::os::unix::ffi::OsStrExt;

/// Maximum size in bytes of a state whose older versions are kept.
const MAX_KEPT_STATE: usize = 16 << 10;

/// Detail of the error for a session without room for another row.
const FULL: &str = "the session is full; start another one";

/// The row of a session.
#[derive(Debug)]
pub(super) struct SessionRow {
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

impl SessionRow {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
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

    /// Finds the session with exactly this id.
    pub(super) fn find(connection: &Connection, id: &str) -> Result<Option<Self>, WorkError> {
        let mut statement = connection.prepare_cached(
            "SELECT number, id, lease, head, batches, own_messages, own_calls, own_approvals,
                    own_states, messages, turns, tokens_in, tokens_out, cost, waiting, last_seq,
                    title, updated
             FROM sessions WHERE id = ?1",
        )?;
        Ok(statement.query_row([id], Self::from_row).optional()?)
    }

    fn row_id(&self, row_id: i64) -> Result<i64, WorkError> {
        row(self.number, row_id).ok_or_else(|| self.contradiction(FULL))
    }

    fn contradiction(&self, detail: impl Into<String>) -> WorkError {
        WorkError::Rejected(Error::Contradiction {
            session: self.id.clone(),
            detail: detail.into(),
        })
    }
}

/// Inserts the row of a new session.
pub(super) fn insert_session(
    connection: &Connection,
    id: &str,
    new: &NewSession,
    lease: i64,
    owner: &Owner,
    now: i64,
) -> Result<(), WorkError> {
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

/// Writes a batch and returns the ids of its messages.
pub(super) fn write(
    connection: &Connection,
    session: &mut SessionRow,
    batch: &Batch,
    now: i64,
) -> Result<Vec<i64>, WorkError> {
    session.batch += 1;
    // Clocks may go back, but the order of records must not.
    let now = now.max(session.updated);
    session.updated = now;
    let mut ids = Vec::with_capacity(batch.messages.len());
    for new in &batch.messages {
        ids.push(message(connection, session, new, now)?);
    }
    for new in &batch.calls {
        call(connection, session, new, now)?;
    }
    for new in &batch.outcomes {
        outcome(connection, session, new, now)?;
    }
    for new in &batch.approvals {
        approval(connection, session, new, now)?;
    }
    for new in &batch.decisions {
        decision(connection, session, new, now)?;
    }
    for (seq, body) in &batch.events {
        event(connection, session, *seq, body, now)?;
    }
    if let Some(new) = &batch.state {
        state(connection, session, new)?;
    }
    for new in &batch.files {
        files::write(connection, session.number, session.head, new)?
            .ok_or_else(|| session.contradiction(FULL))?;
    }
    let has_questions = !batch.approvals.is_empty() || !batch.decisions.is_empty();
    if has_questions || (session.own_approvals > 0 && !batch.outcomes.is_empty()) {
        session.waiting = count_waiting(connection, session)?;
    }
    if let Some(title) = &batch.title {
        session.title = Some(title.clone());
    }
    save(connection, session)?;
    if let Some((provider, model)) = &batch.model {
        connection
            .prepare_cached("UPDATE sessions SET provider = ?2, model = ?3 WHERE number = ?1")?
            .execute(params![session.number, provider, model])?;
    }
    Ok(ids)
}

fn save(connection: &Connection, session: &SessionRow) -> Result<(), WorkError> {
    connection
        .prepare_cached(
            "UPDATE sessions SET head = ?2, batches = ?3, own_messages = ?4, own_calls = ?5,
                own_approvals = ?6, own_states = ?7, messages = ?8, turns = ?9, tokens_in = ?10,
                tokens_out = ?11, cost = ?12, waiting = ?13, last_seq = ?14, title = ?15,
                updated = ?16
             WHERE number = ?1",
        )?
        .execute(params![
            session.number,
            session.head,
            session.batch,
            session.own_messages,
            session.own_calls,
            session.own_approvals,
            session.own_states,
            session.messages,
            session.turns,
            session.tokens_in,
            session.tokens_out,
            session.cost,
            session.waiting,
            session.last_seq,
            session.title,
            session.updated,
        ])?;
    Ok(())
}

fn message(
    connection: &Connection,
    session: &mut SessionRow,
    new: &NewMessage,
    now: i64,
) -> Result<i64, WorkError> {
    session.own_messages += 1;
    let id = session.row_id(session.own_messages)?;
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
            session.head,
            session.batch,
            now,
            new.role,
            usage.map(|usage| usage.0),
            usage.map(|usage| usage.1),
            usage.and_then(|usage| usage.2),
            new.body,
        ])?;
    session.head = Some(id);
    session.messages += 1;
    if new.role == "assistant" {
        session.turns += 1;
    }
    if let Some((tokens_in, tokens_out, cost)) = usage {
        session.tokens_in = session.tokens_in.saturating_add(tokens_in);
        session.tokens_out = session.tokens_out.saturating_add(tokens_out);
        if let Some(cost) = cost {
            session.cost = Some(session.cost.unwrap_or(0.0) + cost);
        }
    }
    if session.title.is_none() && new.role == "user" {
        session.title = title_of(&new.body);
    }
    Ok(id)
}

fn call(
    connection: &Connection,
    session: &mut SessionRow,
    new: &Call,
    now: i64,
) -> Result<(), WorkError> {
    if row_of(connection, session, &new.call_id)?.is_some() {
        let detail = format!("call \"{}\" is already recorded", new.call_id);
        return Err(session.contradiction(detail));
    }
    session.own_calls += 1;
    let id = session.row_id(session.own_calls)?;
    connection
        .prepare_cached(
            "INSERT INTO calls (id, session, call_id, message, batch, time, has_effect, tool,
                arguments)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            id,
            session.number,
            new.call_id,
            session.head,
            session.batch,
            now,
            new.has_effect,
            new.tool,
            new.arguments,
        ])?;
    Ok(())
}

fn row_of(
    connection: &Connection,
    session: &SessionRow,
    call_id: &str,
) -> Result<Option<i64>, WorkError> {
    let mut statement =
        connection.prepare_cached("SELECT id FROM calls WHERE call_id = ?1 AND session = ?2")?;
    let found = statement.query_row(params![call_id, session.number], |row| row.get(0));
    Ok(found.optional()?)
}

fn outcome(
    connection: &Connection,
    session: &SessionRow,
    new: &Outcome,
    now: i64,
) -> Result<(), WorkError> {
    let Some(id) = row_of(connection, session, &new.call_id)? else {
        return Err(WorkError::Rejected(Error::UnknownCall {
            call_id: new.call_id.clone(),
            session: Some(session.id.clone()),
        }));
    };
    // A call has one outcome; a second would contradict it.
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
        let detail = format!("call \"{}\" already has an outcome", new.call_id);
        return Err(session.contradiction(detail));
    }
    Ok(())
}

fn approval(
    connection: &Connection,
    session: &mut SessionRow,
    new: &Approval,
    now: i64,
) -> Result<(), WorkError> {
    session.own_approvals += 1;
    let id = session.row_id(session.own_approvals)?;
    connection
        .prepare_cached(
            "INSERT INTO approvals (id, call_id, time, question) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![id, new.call_id, now, new.question])?;
    Ok(())
}

/// Answers all open questions about a call: there may be more than one, and none may stay
/// open when the call runs.
fn decision(
    connection: &Connection,
    session: &SessionRow,
    new: &Decision,
    now: i64,
) -> Result<(), WorkError> {
    let (first, last) = rows_of(session.number);
    let answered = connection
        .prepare_cached(
            "INSERT INTO decisions (id, time, answer)
             SELECT id, ?4, ?5 FROM approvals WHERE id BETWEEN ?1 AND ?2 AND call_id = ?3
             AND NOT EXISTS (SELECT 1 FROM decisions WHERE decisions.id = approvals.id)",
        )?
        .execute(params![first, last, new.call_id, now, new.answer])?;
    if answered == 0 {
        let detail = format!("no pending approval for call \"{}\"", new.call_id);
        return Err(session.contradiction(detail));
    }
    Ok(())
}

/// Counts the calls that still wait for an approval.
fn count_waiting(connection: &Connection, session: &SessionRow) -> Result<i64, WorkError> {
    let (first, last) = rows_of(session.number);
    let mut statement = connection.prepare_cached(
        "SELECT count(DISTINCT call_id) FROM approvals WHERE id BETWEEN ?1 AND ?2
         AND NOT EXISTS (SELECT 1 FROM decisions WHERE decisions.id = approvals.id)
         AND NOT EXISTS (
             SELECT 1 FROM calls JOIN outcomes ON outcomes.id = calls.id
             WHERE calls.call_id = approvals.call_id AND calls.session = ?3)",
    )?;
    Ok(statement.query_row(params![first, last, session.number], |row| row.get(0))?)
}

fn event(
    connection: &Connection,
    session: &mut SessionRow,
    seq: u64,
    body: &str,
    now: i64,
) -> Result<(), WorkError> {
    let id = event_row(session.number, seq)
        .ok_or_else(|| session.contradiction(format!("invalid event number {seq}")))?;
    let added = connection
        .prepare_cached(
            "INSERT INTO events (id, batch, time, body) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (id) DO NOTHING",
        )?
        .execute(params![id, session.batch, now, body])?;
    if added == 0 {
        return Err(session.contradiction(format!("event {seq} is already recorded")));
    }
    session.last_seq = session.last_seq.max(i64::try_from(seq).unwrap_or(i64::MAX));
    Ok(())
}

/// Records the state after the newest message. Only the newest version of a large state is
/// kept.
fn state(connection: &Connection, session: &mut SessionRow, new: &str) -> Result<(), WorkError> {
    let replaced = match session.own_states {
        0 => None,
        row_id => {
            let id = session.row_id(row_id)?;
            let mut statement =
                connection.prepare_cached("SELECT message FROM states WHERE id = ?1")?;
            let message: Option<Option<i64>> =
                statement.query_row([id], |row| row.get(0)).optional()?;
            (new.len() > MAX_KEPT_STATE || message == Some(session.head)).then_some(id)
        }
    };
    let id = match replaced {
        Some(id) => id,
        None => {
            session.own_states += 1;
            session.row_id(session.own_states)?
        }
    };
    connection
        .prepare_cached("INSERT OR REPLACE INTO states (id, message, state) VALUES (?1, ?2, ?3)")?
        .execute(params![id, session.head, new])?;
    Ok(())
}

/// Makes a process the owner of a session.
pub(super) fn set_owner(
    connection: &Connection,
    number: i64,
    lease: i64,
    owner: &Owner,
) -> Result<(), WorkError> {
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

/// Ends the ownership with this lease.
pub(super) fn clear_owner(connection: &Connection, lease: i64, id: &str) -> Result<(), WorkError> {
    connection
        .prepare_cached("UPDATE sessions SET lease = NULL WHERE id = ?2 AND lease = ?1")?
        .execute(params![lease, id])?;
    Ok(())
}
