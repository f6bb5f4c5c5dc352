//! Ids of sessions: short enough to type, and found by their beginning.

use super::error::{Error, Stop};
use haft_ops::text::spelling;
use rusqlite::{Connection, OptionalExtension, params};

/// How much of an id has to be given.
pub(super) const SHORTEST: usize = 4;

/// Letters and digits that nobody takes for others.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// How many of them an id has: sixty bits.
const LENGTH: usize = 12;

/// How many candidates an error names.
const NAMED: usize = 5;

/// An id that no other session has.
pub(super) fn fresh() -> String {
    let letter = |_| fastrand::choice(LETTERS).map_or('0', |byte| char::from(*byte));
    (0..LENGTH).map(letter).collect()
}

/// An id that somebody else chose.
pub(super) fn checked(given: String) -> Result<String, Error> {
    let fits = (SHORTEST..=64).contains(&given.len())
        && given
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if fits {
        Ok(given)
    } else {
        Err(Error::BadId { given })
    }
}

/// The session of this id, or the only one whose id begins with it.
pub(super) fn find(connection: &Connection, given: &str) -> Result<(i64, String), Stop> {
    let mut exact = connection.prepare_cached("SELECT number, id FROM sessions WHERE id = ?1")?;
    let pair = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    if let Some(found) = exact.query_row([given], pair).optional()? {
        return Ok(found);
    }
    let unknown = |near| Error::Unknown {
        given: given.to_owned(),
        near,
    };
    if given.chars().count() < SHORTEST {
        return Err(Error::TooShort {
            given: given.to_owned(),
        }
        .into());
    }
    // Ids are ASCII, so all that begin with it lie before it and the last letter.
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
                .take(NAMED)
                .collect(),
        }
        .into()),
        (None, _) => {
            let mut all = connection.prepare_cached("SELECT id FROM sessions")?;
            let ids: Vec<String> = all
                .query_map([], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            let near = spelling::closest(given, ids, 1).into_iter().next();
            Err(unknown(near).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_plain() {
        let id = fresh();
        assert_eq!(id.len(), LENGTH);
        assert_ne!(id, fresh());
        assert!(checked(id).is_ok());
        for bad in ["", "abc", "a/bc", "../x", "a b c", "ü234", &"x".repeat(65)] {
            assert!(checked(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
