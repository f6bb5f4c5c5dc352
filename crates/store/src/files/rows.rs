//! The rows behind files. Every function here runs inside a transaction of its caller or
//! starts one, so its result is consistent.
//!
//! A path is stored as bytes. All paths below `a` are between `a/` and `a0`, because `0` is
//! the byte after `/`; names such as `a!` and `a.b` sort outside of that range.

use super::{FOLDER, Key};
use crate::problem::Problem;
use haft_ops::backend::{Entry, Expect, Kind, Stat};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, SystemTime};

/// Number of bytes in one row of content.
pub(super) const PART: u64 = 1 << 20;

/// Maximum number of rows per content: more than the largest file needs.
const MAX_PARTS: i64 = 1024;

/// Metadata of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileRow {
    pub(super) size: u64,
    modified: i64,
    content: i64,
}

/// Result of looking up a path.
pub(super) enum Found {
    File(FileRow),
    Folder,
    /// Nothing, because a parent of the path is a file.
    BelowFile,
    Nothing,
}

/// Result of a change.
pub(super) enum ChangeResult<T> {
    Done(T),
    /// The path holds something unexpected.
    Found(Found),
    /// The file does not have the expected content.
    Contended,
    /// The call was cancelled.
    Abandoned,
}

impl FileRow {
    /// Reads the columns `size, modified_at, content`, starting at `first`.
    fn from_row(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            size: u64::try_from(row.get::<_, i64>(first)?).unwrap_or(0),
            modified: row.get(first + 1)?,
            content: row.get(first + 2)?,
        })
    }

    pub(super) fn stat(&self) -> Stat {
        Stat {
            kind: Kind::File,
            size: self.size,
            modified: time(self.modified),
            mode: None,
        }
    }

    /// Returns the row id of a part of the content.
    pub(super) fn part(&self, number: u64) -> i64 {
        let number = i64::try_from(number).unwrap_or(MAX_PARTS);
        self.content * MAX_PARTS + number.min(MAX_PARTS - 1)
    }
}

/// Looks up the file at a path.
fn file(
    connection: &Connection,
    namespace: &[u8],
    path: &[u8],
) -> Result<Option<FileRow>, Problem> {
    let mut statement = connection.prepare_cached(
        "SELECT size, modified_at, content FROM files WHERE namespace = ?1 AND path = ?2",
    )?;
    let found = statement.query_row(params![namespace, path], |row| FileRow::from_row(row, 0));
    Ok(found.optional()?)
}

/// Reads a file, with its content if that is not longer than `most`; or returns what is at
/// the path instead.
pub(super) fn read(
    connection: &Connection,
    key: &Key,
    limit: u64,
) -> Result<Result<Read, Found>, Problem> {
    // A single statement is consistent, and usually sufficient.
    if let Some(read) = content(connection, key, limit)? {
        return Ok(Ok(read));
    }
    let _snapshot = Snapshot::begin(connection)?;
    if let Some(read) = content(connection, key, limit)? {
        return Ok(Ok(read));
    }
    match find(connection, key)? {
        Found::File(_) => Err(damaged_content()),
        other => Ok(Err(other)),
    }
}

/// A file, with its content if requested.
pub(super) type Read = (FileRow, Option<Vec<u8>>);

fn content(connection: &Connection, key: &Key, limit: u64) -> Result<Option<Read>, Problem> {
    let mut statement = connection.prepare_cached(
        "SELECT size, modified_at, content, CASE WHEN size <= ?3 THEN bytes END
         FROM files JOIN parts ON parts.id = files.content * 1024
         WHERE namespace = ?1 AND path = ?2",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let found = statement.query_row(params![&*key.namespace, &*key.path, limit], |row| {
        Ok((
            FileRow::from_row(row, 0)?,
            row.get::<_, Option<Vec<u8>>>(3)?,
        ))
    });
    match found.optional()? {
        Some((row, Some(bytes))) if bytes.len() as u64 != row.size => Err(damaged_content()),
        found => Ok(found),
    }
}

/// Error for a file whose content does not match its row. Not the same as a missing file.
pub(super) fn damaged_content() -> Problem {
    Problem::Damaged {
        detail: "the content of a file is incomplete".to_owned(),
    }
}

/// A read transaction: several statements see the same snapshot.
pub(super) struct Snapshot<'a>(&'a Connection);

impl<'a> Snapshot<'a> {
    pub(super) fn begin(connection: &'a Connection) -> Result<Self, Problem> {
        connection.prepare_cached("BEGIN")?.execute([])?;
        Ok(Self(connection))
    }
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        // If this fails, the reader discards the connection.
        if let Ok(mut statement) = self.0.prepare_cached("COMMIT") {
            let _ = statement.execute([]);
        }
    }
}

