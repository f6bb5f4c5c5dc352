//! The space that a session uses.

use super::library::{ends, names, numbers, remove_file, remove_tree, set_path, write_file};
use super::record::Record;
use super::session::Session;
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that a session uses and will use.
#[derive(Debug, Default)]
pub(super) struct Space(Mutex<Used>);

#[derive(Debug, Default)]
struct Used {
    /// Bytes on disk, once they were counted.
    on_disk: Option<u64>,
    /// Bytes that the ends of open sets will need.
    promised: u64,
}

impl Space {
    /// Counts bytes that are about to be kept. If that exceeds the limit, the oldest sets go.
    /// Returns `false` if the limit is reached even so.
    pub(super) fn reserve(&self, session: &Session, bytes: u64, most: u64) -> io::Result<bool> {
        self.reserve_with_end(session, bytes, 0, most)
    }

    /// Like `reserve`, and counts `end` bytes that the end of a set will need, until they are
    /// released.
    pub(super) fn reserve_with_end(
        &self,
        session: &Session,
        bytes: u64,
        end: u64,
        most: u64,
    ) -> io::Result<bool> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut on_disk = match used.on_disk {
            Some(on_disk) => on_disk,
            None => usage(session.folder())?,
        };
        let needed = bytes.saturating_add(end).saturating_add(used.promised);
        if on_disk.saturating_add(needed) > most {
            on_disk = evict(session, most.saturating_sub(needed))?;
        }
        let fits = on_disk.saturating_add(needed) <= most;
        if fits {
            on_disk = on_disk.saturating_add(bytes);
            used.promised = used.promised.saturating_add(end);
        }
        used.on_disk = Some(on_disk);
        Ok(fits)
    }

    /// Releases what was promised to a set that has ended; its end counts as used instead.
    pub(super) fn release(&self, promised: u64) {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        used.promised = used.promised.saturating_sub(promised);
        used.on_disk = used.on_disk.map(|bytes| bytes.saturating_add(promised));
    }
}

/// Space of a folder with everything in it.
pub(super) fn usage(folder: &Path) -> io::Result<u64> {
    let mut sum: u64 = 0;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        #[expect(clippy::disallowed_methods, reason = "haft's own folder")]
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                open.push(entry.path());
            } else {
                sum = sum.saturating_add(meta.len().min(meta.blocks().saturating_mul(512)));
            }
        }
    }
    Ok(sum)
}

/// Time between two attempts to take a lock.
const STEP: Duration = Duration::from_millis(5);

/// The lock of a session.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Drop for Lock {
    /// A process that was forked meanwhile has the file open too; closing would not do.
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Takes the lock of a session, waiting for a time. `None`: another process has it.
pub(super) fn lock(session: &Session, patience: Duration) -> io::Result<Option<Lock>> {
    crate::private::folder(session.folder())?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    let file = crate::private::file(&options, &session.folder().join("lock"))?;
    let start = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(Lock(file))),
            Err(_) if start.elapsed() < patience => std::thread::sleep(STEP),
            Err(_) => return Ok(None),
        }
    }
}

/// Removes what the oldest sets keep, until the session uses at most `most` bytes. Returns the
/// bytes it uses.
pub(super) fn evict(session: &Session, most: u64) -> io::Result<u64> {
    let folder = session.folder();
    let mut used = usage(folder)?;
    let Some(_lock) = lock(session, Duration::ZERO)? else {
        return Ok(used);
    };
    for number in numbers(folder)? {
        if used <= most {
            break;
        }
        let path = set_path(session, number);
        let Ok(Some((header, Some(mut finished)))) = ends(&path) else {
            continue;
        };
        if finished.evicted {
            continue;
        }
        finished.evicted = true;
        let mut out = Vec::new();
        Record::Header(header).append(&mut out);
        Record::append_end(finished, &mut out);
        let kept = usage(&session.objects(number))?;
        let length = path.metadata().map_or(0, |meta| meta.len());
        write_file(&path, &out)?;
        remove_tree(&session.objects(number))?;
        used = used
            .saturating_sub(kept.saturating_add(length))
            .saturating_add(out.len() as u64);
    }
    if used > most {
        used = remove_emptied(session, used, most)?;
    }
    Ok(used)
}

/// Removes sets that keep nothing any more, the oldest first. One stays, to say that something is
/// missing.
fn remove_emptied(session: &Session, mut used: u64, most: u64) -> io::Result<u64> {
    let mut last: Option<std::path::PathBuf> = None;
    for number in numbers(session.folder())? {
        let path = set_path(session, number);
        if !matches!(ends(&path), Ok(Some((_, Some(finished)))) if finished.evicted) {
            continue;
        }
        if used <= most {
            break;
        }
        if let Some(older) = last.replace(path) {
            let length = older.metadata().map_or(0, |meta| meta.len());
            remove_file(&older)?;
            used = used.saturating_sub(length);
        }
    }
    Ok(used)
}

/// Whether another process, or a call of this one, writes in a session's folder.
pub(super) fn is_in_use(folder: &Path) -> io::Result<bool> {
    for name in names(folder)? {
        if name != "lock" && !name.ends_with(".set") {
            continue;
        }
        #[expect(clippy::disallowed_methods, reason = "haft's own file")]
        let Ok(file) = File::open(folder.join(name)) else {
            continue;
        };
        if flock(&file, FlockOperation::NonBlockingLockShared).is_err() {
            return Ok(true);
        }
    }
    Ok(false)
}
