//! Reads which other files a git configuration makes git obey.

use super::{kind, open, real};
use crate::scope::shut::look;
use crate::scope::shut::shut_folder;
use rustix::fs::{AtFlags, CWD, FileType, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum bytes to read of a configuration. The rest of a longer one is not read, so it
/// could name anything.
const MAX_CONFIG_BYTES: u64 = 16 << 20;

/// Git's own limit for nested includes.
const MAX_INCLUDE_DEPTH: usize = 10;

/// Maximum bytes to read of the list of users.
const MAX_PASSWD_BYTES: u64 = 4 << 20;

/// A file with one of these sections is assumed to be a git configuration.
const SECTIONS: [&[u8]; 20] = [
    b"alias",
    b"branch",
    b"core",
    b"credential",
    b"diff",
    b"extensions",
    b"fetch",
    b"filter",
    b"gc",
    b"http",
    b"include",
    b"includeif",
    b"merge",
    b"pack",
    b"push",
    b"receive",
    b"remote",
    b"submodule",
    b"url",
    b"user",
];

/// Files and folders that a configuration makes git obey.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// Other configurations, whether they exist or not.
    pub(super) includes: Vec<PathBuf>,
    /// Hook folders as written. Relative ones start at the work tree or, for hooks that
    /// receive something, at the git folder.
    pub(super) hooks: Vec<PathBuf>,
    /// Folders from which `git init` and `git clone` copy hooks. Only absolute ones: a
    /// relative one starts wherever the user runs `git init`.
    pub(super) templates: Vec<PathBuf>,
    /// Work trees as written. Relative ones start at the git folder.
    pub(super) trees: Vec<PathBuf>,
    /// Whether a configuration is too long to be read, or in a folder that cannot be
    /// searched, so that it may name anything.
    pub(super) is_cut: bool,
}

impl Named {
    /// Reads a configuration and everything it includes, whether or not the conditions of
    /// includes hold.
    pub(super) fn read(&mut self, file: &Path, home: Option<&Path>) {
        self.read_at(file, home, 0);
    }

    /// Returns the other configurations, except those that are folders.
    pub(super) fn files(&self) -> impl Iterator<Item = PathBuf> {
        let is_folder = |path: &PathBuf| kind(&real(path)) == Some(FileType::Directory);
        let files = self.includes.iter().filter(move |path| !is_folder(path));
        files.cloned()
    }

