//! The rows behind files. Every function here runs inside a transaction of its
//! caller or makes one: what it says was true at one moment.
//!
//! A path is its bytes. All that is below `a` lies between `a/` and `a0`, since
//! `0` is the byte after `/`; names such as `a!` and `a.b` sort outside of that.

use super::{FOLDER, Key};
use crate::problem::Problem;
use haft_ops::backend::{Entry, Expect, Kind, Stat};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, SystemTime};

/// How many bytes are in one row.
pub(super) const PART: u64 = 1 << 20;

/// How many rows a content may have: more than the largest file needs.
const MAX_PARTS: i64 = 1024;

/// What is known of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileRow {
    pub(super) size: u64,
    modified: i64,
    content: i64,
}

/// What is at a path.
pub(super) enum Found {
    File(FileRow),
    Folder,
    /// Nothing, and nothing can be: a file is where a folder would have to be.
    BelowFile,
    Nothing,
}

/// What became of a change.
pub(super) enum Fate<T> {
    Done(T),
    /// Something that was not expected is there.
    Found(Found),
    /// Not the content that was expected.
    Contended,
    /// Nobody waits for it.
    Abandoned,
}

impl FileRow {
    /// Reads the columns `size, modified_at, content`, from `first` on.
    fn of(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
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

    /// The row of a part of its content.
    pub(super) fn part(&self, number: u64) -> i64 {
        let number = i64::try_from(number).unwrap_or(MAX_PARTS);
        self.content * MAX_PARTS + number.min(MAX_PARTS - 1)
    }
}

/// The file at a path.
fn file(
    connection: &Connection,
    namespace: &[u8],
    path: &[u8],
) -> Result<Option<FileRow>, Problem> {
    let mut statement = connection.prepare_cached(
        "SELECT size, modified_at, content FROM files WHERE namespace = ?1 AND path = ?2",
    )?;
    let found = statement.query_row(params![namespace, path], |row| FileRow::of(row, 0));
    Ok(found.optional()?)
}

/// A file, with its content where that is not longer than `most`; or what is
/// there instead.
pub(super) fn read(
    connection: &Connection,
    key: &Key,
    most: u64,
) -> Result<Result<Read, Found>, Problem> {
    // One statement is one moment, and most often all that is needed.
    if let Some(read) = content(connection, key, most)? {
        return Ok(Ok(read));
    }
    let _moment = Moment::begin(connection)?;
    if let Some(read) = content(connection, key, most)? {
        return Ok(Ok(read));
    }
    match find(connection, key)? {
        Found::File(_) => Err(lost()),
        other => Ok(Err(other)),
    }
}

/// A file, with its content where that is wanted.
pub(super) type Read = (FileRow, Option<Vec<u8>>);

fn content(connection: &Connection, key: &Key, most: u64) -> Result<Option<Read>, Problem> {
    let mut statement = connection.prepare_cached(
        "SELECT size, modified_at, content, CASE WHEN size <= ?3 THEN bytes END
         FROM files JOIN parts ON parts.id = files.content * 1024
         WHERE namespace = ?1 AND path = ?2",
    )?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let found = statement.query_row(params![&*key.namespace, &*key.path, most], |row| {
        Ok((FileRow::of(row, 0)?, row.get::<_, Option<Vec<u8>>>(3)?))
    });
    match found.optional()? {
        Some((row, Some(bytes))) if bytes.len() as u64 != row.size => Err(lost()),
        found => Ok(found),
    }
}

/// A file whose content is not what its row says: no file that is not there.
pub(super) fn lost() -> Problem {
    Problem::Damaged {
        detail: "the content of a file is not whole".to_owned(),
    }
}

/// A transaction that only reads: several statements see one moment.
pub(super) struct Moment<'a>(&'a Connection);

impl<'a> Moment<'a> {
    pub(super) fn begin(connection: &'a Connection) -> Result<Self, Problem> {
        connection.prepare_cached("BEGIN")?.execute([])?;
        Ok(Self(connection))
    }
}

impl Drop for Moment<'_> {
    fn drop(&mut self) {
        // A connection that is still in it is given up by its reader.
        if let Ok(mut statement) = self.0.prepare_cached("COMMIT") {
            let _ = statement.execute([]);
        }
    }
}

/// What is at a path, as of one moment.
pub(super) fn stat(connection: &Connection, key: &Key) -> Result<Found, Problem> {
    if let Some(row) = file(connection, &key.namespace, &key.path)? {
        return Ok(Found::File(row));
    }
    let _moment = Moment::begin(connection)?;
    find(connection, key)
}

/// What is at a path, inside a transaction of the caller.
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

/// A moment, from the nanoseconds since 1970.
fn time(nanoseconds: i64) -> Option<SystemTime> {
    let distance = Duration::from_nanos(nanoseconds.unsigned_abs());
    if nanoseconds >= 0 {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    }
}

/// When the newest file of a folder was changed.
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

