//! Paths that are absolute in a tree of their own have one spelling each: what
//! would mean another place elsewhere is refused, not reinterpreted.

use crate::{Error, Result};

/// How a path is written that is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misspelling {
    /// It does not begin with `/`.
    Relative,
    /// It has a part `..`.
    Traversal,
    /// It begins with `~`.
    Home,
    /// It begins with a drive letter.
    Drive,
    /// It ends with `/`, which means a folder, where a file is to be changed.
    Slash,
    /// It begins with the folder of commands, which the tree does not have.
    CommandsOnly,
}

/// The error for a path that is written like this.
#[must_use]
pub fn misspelt(given: &str, how: Misspelling) -> Error {
    Error::Misspelt {
        path: given.chars().take(200).collect(),
        how,
    }
}

/// Refuses a path that is not absolute, or says `..`, `~` or `C:`.
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