    fn read_at(&mut self, file: &Path, home: Option<&Path>, depth: usize) {
        if depth > MAX_INCLUDE_DEPTH {
            return;
        }
        let Some((bytes, is_cut)) = beginning(file, MAX_CONFIG_BYTES) else {
            self.is_cut |= may_be_readable_later(file);
            return;
        };
        self.is_cut |= is_cut;
        for setting in settings(&bytes) {
            let value = || expanded(&setting.value, home);
            match (setting.section.as_slice(), setting.key.as_slice()) {
                (b"core", b"hookspath") => self.hooks.extend(value()),
                (b"init", b"templatedir") => {
                    // git copies a template's configuration into each new repository.
                    for template in value() {
                        if template.is_absolute() && !self.templates.contains(&template) {
                            self.templates.push(template.clone());
                            self.read_at(&template.join("config"), home, depth + 1);
                        }
                    }
                }
                (b"core", b"worktree") => {
                    self.trees.push(OsStr::from_bytes(&setting.value).into());
                }
                (b"include" | b"includeif", b"path") => {
                    // Relative to the folder of the name that git was given, even if that name
                    // is a link.
                    let folder = file.parent().unwrap_or(Path::new("/"));
                    for path in value() {
                        let path = folder.join(path);
                        if !self.includes.contains(&path) {
                            self.includes.push(path.clone());
                            self.read_at(&path, home, depth + 1);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// Whether a file that could not be read is there, or may be, and a command of this user
/// could make it readable. Asked once: another process may change permissions meanwhile.
fn may_be_readable_later(file: &Path) -> bool {
    match look(file, || statat(CWD, file, AtFlags::empty())) {
        Ok(stat) => {
            FileType::from_raw_mode(stat.st_mode).is_file()
                && stat.st_uid == rustix::process::geteuid().as_raw()
        }
        Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => false,
        Err(_) => shut_folder(file).is_some(),
    }
}

/// Whether the content of a file looks like a git configuration. True if it cannot be read.
pub(super) fn is_configuration(file: &Path) -> bool {
    let Some((bytes, is_cut)) = beginning(file, MAX_CONFIG_BYTES) else {
        return true;
    };
    let mut parser = Parser::new(&bytes);
    while parser.next().is_some() {}
    is_cut || parser.is_known
}

/// Returns the first bytes of a regular file, and whether there are more.
fn beginning(path: &Path, most: u64) -> Option<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    let mut rest = open(path)?.take(most + 1);
    rest.read_to_end(&mut bytes).ok()?;
    let is_cut = bytes.len() as u64 > most;
    Some((bytes, is_cut))
}

/// Returns the files that a path in a configuration may mean: `~/` is the home folder,
/// `~other/` is that of another user, and git ignores a leading `:(optional)`.
fn expanded(value: &[u8], home: Option<&Path>) -> Vec<PathBuf> {
    let value = value.strip_prefix(b":(optional)").unwrap_or(value);
    let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    let Some(rest) = value.strip_prefix(b"~") else {
        return vec![path(value)];
    };
    let end = rest.iter().position(|byte| *byte == b'/');
    let (user, below) = rest
        .split_at_checked(end.unwrap_or(rest.len()))
        .unwrap_or((rest, b""));
    let below = path(below.strip_prefix(b"/").unwrap_or(below));
    let homes = match user {
        b"" => home.map(Path::to_owned).into_iter().collect(),
        user => homes_of(user),
    };
    match homes.is_empty() {
        true => vec![path(value)],
        false => homes.iter().map(|home| home.join(&below)).collect(),
    }
}

/// Returns the home folder of a user according to the list of users. A user who is not
/// listed may be known to another service, and is assumed to have the usual one.
fn homes_of(user: &[u8]) -> Vec<PathBuf> {
    let mut homes = Vec::new();
    if let Some((list, _)) = beginning(Path::new("/etc/passwd"), MAX_PASSWD_BYTES) {
        for line in list.split(|byte| *byte == b'\n') {
            let mut fields = line.split(|byte| *byte == b':');
            if fields.next() == Some(user)
                && let Some(home) = fields.nth(4)
            {
                homes.push(OsStr::from_bytes(home).into());
            }
        }
    }
    if homes.is_empty() {
        homes.push(Path::new("/home").join(OsStr::from_bytes(user)));
    }
    homes
}

/// A line of a configuration.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    /// In lower case, without the subsection.
    section: Vec<u8>,
    /// In lower case.
    key: Vec<u8>,
    value: Vec<u8>,
}

fn settings(bytes: &[u8]) -> Vec<Setting> {
    Parser::new(bytes).collect()
}

/// Parses byte by byte, as git does. git stops at an error; this continues on the next
/// line, because protecting too much is better than protecting too little.
struct Parser<'a> {
    rest: &'a [u8],
    section: Vec<u8>,
    /// Whether a section was found that git knows.
    is_known: bool,
}

/// Whether git treats a byte as blank. Form feeds and vertical tabs are not.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

impl<'a> Parser<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes),
            section: Vec::new(),
            is_known: false,
        }
    }

    /// Returns the next byte. `\r
    /// ` counts as one line end, and so does the end of the file.
    fn byte(&mut self) -> u8 {
        if let Some(rest) = self.rest.strip_prefix(b"\r\n") {
            self.rest = rest;
            return b'\n';
        }
        match self.rest.split_first() {
            Some((byte, rest)) => {
                self.rest = rest;
                *byte
            }
            None => b'\n',
        }
    }

    fn skip_line(&mut self) {
        while !self.rest.is_empty() && self.byte() != b'\n' {}
    }

    /// Parses what follows `[`: the name of a section, and its subsection in quotes.
    fn header(&mut self) {
        self.section.clear();
        let mut is_name = true;
        loop {
            match self.byte() {
                b']' => break,
                b'\n' => return,
                b'"' => {
                    if !self.quoted() {
                        return;
                    }
                }
                byte if is_of_key(byte) && is_name => {
                    self.section.push(byte.to_ascii_lowercase());
                }
                _ => is_name = false,
            }
        }
        self.is_known |= SECTIONS.contains(&self.section.as_slice());
    }

    /// Skips a subsection. Returns whether it ended on the same line.
    fn quoted(&mut self) -> bool {
        loop {
            let byte = match self.byte() {
                b'"' => return true,
                b'\\' => self.byte(),
                byte => byte,
            };
            if byte == b'\n' {
                return false;
            }
        }
    }

    /// Parses a value, without its quotes, escapes and comment.
    fn value(&mut self) -> Vec<u8> {
        let mut value = Vec::new();
        let (mut is_quoted, mut is_comment) = (false, false);
        // Length without trailing blanks.
        let mut kept = 0;
        loop {
            let byte = self.byte();
            match byte {
                b'\n' => break,
                _ if is_comment => continue,
                b'#' | b';' if !is_quoted => {
                    is_comment = true;
                    continue;
                }
                b'"' => {
                    is_quoted = !is_quoted;
                    continue;
                }
                b'\\' => match self.byte() {
                    b'\n' => continue,
                    b'n' => value.push(b'\n'),
                    b't' => value.push(b'\t'),
                    b'b' => value.push(0x08),
                    other => value.push(other),
                },
                blank if is_blank(blank) && !is_quoted => {
                    if !value.is_empty() {
                        value.push(blank);
                    }
                    continue;
                }
                other => value.push(other),
            }
            kept = value.len();
        }
        value.truncate(kept);
        value
    }
}

impl Iterator for Parser<'_> {
    type Item = Setting;

