//! The tables, and how their rows are numbered.
//!
//! What belongs to a session lies together, oldest first, without an index: the number
//! of a row is that of its session, shifted, and its place within the session. Numbers
//! of sessions are never given away again, so what a fork still needs of a deleted
//! session keeps its place.

/// Rows are only added. What changes is the one row of the session: where its
/// conversation ends, how much there is of everything, and who may add to it.
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

/// Tables that a database of an earlier version lacks, and gets when it is opened.
pub(crate) const ADDED: &str = "
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

/// How many rows of a kind a session may have: 16 million.
const PLACES: u32 = 24;

/// How many events: 4 billion.
const EVENTS: u32 = 32;

/// The row at a place of a session, if it has so many.
pub(super) fn row(session: i64, place: i64) -> Option<i64> {
    (0..1 << PLACES)
        .contains(&place)
        .then_some(session << PLACES | place)
}

/// The row of an event.
pub(super) fn event_row(session: i64, seq: u64) -> Option<i64> {
    let seq = i64::try_from(seq).ok()?;
    (seq < 1 << EVENTS).then_some(session << EVENTS | seq)
}

/// The number of an event, by its row.
pub(super) fn event_seq(row: i64) -> u64 {
    u64::try_from(row & ((1 << EVENTS) - 1)).unwrap_or(0)
}

/// The session that a row belongs to.
pub(super) fn owner_of(row: i64) -> i64 {
    row >> PLACES
}

/// The rows of a session, from the first to the last there can be.
pub(super) fn rows_of(session: i64) -> (i64, i64) {
    (session << PLACES, (session + 1) << PLACES)
}

/// The events of a session.
pub(super) fn events_of(session: i64) -> (i64, i64) {
    (session << EVENTS, (session + 1) << EVENTS)
}
