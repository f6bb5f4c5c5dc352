//! Temporary files of processes that were killed.
//!
//! Each process that writes keeps one locked file in the litter folder and notes
//! its temporary files there before it makes them. A file whose lock can be had
//! belongs to a process that is gone: what it lists is removed.

use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// How the temporary files of a write are named.
pub(super) const PREFIX: &str = ".haft-";
pub(super) const SUFFIX: &str = ".tmp";

/// More than any process has under way.
const MAX_NOTES: u64 = 4 << 20;

/// Whether a name is one that a write uses for its temporary file.
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    name.strip_prefix(PREFIX.as_bytes())
        .and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()))
        .is_some_and(|middle| middle.len() == 16 && middle.iter().all(u8::is_ascii_hexdigit))
}

/// The folder in which temporary files are noted.
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
    /// Uses `folder`, which is made at the first write.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            notes: Mutex::new(None),
        }
    }

    /// Removes what dead processes left, and says how many files that were.
    #[expect(
        clippy::disallowed_methods,
        reason = "haft's own notes, not files of a session"
    )]
    pub fn sweep(&self) -> usize {
        // Notes in a folder that is not ours could name anything.
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

    /// Notes a temporary file before it is made. It is forgotten on drop.
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

    /// Lets go of the lock and leaves the notes, as a kill would.
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
                // Nothing is under way, so nothing listed matters any more.
                let _ = notes.file.set_len(0).and_then(|()| notes.file.rewind());
            }
        }
    }
}

impl Drop for Litter {
    #[expect(
        clippy::disallowed_methods,
        reason = "haft's own notes, not files of a session"
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

/// A temporary file that is noted as long as this lives.
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
    reason = "haft's own notes, and the temporary files they list"
)]
fn sweep_notes(path: &Path) -> io::Result<usize> {
    // Nothing that waits, nothing that leads elsewhere, nothing of others.
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