    fn next(&mut self) -> Option<Setting> {
        while !self.rest.is_empty() {
            match self.byte() {
                blank if is_blank(blank) => {}
                b'#' | b';' => self.skip_line(),
                b'[' => self.header(),
                first if first.is_ascii_alphabetic() => {
                    let mut key = vec![first.to_ascii_lowercase()];
                    let mut byte = self.byte();
                    while is_of_key(byte) {
                        key.push(byte.to_ascii_lowercase());
                        byte = self.byte();
                    }
                    while matches!(byte, b' ' | b'\t') {
                        byte = self.byte();
                    }
                    let value = match byte {
                        b'\n' => Vec::new(),
                        b'=' => self.value(),
                        _ => {
                            self.skip_line();
                            continue;
                        }
                    };
                    return Some(Setting {
                        section: self.section.clone(),
                        key,
                        value,
                    });
                }
                _ => self.skip_line(),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value_of(text: &[u8]) -> Vec<String> {
        let shown = |setting: Setting| {
            [
                setting.section.as_slice(),
                b".",
                &setting.key,
                b"=",
                &setting.value,
            ]
            .concat()
        };
        let all = settings(text).into_iter();
        all.map(|setting| shown(setting).escape_ascii().to_string())
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
            ("[core]\nhookspath = a\\\r\nb", "core.hookspath=ab"),
            (
                "\u{feff}[core]\nhookspath = \"a\\\\b\"",
                "core.hookspath=a\\\\b",
            ),
            ("[core]\r\nhookspath = x\r\n", "core.hookspath=x"),
            // Two sections on a line.
            ("[a][core]hooksPath = gh", "core.hookspath=gh"),
            // A form feed is not a blank, before a key or in a value.
            (
                "[core]\nhooksPath =\x0c gh\x0b",
                "core.hookspath=\\x0c gh\\x0b",
            ),
            ("[core]\n\x0chooksPath = gh\npager = x", "core.pager=x"),
            ("[core]\nhooksPath = \"a \" ", "core.hookspath=a "),
        ] {
            assert_eq!(value_of(text.as_bytes()), [wanted], "{text:?}");
        }
        assert_eq!(
            value_of(b"[core]\nhooksPath = gh-\xe9"),
            ["core.hookspath=gh-\\xe9"]
        );
        // A comment ends with its line, whatever its last character.
        assert_eq!(
            value_of(b"[user] name = a # note \\\n[include]\npath = x"),
            ["user.name=a", "include.path=x"]
        );
        assert_eq!(
            value_of(b"[user] name = \"a # \\\nb\" ; \\\n[include] path = x"),
            ["user.name=a # b", "include.path=x"]
        );
        assert_eq!(value_of(b"# [core]\n; x = y\n\n"), [""; 0]);
    }

    #[test]
    fn a_path_begins_at_the_home_of_whom_it_names() {
        let home = Some(Path::new("/h"));
        let of = |value: &[u8]| expanded(value, home);
        assert_eq!(of(b"~/a"), [Path::new("/h/a")]);
        assert_eq!(of(b"~"), [Path::new("/h")]);
        assert_eq!(of(b"~root/a/b"), [Path::new("/root/a/b")]);
        assert_eq!(
            of(b"~nobody-has-this/a"),
            [Path::new("/home/nobody-has-this/a")]
        );
        assert_eq!(of(b"a/~b"), [Path::new("a/~b")]);
        assert_eq!(of(b":(optional)a"), [Path::new("a")]);
        assert_eq!(expanded(b"~/a", None), [Path::new("~/a")]);
    }
}
