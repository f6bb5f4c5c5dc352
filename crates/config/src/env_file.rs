//! Files of variables for MCP servers: `NAME=VALUE` on each line, as other programs read them.
//! Nothing in a value is expanded, because a project may write the file.

use crate::read::{self, Links};
use std::path::Path;

/// Reads a file. A project's must be below `within`, also through links.
///
/// # Errors
/// Returns why it cannot be used, without its content, which may be secret.
pub(crate) fn read(path: &Path, within: Option<&Path>) -> Result<Vec<(String, String)>, String> {
    let shown = path.display().to_string();
    let real = match within {
        None => path.to_owned(),
        Some(folder) => haft::ops::beneath::real_within(folder, path)
            .map_err(|_| format!("{shown} is not in the project"))?,
    };
    let links = match within {
        None => Links::Followed,
        Some(_) => Links::Refused,
    };
    let text = read::read(&real, &shown, links).map_err(|failure| failure.to_string())?;
    let text = text.ok_or_else(|| format!("{shown} not found"))?;
    parse(&text).map_err(|line| format!("{shown}:{line}: expected NAME=VALUE"))
}

/// Parses a text. Returns the number of a line that is not valid.
fn parse(text: &str) -> Result<Vec<(String, String)>, usize> {
    let mut variables = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, given) = line.split_once('=').ok_or(number + 1)?;
        let name = name.trim();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(number + 1);
        }
        let value = value(given.trim()).ok_or(number + 1)?;
        variables.push((name.to_owned(), value));
    }
    Ok(variables)
}

fn value(given: &str) -> Option<String> {
    if let Some(quoted) = given.strip_prefix('\'') {
        return quoted.split_once('\'').map(|(value, _)| value.to_owned());
    }
    let Some(quoted) = given.strip_prefix('"') else {
        let value = given.split(" #").next().unwrap_or_default();
        return Some(value.trim_end().to_owned());
    };
    let mut value = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '"' => return Some(value),
            '\\' => value.push(match characters.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                other => other,
            }),
            other => value.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_other_programs_write_them() {
        let text = "# keys\nexport A=1\nB = two words # why\nC='a # \"b\"'\nD=\"x\\n\\\"y\\\" ${A}\"\nE=\n";
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            parse(text).unwrap(),
            [
                pair("A", "1"),
                pair("B", "two words"),
                pair("C", "a # \"b\""),
                pair("D", "x\n\"y\" ${A}"),
                pair("E", ""),
            ]
        );
        for (bad, line) in [
            ("A=1\nnothing", 2),
            ("A B=1", 1),
            ("A=\"open", 1),
            ("=x", 1),
        ] {
            assert_eq!(parse(bad), Err(line), "{bad}");
        }
    }
}
