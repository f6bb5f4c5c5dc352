//! Finds paths in a text that a shell or an interpreter may read: an argument, a
//! variable's value, a script's first line.

use std::path::{Path, PathBuf};

/// Whether a character separates words in such a text.
fn is_separator(c: char) -> bool {
    c.is_whitespace() || "'\"`:;,=()<>|&{}[]!".contains(c)
}

/// Returns the absolute paths in a text that may be a program or a path template. Whether
/// such a file exists does not matter, because a suffix may be added.
pub(super) fn fragments(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_separator).filter_map(|piece| {
        let path = piece.get(piece.find('/')?..)?;
        let before = piece.strip_suffix(path).unwrap_or_default();
        let is_absolute = before.is_empty() || before.starts_with('-');
        path.get(..wild(path)).filter(|_| is_absolute)
    })
}

/// Returns the relative paths in a text.
pub(super) fn relative(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(is_separator);
    words.filter(|word| !word.is_empty() && !word.starts_with(['/', '-', '~', '$']))
}

/// Returns the folders in which a pattern starts to match: `/home/me` for
/// `/home/me/p*/x`.
pub(super) fn searched(text: &str) -> impl Iterator<Item = &Path> {
    text.split(is_separator).filter_map(|word| {
        let begin = word.get(..wild(word)).filter(|begin| *begin != word)?;
        let folder = begin.get(..=begin.rfind('/')?)?;
        Some(Path::new(folder)).filter(|folder| folder.is_absolute())
    })
}

/// Returns the position of the first wildcard.
fn wild(path: &str) -> usize {
    path.find(['?', '*']).unwrap_or(path.len())
}

/// Expands `~`, `$NAME` and `${NAME}` as a shell would. Unknown variables stay unchanged.
pub(super) fn expanded(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['~', '$']) {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(before);
        let is_first = out.chars().next_back().is_none_or(is_separator);
        let (taken, value) = match from.strip_prefix('~') {
            Some(after) if is_first => home(after, variable),
            Some(_) => (1, None),
            None => value(from.get(1..).unwrap_or_default(), variable),
        };
        let taken = from.get(..taken).unwrap_or(from);
        out.push_str(value.as_deref().unwrap_or(taken));
        rest = from.get(taken.len()..).unwrap_or_default();
    }
    out + rest
}

/// Returns the length of a `~NAME` and the home folder it refers to.
fn home(after: &str, variable: &dyn Fn(&str) -> Option<String>) -> (usize, Option<String>) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let name: String = after.chars().take_while(|c| is_name(*c)).collect();
    let is_own = name.is_empty() || variable("USER").is_some_and(|user| user == name);
    let folder = match name.as_str() {
        _ if is_own => variable("HOME"),
        "root" => Some("/root".to_owned()),
        name => PathBuf::from("/home")
            .join(name)
            .to_str()
            .map(str::to_owned),
    };
    (1 + name.len(), folder)
}

/// Returns the length of a variable reference and its value. For `${NAME:-x}` that is the
/// value of `NAME`, or `x` if it is not set.
fn value(after: &str, variable: &dyn Fn(&str) -> Option<String>) -> (usize, Option<String>) {
    let inside = after.strip_prefix('{');
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let text = inside.unwrap_or(after);
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    let (name, more) = text.split_at_checked(end).unwrap_or((text, ""));
    match (inside, more.find('}')) {
        (None, _) => (1 + name.len(), variable(name)),
        (Some(_), Some(close)) if variable(name).is_some() => {
            (3 + name.len() + close, variable(name))
        }
        // The text inside is expanded like the rest.
        (Some(_), _) => (1, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_expanded_as_by_a_shell() {
        let variable = |name: &str| match name {
            "HOME" => Some("/home/me".to_owned()),
            "USER" => Some("me".to_owned()),
            "P" => Some("/p".to_owned()),
            _ => None,
        };
        for (text, expected) in [
            ("exec ~/x", "exec /home/me/x"),
            ("~", "/home/me"),
            ("ProxyCommand=~/x", "ProxyCommand=/home/me/x"),
            ("!~/x", "!/home/me/x"),
            ("PATH=/a:~/b:$PATH", "PATH=/a:/home/me/b:$PATH"),
            ("~me/x ~other/x ~root/x", "/home/me/x /home/other/x /root/x"),
            ("a~b file~", "a~b file~"),
            ("\"$HOME/x\" $HOME", "\"/home/me/x\" /home/me"),
            ("${HOME}/x ${P}y", "/home/me/x /py"),
            ("${HOME:-/a}/x ${HOME%/}/x", "/home/me/x /home/me/x"),
            ("${NONE:-~/x} $NONE ${", "${NONE:-~/x} $NONE ${"),
            ("$P$P ä$Pö~", "/p/p ä/pö~"),
            ("cost: 5$ $", "cost: 5$ $"),
        ] {
            assert_eq!(expanded(text, &variable), expected, "{text}");
        }
    }

    #[test]
    fn paths_are_found_in_texts() {
        let found: Vec<&str> = fragments("x=/a/b;'/c' -I/d e/f /g/*.h").collect();
        assert_eq!(found, ["/a/b", "/c", "/d", "/g/"]);
        let found: Vec<&str> = relative("cd p && !./x -f /a e/f").collect();
        assert_eq!(found, ["cd", "p", "./x", "e/f"]);
        let found: Vec<&Path> = searched("ls /a/b*/c /d/? e* /f").collect();
        assert_eq!(found, [Path::new("/a/"), Path::new("/d/")]);
    }
}
