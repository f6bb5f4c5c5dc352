//! What a configuration of git says about other files that git obeys.

use super::{kind, real, text};
use rustix::fs::FileType;
use std::path::{Path, PathBuf};

/// More than any configuration has.
const LONGEST: u64 = 1 << 20;

/// As deep as git follows includes.
const DEEPEST: usize = 10;

/// Files and folders that a configuration makes git obey.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// Other configurations, whether they are there or not.
    pub(super) includes: Vec<PathBuf>,
    /// Folders of hooks as they are written: those that are relative begin at the
    /// work tree.
    pub(super) hooks: Vec<PathBuf>,
    /// Work trees as they are written: those that are relative begin at the git folder.
    pub(super) trees: Vec<PathBuf>,
}

impl Named {
    /// Reads a configuration and what it includes, whatever an include depends on.
    pub(super) fn read(&mut self, file: &Path, home: Option<&Path>) {
        self.read_at(file, home, 0);
    }

    /// The other configurations; a folder is none.
    pub(super) fn files(&self) -> impl Iterator<Item = PathBuf> {
        let is_folder = |path: &PathBuf| kind(&real(path)) == Some(FileType::Directory);
        let files = self.includes.iter().filter(move |path| !is_folder(path));
        files.cloned()
    }

    fn read_at(&mut self, file: &Path, home: Option<&Path>, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        let Some(text) = text(file, LONGEST) else {
            return;
        };
        for (section, key, value) in settings(&text) {
            match (section.as_str(), key.as_str()) {
                ("core", "hookspath") => self.hooks.push(expanded(&value, home)),
                ("core", "worktree") => self.trees.push(PathBuf::from(value)),
                ("include" | "includeif", "path") => {
                    let path = expanded(&value, home);
                    // Beside the file that a link leads to as well as beside the link:
                    // git takes the name it was given.
                    let folder = file.parent().unwrap_or(Path::new("/"));
                    let path = folder.join(path);
                    if !self.includes.contains(&path) {
                        self.includes.push(path.clone());
                        self.read_at(&path, home, depth + 1);
                    }
                }
                _ => {}
            }
        }
    }
}

/// `~/` is the home folder; `~other/` stays as it is, and leads out of any tree.
fn expanded(value: &str, home: Option<&Path>) -> PathBuf {
    match (value.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ if value == "~" => home.unwrap_or(Path::new("~")).to_owned(),
        _ => PathBuf::from(value),
    }
}

/// The section (without what it is about), the key and the value of each line; the
/// first two in lower case.
fn settings(text: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut section = String::new();
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    while let Some(line) = lines.next() {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            let (name, rest) = header(rest);
            section = name;
            line = rest.trim();
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let mut raw = value.to_owned();
        while goes_on(&raw) {
            raw.pop();
            let Some(next) = lines.next() else {
                break;
            };
            raw.push_str(next);
        }
        let key = key.trim().to_ascii_lowercase();
        found.push((section.clone(), key, unquoted(raw.trim())));
    }
    found
}

/// `core`, `includeIf "gitdir:x"` or `include.x`, and what follows the bracket.
fn header(rest: &str) -> (String, &str) {
    let mut quoted = false;
    let mut escaped = false;
    let mut end = rest.len();
    for (at, c) in rest.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let (inside, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let name = inside
        .split(['"', ' ', '\t', '.'])
        .next()
        .unwrap_or_default();
    let after = after.strip_prefix(']').unwrap_or_default();
    (name.trim().to_ascii_lowercase(), after)
}

/// Whether a value goes on in the next line: it ends in a backslash that is neither
/// escaped nor part of a comment.
fn goes_on(raw: &str) -> bool {
    let mut quoted = false;
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => return false,
            '\\' if chars.next().is_none() => return true,
            _ => {}
        }
    }
    false
}

/// A value without its quotes, escapes and comment.
fn unquoted(raw: &str) -> String {
    let mut value = String::new();
    let mut quoted = false;
    let mut kept = 0;
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            '\\' => match chars.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('b') => drop(value.pop()),
                Some(other) => value.push(other),
                None => {}
            },
            c => value.push(c),
        }
        // Space before a comment is no part of the value.
        if quoted || !c.is_whitespace() {
            kept = value.len();
        }
    }
    value.truncate(kept);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value_of(text: &str) -> Vec<String> {
        let all = settings(text).into_iter();
        all.map(|(section, key, value)| format!("{section}.{key}={value}"))
            .collect()
    }

    #[test]
    fn settings_are_read_as_git_reads_them() {
        for (text, wanted) in [
            ("[core]\n\thooksPath = a b ; c", "core.hookspath=a b"),
            ("[CORE] HooksPath=\"a # b\" # c", "core.hookspath=a # b"),
            ("[include]path=x", "include.path=x"),
            (
                "[includeIf \"gitdir:]x\\\"\"]\npath = y",
                "includeif.path=y",
            ),
            ("[core]\nhookspath = a\\\nb", "core.hookspath=ab"),
            (
                "\u{feff}[core]\nhookspath = \"a\\\\b\"",
                "core.hookspath=a\\b",
            ),
            ("[core]\r\nhookspath = x\r\n", "core.hookspath=x"),
        ] {
            assert_eq!(value_of(text), [wanted], "{text:?}");
        }
        // A comment ends with its line, whatever it ends in.
        assert_eq!(
            value_of("[user] name = a # note \\\n[include]\npath = x"),
            ["user.name=a", "include.path=x"]
        );
        assert_eq!(
            value_of("[user] name = \"a # \\\nb\" ; \\\n[include] path = x"),
            ["user.name=a # b", "include.path=x"]
        );
        assert_eq!(value_of("# [core]\n; x = y\n\n"), [""; 0]);
    }
}
