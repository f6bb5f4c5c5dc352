//! Paths that are absolute in their own tree have one spelling each. A spelling that would
//! mean something else elsewhere is refused, not reinterpreted.

use crate::{Error, Result};

/// Reason why the spelling of a path is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misspelling {
    /// It does not start with `/`.
    Relative,
    /// It contains `..`.
    Traversal,
    /// It starts with `~`.
    Home,
    /// It starts with a drive letter.
    Drive,
    /// It ends with `/`, which means a folder, but a file is to be changed.
    Slash,
    /// It starts with the folder of commands, which the tree does not contain.
    CommandsOnly,
}

/// Returns the error for a path with such a spelling.
#[must_use]
pub fn misspelt(given: &str, how: Misspelling) -> Error {
    Error::Misspelt {
        path: given.chars().take(200).collect(),
        how,
    }
}

/// Refuses a path that is not absolute, or contains `..`, `~` or `C:`.
///
/// # Errors
/// [`Error::Misspelt`].
pub fn check(given: &str) -> Result<()> {
    let mut chars = given.chars();
    let how = if given.split(['/', '\\']).any(|part| part == "..") {
        Misspelling::Traversal
    } else if given.starts_with('~') {
        Misspelling::Home
    } else if chars
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && chars.next() == Some(':')
    {
        Misspelling::Drive
    } else if !given.starts_with('/') {
        Misspelling::Relative
    } else {
        return Ok(());
    };
    Err(misspelt(given, how))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hostile_spelling_is_told_apart() {
        for (given, how) in [
            ("../etc/passwd", Misspelling::Traversal),
            ("/a/../b", Misspelling::Traversal),
            ("/..", Misspelling::Traversal),
            ("/a\\..\\b", Misspelling::Traversal),
            ("~/../x", Misspelling::Traversal),
            ("~", Misspelling::Home),
            ("~/x", Misspelling::Home),
            ("~root/x", Misspelling::Home),
            ("C:\\x", Misspelling::Drive),
            ("c:/x", Misspelling::Drive),
            ("x", Misspelling::Relative),
            ("", Misspelling::Relative),
            ("./x", Misspelling::Relative),
            ("\\x", Misspelling::Relative),
            (" /x", Misspelling::Relative),
        ] {
            let found = match check(given) {
                Err(Error::Misspelt { how, .. }) => Some(how),
                _ => None,
            };
            assert_eq!(found, Some(how), "{given}");
        }
        for given in [
            "/", "/a~b", "/~", "/a..b", "/...", "/..a", "/C:", "//a/./b/",
        ] {
            assert!(check(given).is_ok(), "{given}");
        }
    }
}
