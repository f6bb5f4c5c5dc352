//! Session ids: short enough to type, and found by their start.

use super::error::{Error, WorkError};
use haft_ops::text::spelling;
use rusqlite::{Connection, OptionalExtension, params};

/// Minimum length of a given id.
pub(super) const MIN_LENGTH: usize = 4;

/// Letters and digits that cannot be confused with each other.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Length of a generated id: sixty bits.
const LENGTH: usize = 12;

/// Maximum number of ids that an error lists.
const MAX_LISTED: usize = 5;

/// Generates a unique id.
pub(super) fn generate() -> String {
    let letter = |_| fastrand::choice(LETTERS).map_or('0', |byte| char::from(*byte));
    (0..LENGTH).map(letter).collect()
}

/// Checks an id that the caller chose.
pub(super) fn check(given: String) -> Result<String, Error> {
    let is_valid = (MIN_LENGTH..=64).contains(&given.len())
        && given
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if is_valid {
        Ok(given)
    } else {
        Err(Error::BadId { given })
    }
}

/// Finds the session with this id, or the only one whose id starts with it.
pub(super) fn find(connection: &Connection, given: &str) -> Result<(i64, String), WorkError> {
    let mut exact = connection.prepare_cached("SELECT number, id FROM sessions WHERE id = ?1")?;
    let pair = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    if let Some(found) = exact.query_row([given], pair).optional()? {
        return Ok(found);
    }
    let unknown = |similar| Error::Unknown {
        given: given.to_owned(),
        similar,
    };
    if given.chars().count() < MIN_LENGTH {
        return Err(Error::TooShort {
            given: given.to_owned(),
        }
        .into());
    }
    // Ids are ASCII, so all that start with the given text sort below the text followed by
    // DEL.
    let end = format!("{given}\u{7f}");
    let mut begin = connection
        .prepare_cached("SELECT number, id FROM sessions WHERE id >= ?1 AND id < ?2 LIMIT 6")?;
    let found: Vec<(i64, String)> = begin
        .query_map(params![given, end], pair)?
        .collect::<Result<_, _>>()?;
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some((_, first)), Some((_, second))) => Err(Error::Ambiguous {
            given: given.to_owned(),
            candidates: [first, second]
                .into_iter()
                .chain(found.map(|(_, id)| id))
                .take(MAX_LISTED)
                .collect(),
        }
        .into()),
        (None, _) => {
            let mut all = connection.prepare_cached("SELECT id FROM sessions")?;
            let ids: Vec<String> = all
                .query_map([], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            let similar = spelling::closest(given, ids, 1).into_iter().next();
            Err(unknown(similar).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_plain_and_checked() {
        let id = generate();
        assert_eq!(id.len(), LENGTH);
        assert_ne!(id, generate());
        assert!(check(id).is_ok());
        for bad in ["", "abc", "a/bc", "../x", "a b c", "ü234", &"x".repeat(65)] {
            assert!(check(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
