//! Complete outputs, stored in files that a truncated reply can point to.

use crate::executor::{Captured, Disk, When};
use crate::{Error, Result};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of bytes stored for one output.
pub const MAX_CALL: u64 = 1 << 30;

/// Maximum number of bytes stored in a session.
pub const MAX_SESSION: u64 = 4 << 30;

/// The stored outputs of one session, in its own folder.
#[derive(Debug)]
pub struct Spill {
    folder: PathBuf,
    /// Path of the folder as replies name it.
    called: PathBuf,
    used: AtomicU64,
}

/// A stored output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOutput {
    /// Path as replies name it.
    pub path: PathBuf,
    /// Number of bytes cut from the middle because of a limit.
    pub omitted: u64,
}

impl Spill {
    /// Stores outputs in `folder`, which is created with the first one.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self {
            called: folder.clone(),
            folder,
            used: AtomicU64::new(0),
        }
    }

    /// Sets a different path for replies to name the folder by.
    #[must_use]
    pub fn called(self, name: PathBuf) -> Self {
        Self {
            called: name,
            ..self
        }
    }

    /// Returns the path that replies use for a file in this folder.
    #[must_use]
    pub fn name_of(&self, file: &Path) -> PathBuf {
        match file.strip_prefix(&self.folder) {
            Ok(below) => self.called.join(below),
            Err(_) => file.to_owned(),
        }
    }

    /// Returns the path that replies use for the folder.
    #[must_use]
    pub fn called_folder(&self) -> &Path {
        &self.called
    }

    /// Returns the actual folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the actual path of a file that a reply named, if replies use a different
    /// one.
    #[must_use]
    pub fn file_of(&self, name: &Path) -> Option<PathBuf> {
        let below = name.strip_prefix(&self.called).ok()?;
        (self.called != self.folder).then(|| self.folder.join(below))
    }

    /// Returns the actual path of a file in this folder that a reply named; `None` if the
    /// path is not in this folder.
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

    /// Stores a text: completely if the limits allow, otherwise its start and its end.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written, because a reply must not point to a file that
    /// does not exist.
    pub fn keep(&self, name: &str, text: &str) -> Result<StoredOutput> {
        let length = text.len() as u64;
        let room = MAX_CALL.min(
            MAX_SESSION
                .saturating_sub(self.used.fetch_add(length.min(MAX_CALL), Ordering::Relaxed)),
        );
        let path = self.folder.join(file_name(name));
        let fail = |source| Error::io("store the output in", path.to_string_lossy(), source);
        if length <= room {
            self.put(&path, &[text.as_bytes()]).map_err(fail)?;
            let path = self.name_of(&path);
            return Ok(StoredOutput { path, omitted: 0 });
        }
        let half = usize::try_from(room / 2).unwrap_or(0);
        let head = crate::text::decode::prefix(text, half);
        let tail = crate::text::decode::suffix(text, half);
        let omitted = length - (head.len() + tail.len()) as u64;
        let note = format!("\n[{omitted} bytes omitted: the limit for kept outputs was reached]\n");
        self.put(&path, &[head.as_bytes(), note.as_bytes(), tail.as_bytes()])
            .map_err(fail)?;
        let path = self.name_of(&path);
        Ok(StoredOutput { path, omitted })
    }

    /// Stores bytes that are not text and are in memory already.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    pub fn keep_bytes(&self, name: &str, bytes: &[u8]) -> Result<StoredOutput> {
        let path = self.folder.join(file_name(name));
        self.used.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.put(&path, &[bytes])
            .map_err(|source| Error::io("store the output in", path.to_string_lossy(), source))?;
        let path = self.name_of(&path);
        Ok(StoredOutput { path, omitted: 0 })
    }

    /// Returns where to store the output of a command that is about to run, limited to the
    /// space left in the session. Call [`count`](Self::count) afterwards.
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

    /// Adds the stored output of a command to the space used.
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

/// Turns a call id, which is the caller's text, into a safe file name.
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
