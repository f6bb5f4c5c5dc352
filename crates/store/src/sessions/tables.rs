//! Tables, and the numbering of their rows.
//!
//! The rows of a session are adjacent and ordered by age, without an index: a row number
//! consists of the session's number in the high bits and a position in the low bits.
//! Session numbers are never reused, so history that a fork shares with a deleted session
//! keeps its rows.

/// Rows are only added. The exception is the row of the session itself, with the end of its
/// history, its totals and its owner.
pub(crate) const TABLES: &str = "
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    work_dir BLOB NOT NULL,
    toolset TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    title TEXT,
    parent TEXT,
    parent_call TEXT,
    forked_from TEXT,
    forked_at INTEGER,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    head INTEGER,
    batches INTEGER NOT NULL DEFAULT 0,
    own_messages INTEGER NOT NULL DEFAULT 0,
    own_calls INTEGER NOT NULL DEFAULT 0,
    own_approvals INTEGER NOT NULL DEFAULT 0,
    own_states INTEGER NOT NULL DEFAULT 0,
    messages INTEGER NOT NULL DEFAULT 0,
    turns INTEGER NOT NULL DEFAULT 0,
    tokens_in INTEGER NOT NULL DEFAULT 0,
    tokens_out INTEGER NOT NULL DEFAULT 0,
    cost REAL,
    waiting INTEGER NOT NULL DEFAULT 0,
    last_seq INTEGER NOT NULL DEFAULT 0,
    lease INTEGER,
    owner_pid INTEGER,
    owner_start INTEGER,
    owner_boot TEXT,
    owner_since INTEGER
) STRICT;
CREATE TABLE systems (
    session INTEGER PRIMARY KEY,
    text TEXT NOT NULL
) STRICT;
CREATE TABLE segments (
    session INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (session, owner)
) STRICT, WITHOUT ROWID;
CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    parent INTEGER,
    batch INTEGER NOT NULL,
    time INTEGER NOT NULL,
    role TEXT NOT NULL,
    tokens_in INTEGER,
    tokens_out INTEGER,
    cost REAL,
    body TEXT NOT NULL
) STRICT;
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    message INTEGER,
    batch INTEGER NOT NULL,
    time INTEGER NOT NULL,
    has_effect INTEGER NOT NULL,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    UNIQUE (call_id, session)
) STRICT;
CREATE TABLE outcomes (
    id INTEGER PRIMARY KEY,
    time INTEGER NOT NULL,
    is_error INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    output TEXT,
    reply TEXT NOT NULL
) STRICT;
CREATE TABLE approvals (
    id INTEGER PRIMARY KEY,
    call_id TEXT NOT NULL,
    time INTEGER NOT NULL,
    question TEXT NOT NULL
) STRICT;
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY,
    time INTEGER NOT NULL,
    answer TEXT NOT NULL
) STRICT;
CREATE TABLE states (
    id INTEGER PRIMARY KEY,
    message INTEGER,
    state TEXT NOT NULL
) STRICT;
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    batch INTEGER NOT NULL,
    time INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT;
";

/// Tables that databases of older versions lack, created when such a database is opened.
pub(crate) const LATER_TABLES: &str = "
CREATE TABLE IF NOT EXISTS files (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    path BLOB NOT NULL,
    message INTEGER,
    modified INTEGER NOT NULL,
    bytes BLOB
) STRICT;
CREATE INDEX IF NOT EXISTS files_by_path ON files (session, path);
";

/// Bits of a row's position: 16 million rows of each kind per session.
const POSITION_BITS: u32 = 24;

/// Bits of an event's number: 4 billion events per session.
const EVENT_BITS: u32 = 32;

/// Returns the row number for a position in a session, or `None` if it is too high.
pub(super) fn row(session: i64, position: i64) -> Option<i64> {
    (0..1 << POSITION_BITS)
        .contains(&position)
        .then_some(session << POSITION_BITS | position)
}

/// Returns the row number of an event.
pub(super) fn event_row(session: i64, seq: u64) -> Option<i64> {
    let seq = i64::try_from(seq).ok()?;
    (seq < 1 << EVENT_BITS).then_some(session << EVENT_BITS | seq)
}

/// Returns the number of the event in a row.
pub(super) fn event_seq(row: i64) -> u64 {
    u64::try_from(row & ((1 << EVENT_BITS) - 1)).unwrap_or(0)
}

/// Returns the number of the session that a row belongs to.
pub(super) fn owner_of(row: i64) -> i64 {
    row >> POSITION_BITS
}

/// Returns the range of a session's rows; the end is exclusive.
pub(super) fn rows_of(session: i64) -> (i64, i64) {
    (session << POSITION_BITS, (session + 1) << POSITION_BITS)
}

/// Returns the range of a session's events; the end is exclusive.
pub(super) fn events_of(session: i64) -> (i64, i64) {
    (session << EVENT_BITS, (session + 1) << EVENT_BITS)
}