/// The entries of a folder, sorted by name; nothing when more than `most` rows
/// would have to be looked at.
pub(super) fn list(
    connection: &Connection,
    key: &Key,
    most: usize,
) -> Result<Option<Result<Vec<Entry>, Found>>, Problem> {
    let _moment = Moment::begin(connection)?;
    let mut prefix = key.path.to_vec();
    if !prefix.is_empty() {
        prefix.push(b'/');
    }
    let mut statement = connection.prepare_cached(
        "SELECT path, size, modified_at, content FROM files
         WHERE namespace = ?1 AND path >= ?2 ORDER BY path",
    )?;
    let mut entries = Vec::new();
    let mut looked = 0;
    let mut from = Some(prefix.clone());
    // Once for the files up to the next folder, whose inside is jumped over.
    while let Some(start) = from.take() {
        let mut rows = statement.query(params![&*key.namespace, start])?;
        while let Some(row) = rows.next()? {
            let path = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
            let Some(below) = path.strip_prefix(&*prefix) else {
                break;
            };
            if looked == most {
                return Ok(None);
            }
            looked += 1;
            let (name, stat) = match below.iter().position(|byte| *byte == b'/') {
                None => (below, FileRow::of(row, 1)?.stat()),
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
    // `a.b` comes before the folder `a` as a path, and after it as a name.
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Some(Ok(entries)))
}

/// Puts a file, and says whether it is new.
pub(super) fn write(
    connection: &Connection,
    key: &Key,
    bytes: &[u8],
    expect: &Expect,
) -> Result<Fate<bool>, Problem> {
    let old = match find(connection, key)? {
        Found::File(row) => Some(row),
        Found::Nothing => None,
        other => return Ok(Fate::Found(other)),
    };
    match (expect, old) {
        (Expect::Absent, Some(row)) => return Ok(Fate::Found(Found::File(row))),
        (Expect::Exactly(wanted), Some(row)) if holds(connection, &row, wanted)? => {}
        (Expect::Exactly(_), _) => return Ok(Fate::Contended),
        (Expect::Anything, _) | (Expect::Absent, None) => {}
    }
    let row = FileRow {
        size: bytes.len() as u64,
        modified: now(),
        content: match old {
            Some(old) => {
                forget(connection, &old)?;
                old.content
            }
            None => free(connection)?,
        },
    };
    put(connection, &row, bytes)?;
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
    Ok(Fate::Done(old.is_none()))
}

/// Takes a file away.
pub(super) fn remove(connection: &Connection, key: &Key) -> Result<Fate<()>, Problem> {
    let row = match find(connection, key)? {
        Found::File(row) => row,
        other => return Ok(Fate::Found(other)),
    };
    forget(connection, &row)?;
    connection
        .prepare_cached("DELETE FROM files WHERE namespace = ?1 AND path = ?2")?
        .execute(params![&*key.namespace, &*key.path])?;
    Ok(Fate::Done(()))
}

fn now() -> i64 {
    let nanos = |distance: Duration| i64::try_from(distance.as_nanos()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => nanos(since),
        Err(before) => -nanos(before.duration()),
    }
}

/// One part of a content.
pub(super) fn part(
    connection: &Connection,
    row: &FileRow,
    number: u64,
) -> Result<Vec<u8>, Problem> {
    let mut statement = connection.prepare_cached("SELECT bytes FROM parts WHERE id = ?1")?;
    let found = statement.query_row([row.part(number)], |row| row.get(0));
    found.optional()?.ok_or_else(lost)
}

/// Whether a file has exactly these bytes.
fn holds(connection: &Connection, row: &FileRow, wanted: &[u8]) -> Result<bool, Problem> {
    if row.size != wanted.len() as u64 {
        return Ok(false);
    }
    for (number, chunk) in chunks(wanted) {
        if part(connection, row, number)? != chunk {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Bytes in parts, at least one.
fn chunks(bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let empty = bytes.is_empty().then_some(bytes);
    let size = usize::try_from(PART).unwrap_or(usize::MAX);
    (0..).zip(bytes.chunks(size).chain(empty))
}

fn put(connection: &Connection, row: &FileRow, bytes: &[u8]) -> Result<(), Problem> {
    let mut statement =
        connection.prepare_cached("INSERT INTO parts (id, bytes) VALUES (?1, ?2)")?;
    for (number, chunk) in chunks(bytes) {
        statement.execute(params![row.part(number), chunk])?;
    }
    Ok(())
}

/// Deletes the content of a file.
fn forget(connection: &Connection, row: &FileRow) -> Result<(), Problem> {
    connection
        .prepare_cached("DELETE FROM parts WHERE id BETWEEN ?1 AND ?2")?
        .execute([row.part(0), row.part(u64::MAX)])?;
    Ok(())
}

/// The number of a content that is nobody's: each has a part, so the one after
/// the last.
fn free(connection: &Connection) -> Result<i64, Problem> {
    let mut statement = connection.prepare_cached("SELECT max(id) FROM parts")?;
    let last: Option<i64> = statement.query_row([], |row| row.get(0))?;
    Ok(last.map_or(0, |last| last / MAX_PARTS + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Listing a folder looks at each folder in it once, however full it is.
    #[test]
    fn a_listing_jumps_over_what_is_deeper() {
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
                Ok(Fate::Done(true))
            ));
        }
        for (folder, most) in [("", 1), ("top", 3), ("top/d0", 1)] {
            let listed = list(&connection, &key(folder.to_owned()), most).unwrap();
            assert_eq!(listed.unwrap().ok().unwrap().len(), most, "{folder}");
        }
        let listed = list(&connection, &key("top/d0/deep".to_owned()), 199).unwrap();
        assert!(listed.is_none(), "more rows than may be looked at");
    }
}