/// Looks up a path in its own transaction.
pub(super) fn stat(connection: &Connection, key: &Key) -> Result<Found, Problem> {
    if let Some(row) = file(connection, &key.namespace, &key.path)? {
        return Ok(Found::File(row));
    }
    let _snapshot = Snapshot::begin(connection)?;
    find(connection, key)
}

/// Looks up a path in the caller's transaction.
pub(super) fn find(connection: &Connection, key: &Key) -> Result<Found, Problem> {
    if key.path.is_empty() {
        return Ok(Found::Folder);
    }
    if let Some(row) = file(connection, &key.namespace, &key.path)? {
        return Ok(Found::File(row));
    }
    let mut below = key.path.to_vec();
    below.push(b'/');
    let mut statement = connection
        .prepare_cached("SELECT path FROM files WHERE namespace = ?1 AND path > ?2 LIMIT 1")?;
    let next: Option<Vec<u8>> = statement
        .query_row(params![&*key.namespace, below], |row| row.get(0))
        .optional()?;
    if next.is_some_and(|next| next.starts_with(&below)) {
        return Ok(Found::Folder);
    }
    for (place, byte) in key.path.iter().enumerate().rev() {
        if *byte == b'/'
            && let Some(above) = key.path.get(..place)
            && file(connection, &key.namespace, above)?.is_some()
        {
            return Ok(Found::BelowFile);
        }
    }
    Ok(Found::Nothing)
}

/// Converts nanoseconds since 1970.
fn time(nanoseconds: i64) -> Option<SystemTime> {
    let distance = Duration::from_nanos(nanoseconds.unsigned_abs());
    if nanoseconds >= 0 {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    }
}

/// Returns the time of the newest change in a folder.
pub(super) fn newest(connection: &Connection, key: &Key) -> Result<Option<SystemTime>, Problem> {
    let newest: Option<i64> = if key.path.is_empty() {
        connection
            .prepare_cached("SELECT MAX(modified_at) FROM files WHERE namespace = ?1")?
            .query_row(params![&*key.namespace], |row| row.get(0))?
    } else {
        let (mut from, mut to) = (key.path.to_vec(), key.path.to_vec());
        from.push(b'/');
        to.push(b'/' + 1);
        let mut statement = connection.prepare_cached(
            "SELECT MAX(modified_at) FROM files
             WHERE namespace = ?1 AND path > ?2 AND path < ?3",
        )?;
        statement.query_row(params![&*key.namespace, from, to], |row| row.get(0))?
    };
    Ok(newest.and_then(time))
}

/// Returns the entries of a folder sorted by name, or `None` if that would need more than
/// `most` rows.
pub(super) fn list(
    connection: &Connection,
    key: &Key,
    limit: usize,
) -> Result<Option<Result<Vec<Entry>, Found>>, Problem> {
    let _snapshot = Snapshot::begin(connection)?;
    let mut prefix = key.path.to_vec();
    if !prefix.is_empty() {
        prefix.push(b'/');
    }
    let mut statement = connection.prepare_cached(
        "SELECT path, size, modified_at, content FROM files
         WHERE namespace = ?1 AND path >= ?2 ORDER BY path",
    )?;
    let mut entries = Vec::new();
    let mut rows_read = 0;
    let mut from = Some(prefix.clone());
    // One query per run of files; subfolders are skipped.
    while let Some(start) = from.take() {
        let mut rows = statement.query(params![&*key.namespace, start])?;
        while let Some(row) = rows.next()? {
            let path = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
            let Some(below) = path.strip_prefix(&*prefix) else {
                break;
            };
            if rows_read == limit {
                return Ok(None);
            }
            rows_read += 1;
            let (name, stat) = match below.iter().position(|byte| *byte == b'/') {
                None => (below, FileRow::from_row(row, 1)?.stat()),
                Some(slash) => {
                    let name = below.get(..slash).unwrap_or_default();
                    let mut past = prefix.clone();
                    past.extend_from_slice(name);
                    past.push(b'/' + 1);
                    from = Some(past);
                    (name, FOLDER)
                }
            };
            entries.push(Entry {
                name: OsString::from_vec(name.to_vec()),
                stat,
                target: None,
            });
            if from.is_some() {
                break;
            }
        }
    }
    if entries.is_empty() && !key.path.is_empty() {
        return Ok(Some(Err(find(connection, key)?)));
    }
    // The path `a.b` sorts before the folder `a/`, but its name sorts after `a`.
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Some(Ok(entries)))
}

