//! Reads a large file in parts, from a snapshot taken when it was opened.

use super::Key;
use super::rows::{self, FileRow, Found};
use crate::database::Reader;
use crate::problem::Problem;
use std::io::{self, Cursor, Read};

/// The content of a file. Its connection stays in one transaction, so it sees the same
/// snapshot regardless of later writes.
pub(super) struct Stream {
    reader: Reader,
    row: FileRow,
    /// Number of the next part to read.
    next: u64,
    part: Cursor<Vec<u8>>,
}

impl Stream {
    /// Opens a file, or returns what is at its path instead.
    pub(super) fn open(
        reader: Reader,
        key: &Key,
    ) -> Result<Result<(FileRow, Self), Found>, Problem> {
        let connection = reader.connection()?;
        // The transaction ends when the reader is dropped.
        connection.prepare_cached("BEGIN")?.execute([])?;
        let row = match rows::find(connection, key)? {
            Found::File(row) => row,
            other => return Ok(Err(other)),
        };
        let stream = Self {
            reader,
            row,
            next: 0,
            part: Cursor::default(),
        };
        Ok(Ok((row, stream)))
    }

    fn next_part(&mut self) -> Result<Vec<u8>, Problem> {
        let part = rows::part(self.reader.connection()?, &self.row, self.next)?;
        let left = self.row.size.saturating_sub(self.next * rows::PART);
        if part.len() as u64 != left.min(rows::PART) {
            return Err(rows::damaged_content());
        }
        self.next += 1;
        Ok(part)
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.part.read(buffer)?;
        if read > 0 || buffer.is_empty() || self.next * rows::PART >= self.row.size {
            return Ok(read);
        }
        let part = self.next_part().map_err(|problem| {
            let database = self.reader.database();
            database.record_damage(&problem);
            io::Error::other(format!(
                "the store {} {problem}; nothing was changed; {}",
                database.path().display(),
                problem.remedy()
            ))
        })?;
        self.part = Cursor::new(part);
        self.part.read(buffer)
    }
}
