//! Whole outputs, kept where a reply that was cut can point to.

use crate::executor::{Captured, Disk, When};
use crate::{Error, Result};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// How much is kept of one output.
pub const MAX_CALL: u64 = 1 << 30;

/// How much is kept in a session.
pub const MAX_SESSION: u64 = 4 << 30;

/// The outputs of one session, in a folder of its own.
#[derive(Debug)]
pub struct Spill {
    folder: PathBuf,
    /// What the folder is called where a reply points to it.
    called: PathBuf,
    used: AtomicU64,
}

/// An output that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Where a reply points to.
    pub path: PathBuf,
    /// How many bytes from the middle are not there, because a limit was hit.
    pub omitted: u64,
}

impl Spill {
    /// Keeps outputs in `folder`, which is made when the first one comes.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self {
            called: folder.clone(),
            folder,
            used: AtomicU64::new(0),
        }
    }

    /// With another name for the folder in what replies point to.
    #[must_use]
    pub fn called(self, name: PathBuf) -> Self {
        Self {
            called: name,
            ..self
        }
    }

    /// What a file of this folder is called where a reply points to it.
    #[must_use]
    pub fn name_of(&self, file: &Path) -> PathBuf {
        match file.strip_prefix(&self.folder) {
            Ok(below) => self.called.join(below),
            Err(_) => file.to_owned(),
        }
    }

    /// What the folder is called where a reply points to it.
    #[must_use]
    pub fn called_folder(&self) -> &Path {
        &self.called
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where something is that a reply points to, if it has another name there.
    #[must_use]
    pub fn file_of(&self, name: &Path) -> Option<PathBuf> {
        let below = name.strip_prefix(&self.called).ok()?;
        (self.called != self.folder).then(|| self.folder.join(below))
    }

    /// Where a file of this folder is, by the name that a reply points to it with;
    /// nothing if it is no file of this folder.
    #[must_use]
    pub fn real(&self, name: &Path) -> Option<PathBuf> {
        let below = name
            .strip_prefix(&self.called)
            .or_else(|_| name.strip_prefix(&self.folder))
            .ok()?;
        let plain = |part| matches!(part, std::path::Component::Normal(_));
        let is_below = below.components().next().is_some() && below.components().all(plain);
        is_below.then(|| self.folder.join(below))
    }

    /// Keeps a text, whole up to the limits and else its beginning and end.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be written: a note must not name a file that
    /// is not there.
    pub fn keep(&self, name: &str, text: &str) -> Result<Kept> {
        let length = text.len() as u64;
        let room = MAX_CALL.min(
            MAX_SESSION
                .saturating_sub(self.used.fetch_add(length.min(MAX_CALL), Ordering::Relaxed)),
        );
        let path = self.folder.join(file_name(name));
        let fail = |source| Error::io("keep the output in", path.to_string_lossy(), source);
        if length <= room {
            self.put(&path, &[text.as_bytes()]).map_err(fail)?;
            let path = self.name_of(&path);
            return Ok(Kept { path, omitted: 0 });
        }
        let half = usize::try_from(room / 2).unwrap_or(0);
        let head = crate::text::decode::prefix(text, half);
        let tail = crate::text::decode::suffix(text, half);
        let omitted = length - (head.len() + tail.len()) as u64;
        let note = format!("\n[{omitted} bytes omitted: the limit for kept outputs was reached]\n");
        self.put(&path, &[head.as_bytes(), note.as_bytes(), tail.as_bytes()])
            .map_err(fail)?;
        let path = self.name_of(&path);
        Ok(Kept { path, omitted })
    }

    /// Keeps bytes that are no text and that memory holds anyway.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    pub fn keep_bytes(&self, name: &str, bytes: &[u8]) -> Result<Kept> {
        let path = self.folder.join(file_name(name));
        self.used.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.put(&path, &[bytes])
            .map_err(|source| Error::io("keep the output in", path.to_string_lossy(), source))?;
        let path = self.name_of(&path);
        Ok(Kept { path, omitted: 0 })
    }

    /// Where the outputs of a command go that is about to run, with what is left
    /// of the session's room. What they took is to be [counted](Self::count).
    #[must_use]
    pub fn disk(&self, name: &str, when: When) -> Disk {
        let left = MAX_SESSION.saturating_sub(self.used.load(Ordering::Relaxed));
        Disk {
            output: self.folder.join(file_name(name)),
            error: self.folder.join(file_name(&format!("{name}_stderr"))),
            max: MAX_CALL.min(left),
            when,
        }
    }

    /// Counts what was kept of a command's output.
    pub fn count(&self, captured: &Captured) {
        if captured.spill.is_some() {
            let kept = captured.total_bytes.saturating_sub(captured.omitted);
            self.used.fetch_add(kept, Ordering::Relaxed);
        }
    }

    fn put(&self, path: &Path, parts: &[&[u8]]) -> std::io::Result<()> {
        crate::private::folder(&self.folder)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let mut file = crate::private::file(&options, path)?;
        parts.iter().try_for_each(|part| file.write_all(part))
    }
}

/// A call id is the caller's text; a file name is ours.
fn file_name(name: &str) -> String {
    let clean: String = name
        .chars()
        .take(80)
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
                c
            } else {
                '_'
            }
        })
        .collect();
    format!("{}.txt", if clean.is_empty() { "output" } else { &clean })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_share_the_room_of_a_session() {
        let spill = Spill::new("/nowhere".into());
        let disk = spill.disk("call/1", When::Overflow);
        assert_eq!(disk.output, Path::new("/nowhere/call_1.txt"));
        assert_eq!(disk.error, Path::new("/nowhere/call_1_stderr.txt"));
        assert_eq!(disk.max, MAX_CALL);
        let mut captured = Captured {
            total_bytes: MAX_SESSION - 10,
            ..Captured::default()
        };
        spill.count(&captured);
        assert_eq!(spill.disk("2", When::Overflow).max, MAX_CALL, "no file");
        captured.spill = Some(disk.output);
        spill.count(&captured);
        assert_eq!(spill.disk("3", When::Overflow).max, 10);
    }
}