/// Writes a file. Returns whether it is new.
pub(super) fn write(
    connection: &Connection,
    key: &Key,
    bytes: &[u8],
    expect: &Expect,
) -> Result<ChangeResult<bool>, Problem> {
    let old = match find(connection, key)? {
        Found::File(row) => Some(row),
        Found::Nothing => None,
        other => return Ok(ChangeResult::Found(other)),
    };
    match (expect, old) {
        (Expect::Absent, Some(row)) => return Ok(ChangeResult::Found(Found::File(row))),
        (Expect::Exactly(expected), Some(row)) if has_content(connection, &row, expected)? => {}
        (Expect::Exactly(_), _) => return Ok(ChangeResult::Contended),
        (Expect::Anything, _) | (Expect::Absent, None) => {}
    }
    let row = FileRow {
        size: bytes.len() as u64,
        modified: now(),
        content: match old {
            Some(old) => {
                delete_content(connection, &old)?;
                old.content
            }
            None => unused_content(connection)?,
        },
    };
    insert_content(connection, &row, bytes)?;
    connection
        .prepare_cached(
            "INSERT INTO files (namespace, path, size, created_at, modified_at, content)
             VALUES (?1, ?2, ?3, ?4, ?4, ?5)
             ON CONFLICT DO UPDATE SET size = ?3, modified_at = ?4",
        )?
        .execute(params![
            &*key.namespace,
            &*key.path,
            i64::try_from(row.size).unwrap_or(i64::MAX),
            row.modified,
            row.content,
        ])?;
    Ok(ChangeResult::Done(old.is_none()))
}

/// Deletes a file.
pub(super) fn remove(connection: &Connection, key: &Key) -> Result<ChangeResult<()>, Problem> {
    let row = match find(connection, key)? {
        Found::File(row) => row,
        other => return Ok(ChangeResult::Found(other)),
    };
    delete_content(connection, &row)?;
    connection
        .prepare_cached("DELETE FROM files WHERE namespace = ?1 AND path = ?2")?
        .execute(params![&*key.namespace, &*key.path])?;
    Ok(ChangeResult::Done(()))
}

fn now() -> i64 {
    let nanos = |distance: Duration| i64::try_from(distance.as_nanos()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => nanos(since),
        Err(before) => -nanos(before.duration()),
    }
}

/// Reads one part of a content.
pub(super) fn part(
    connection: &Connection,
    row: &FileRow,
    number: u64,
) -> Result<Vec<u8>, Problem> {
    let mut statement = connection.prepare_cached("SELECT bytes FROM parts WHERE id = ?1")?;
    let found = statement.query_row([row.part(number)], |row| row.get(0));
    found.optional()?.ok_or_else(damaged_content)
}

/// Whether a file has exactly these bytes.
fn has_content(connection: &Connection, row: &FileRow, expected: &[u8]) -> Result<bool, Problem> {
    if row.size != expected.len() as u64 {
        return Ok(false);
    }
    for (number, chunk) in chunks(expected) {
        if part(connection, row, number)? != chunk {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Splits bytes into parts, at least one.
fn chunks(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let empty = bytes.is_empty().then_some(bytes);
    let size = usize::try_from(PART).unwrap_or(usize::MAX);
    (0..).zip(bytes.chunks(size).chain(empty))
}

fn insert_content(connection: &Connection, row: &FileRow, bytes: &[u8]) -> Result<(), Problem> {
    let mut statement =
        connection.prepare_cached("INSERT INTO parts (id, bytes) VALUES (?1, ?2)")?;
    for (number, chunk) in chunks(bytes) {
        statement.execute(params![row.part(number), chunk])?;
    }
    Ok(())
}

/// Deletes the content of a file.
fn delete_content(connection: &Connection, row: &FileRow) -> Result<(), Problem> {
    connection
        .prepare_cached("DELETE FROM parts WHERE id BETWEEN ?1 AND ?2")?
        .execute([row.part(0), row.part(u64::MAX)])?;
    Ok(())
}

/// Returns an unused content number: the one after the last, because each content has at
/// least one part.
fn unused_content(connection: &Connection) -> Result<i64, Problem> {
    let mut statement = connection.prepare_cached("SELECT max(id) FROM parts")?;
    let last: Option<i64> = statement.query_row([], |row| row.get(0))?;
    Ok(last.map_or(0, |last| last / MAX_PARTS + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Listing a folder reads one row per subfolder, however many files that contains.
    #[test]
    fn a_listing_skips_the_content_of_subfolders() {
        let connection = Connection::open_in_memory().unwrap();
        let tables = crate::files::TABLES;
        connection.execute_batch(tables).unwrap();
        let key = |path: String| Key {
            namespace: (*b"n").into(),
            path: path.into_bytes().into(),
        };
        for number in 0..600 {
            let path = key(format!("top/d{}/deep/f{number}", number % 3));
            assert!(matches!(
                write(&connection, &path, b"x", &Expect::Absent),
                Ok(ChangeResult::Done(true))
            ));
        }
        for (folder, limit) in [("", 1), ("top", 3), ("top/d0", 1)] {
            let listed = list(&connection, &key(folder.to_owned()), limit).unwrap();
            assert_eq!(listed.unwrap().ok().unwrap().len(), limit, "{folder}");
        }
        let listed = list(&connection, &key("top/d0/deep".to_owned()), 199).unwrap();
        assert!(listed.is_none(), "more rows than allowed");
    }
}
