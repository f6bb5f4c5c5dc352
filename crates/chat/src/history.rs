//! Input history: a file that only its owner can read, one entry per line.

use haft::ops::private;
use std::io::Write;
use std::path::{Path, PathBuf};

const MAX_ENTRIES: usize = 1000;

/// Longer input is not recorded, in bytes.
const MAX_ENTRY_BYTES: usize = 16 << 10;

/// Entries, oldest first, and the current position.
#[derive(Debug, Default)]
pub(crate) struct History {
    file: Option<PathBuf>,
    entries: Vec<String>,
    /// Index of the shown entry, and the prefix that was typed before.
    browsing: Option<(usize, String)>,
}

impl History {
    /// Loads the history of a file. A file that cannot be read counts as empty.
    pub(crate) fn load(file: Option<PathBuf>) -> Self {
        let text = file.as_deref().map(read).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let old = lines.len().saturating_sub(MAX_ENTRIES);
        let entries: Vec<String> = lines.into_iter().skip(old).map(decode).collect();
        let history = Self {
            file,
            entries,
            browsing: None,
        };
        if old >= MAX_ENTRIES {
            history.rewrite();
        }
        history
    }

    /// Adds an entry, unless it starts with a space.
    pub(crate) fn add(&mut self, text: &str) {
        self.browsing = None;
        if text.starts_with(' ') || text.trim().is_empty() || text.len() > MAX_ENTRY_BYTES {
            return;
        }
        if self.entries.last().is_some_and(|last| last == text) {
            return;
        }
        self.entries.push(text.to_owned());
        if self.entries.len() > MAX_ENTRIES {
            self.entries.remove(0);
        }
        // Failing to save the history is not an error.
        let _ = self.append(text);
    }

    /// Returns the previous entry that starts with the typed text.
    pub(crate) fn older(&mut self, typed: &str) -> Option<String> {
        let (at, prefix) = match &self.browsing {
            Some((at, prefix)) => (*at, prefix.clone()),
            None => (self.entries.len(), typed.to_owned()),
        };
        let found = self
            .entries
            .iter()
            .take(at)
            .rposition(|entry| entry.starts_with(&prefix) && *entry != typed)?;
        let entry = self.entries.get(found).cloned();
        self.browsing = Some((found, prefix));
        entry
    }

    /// Returns the next entry; after the newest, the typed text.
    pub(crate) fn newer(&mut self, typed: &str) -> Option<String> {
        let (at, prefix) = self.browsing.clone()?;
        let found = self
            .entries
            .iter()
            .enumerate()
            .skip(at + 1)
            .find(|(_, entry)| entry.starts_with(&prefix) && *entry != typed);
        match found {
            Some((at, entry)) => {
                self.browsing = Some((at, prefix));
                Some(entry.clone())
            }
            None => {
                self.browsing = None;
                Some(prefix)
            }
        }
    }

    /// Ends browsing: the next lookup starts at the newest entry.
    pub(crate) fn stop_browsing(&mut self) {
        self.browsing = None;
    }

    /// Returns the newest entry that contains a text, after skipping some matches.
    pub(crate) fn search(&self, text: &str, skip: usize) -> Option<&str> {
        let mut found = self
            .entries
            .iter()
            .rev()
            .filter(|entry| entry.contains(text));
        found.nth(skip).map(String::as_str)
    }

    fn append(&self, text: &str) -> std::io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        if let Some(folder) = file.parent() {
            private::folder(folder)?;
        }
        let mut options = std::fs::OpenOptions::new();
        let mut file = private::file(options.append(true).create(true), file)?;
        // One write, so that two chats do not mix their lines.
        file.write_all(format!("{}\n", encode(text)).as_bytes())
    }

    /// Writes the file again without old entries.
    fn rewrite(&self) {
        let Some((file, folder)) = self
            .file
            .as_ref()
            .and_then(|file| Some((file, file.parent()?)))
        else {
            return;
        };
        let Ok(mut fresh) = tempfile::Builder::new()
            .prefix("history-")
            .tempfile_in(folder)
        else {
            return;
        };
        let text: String = self
            .entries
            .iter()
            .map(|entry| encode(entry) + "\n")
            .collect();
        let closed = private::close(&fresh);
        if closed
            .and_then(|()| fresh.write_all(text.as_bytes()))
            .is_ok()
        {
            let _ = fresh.persist(file);
        }
    }
}

fn read(file: &Path) -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "the history is a file of our own"
    )]
    let bytes = std::fs::read(file).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Encodes an entry as one line.
fn encode(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('\r', "\\r")
}

fn decode(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, false) => out.push(letter),
            (_, true) => match letters.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
        }
    }
    out
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests look at the disk themselves"
)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn folder() -> tempfile::TempDir {
        tempfile::TempDir::new().unwrap()
    }

    #[test]
    fn survives_a_restart_and_is_private() {
        let folder = folder();
        let file = folder.path().join("state/history");
        let mut history = History::load(Some(file.clone()));
        for text in ["one", "two\nlines \\n", " secret", "", "one", "one"] {
            history.add(text);
        }
        let history = History::load(Some(file.clone()));
        assert_eq!(history.entries, ["one", "two\nlines \\n", "one"]);
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn drops_the_oldest_entries() {
        let folder = folder();
        let file = folder.path().join("history");
        let lines: String = (0..2500).map(|number| format!("{number}\n")).collect();
        std::fs::write(&file, lines).unwrap();
        let history = History::load(Some(file.clone()));
        assert_eq!(history.entries.len(), MAX_ENTRIES);
        assert_eq!(history.entries.first().unwrap(), "1500");
        assert_eq!(
            std::fs::read_to_string(&file).unwrap().lines().count(),
            MAX_ENTRIES
        );
    }

    #[test]
    fn browsing_matches_the_prefix() {
        let mut history = History::default();
        for text in ["make test", "ls", "make", "exit"] {
            history.add(text);
        }
        assert_eq!(history.older("ma").unwrap(), "make");
        assert_eq!(history.older("make").unwrap(), "make test");
        assert_eq!(history.older("make test"), None);
        assert_eq!(history.newer("make test").unwrap(), "make");
        assert_eq!(history.newer("make").unwrap(), "ma");
        assert_eq!(history.newer("ma"), None);
        assert_eq!(history.search("ma", 1), Some("make test"));
        assert_eq!(history.search("ma", 2), None);
    }
}
