//! Temporary files of processes that were killed.
//!
//! Each process that writes keeps a locked file in the litter folder, and records its
//! temporary files there before creating them. If such a file is not locked, its process is
//! gone, and the files it lists are removed.

use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Names of temporary files.
pub(super) const PREFIX: &str = ".haft-";
pub(super) const SUFFIX: &str = ".tmp";

/// Maximum size of a record; more than any process needs.
const MAX_NOTES: u64 = 4 << 20;

/// Whether a name is that of a temporary file of a write.
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    name.strip_prefix(PREFIX.as_bytes())
        .and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()))
        .is_some_and(|middle| middle.len() == 16 && middle.iter().all(u8::is_ascii_hexdigit))
}

/// The folder in which temporary files are recorded.
#[derive(Debug)]
pub struct Litter {
    folder: PathBuf,
    notes: Mutex<Option<Notes>>,
}

#[derive(Debug)]
struct Notes {
    file: File,
    path: PathBuf,
    live: usize,
}

impl Litter {
    /// Uses `folder`, which is created at the first write.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            notes: Mutex::new(None),
        }
    }

    /// Removes the files of dead processes, and returns their number.
    #[expect(
        clippy::disallowed_methods,
        reason = "haft's own records, not files of a session"
    )]
    pub fn sweep(&self) -> usize {
        // A record in another user's folder could name any file.
        if crate::private::check(&self.folder).is_err() {
            return 0;
        }
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return 0;
        };
        entries
            .flatten()
            .map(|entry| sweep_notes(&entry.path()).unwrap_or(0))
            .sum()
    }

    /// Records a temporary file before it is created. The record is removed on drop.
    pub(super) fn note(&self, temporary: &Path) -> io::Result<Noted<'_>> {
        let mut notes = self
            .notes
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if notes.is_none() {
            *notes = Some(self.open()?);
        }
        if let Some(notes) = notes.as_mut() {
            let mut line = temporary.as_os_str().as_bytes().to_vec();
            line.push(0);
            notes.file.write_all(&line)?;
            notes.live += 1;
        }
        Ok(Noted { litter: self })
    }

    fn open(&self) -> io::Result<Notes> {
        crate::private::folder(&self.folder)?;
        let path = self.folder.join(super::replace::random_name());
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        let file = crate::private::file(&options, &path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Notes {
            file,
            path,
            live: 0,
        })
    }

    /// Releases the lock and leaves the record, as a kill would.
    #[cfg(test)]
    pub(super) fn abandon(self) {
        let mut notes = self.notes.lock().unwrap();
        notes.take();
    }

    fn forget(&self) {
        let mut notes = self
            .notes
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(notes) = notes.as_mut() {
            notes.live = notes.live.saturating_sub(1);
            if notes.live == 0 {
                // No write is in progress, so the listed files no longer matter.
                let _ = notes.file.set_len(0).and_then(|()| notes.file.rewind());
            }
        }
    }
}

impl Drop for Litter {
    #[expect(
        clippy::disallowed_methods,
        reason = "haft's own records, not files of a session"
    )]
    fn drop(&mut self) {
        let notes = self
            .notes
            .get_mut()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(notes) = notes.take() {
            let _ = std::fs::remove_file(&notes.path);
        }
    }
}

/// A temporary file that is recorded as long as this value exists.
#[derive(Debug)]
pub(super) struct Noted<'a> {
    litter: &'a Litter,
}

impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.litter.forget();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "haft's own records, and the temporary files they list"
)]
fn sweep_notes(path: &Path) -> io::Result<usize> {
    // Must not block, follow links, or open files of other users.
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let stat = file.metadata()?;
    if !stat.is_file()
        || stat.uid() != rustix::process::geteuid().as_raw()
        || stat.len() > MAX_NOTES
    {
        return Ok(0);
    }
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(0);
    }
    let mut listed = Vec::new();
    file.read_to_end(&mut listed)?;
    let mut removed = 0;
    for line in listed
        .split(|byte| *byte == 0)
        .filter(|line| !line.is_empty())
    {
        let temporary = PathBuf::from(std::ffi::OsString::from_vec(line.to_vec()));
        if temporary
            .file_name()
            .is_some_and(|name| is_temporary(name.as_bytes()))
            && std::fs::remove_file(&temporary).is_ok()
        {
            removed += 1;
        }
    }
    std::fs::remove_file(path)?;
    Ok(removed)
}
