//! A place on the disk for the layers of one session at a time.
//!
//! ```text
//! STATE/caches/WORK_FOLDER/0/in-use           who uses it, and since which start of the machine
//!                           /size             size, and when it was measured
//!                           /plain/VARIABLE/  caches where there is no layer
//!                           /empty/           shown below a layer over nothing
//!                           /NAME-HASH/upper, work
//! ```

use super::disk::{self, Size};
use crate::executor::sandbox::LayerSource;
use crate::private::{self, FolderLock};
use rustix::fs::stat;
use sha2::{Digest, Sha256};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Maximum number of sessions with caches in a work folder at a time.
const SLOTS: usize = 16;

/// Maximum wait for the commands of a haft that was killed to end.
const DYING: Duration = Duration::from_millis(1500);
const PAUSE: Duration = Duration::from_millis(10);

/// Age at which a size is measured again.
const MEASURED_LATELY: Duration = Duration::from_secs(15 * 60);

/// Maximum time for measuring at the end of a session.
const BRIEFLY: Duration = Duration::from_millis(700);

/// A leased slot.
#[derive(Debug)]
pub(super) struct Slot {
    folder: PathBuf,
    lock: FolderLock,
    /// Keeps the folder of all slots.
    _all: FolderLock,
    /// Whether the slot has become too large.
    is_full: Arc<AtomicBool>,
    /// Time of the last measurement, in seconds since 1970.
    measured: Arc<AtomicU64>,
}

impl Slot {
    /// Leases the first free slot in the folder of a work folder.
    pub(super) fn lease(all: &Path, kind: &str, max: u64) -> io::Result<Self> {
        let held = FolderLock::new(all)?;
        super::super::tidy::tidy(all);
        for number in 0..SLOTS {
            let folder = all.join(format!("{kind}{number}"));
            private::folder(&folder)?;
            let Some(lock) = lock(&folder) else {
                continue;
            };
            let slot = Self {
                measured: Arc::new(AtomicU64::new(read_size(&folder).1)),
                folder,
                lock,
                _all: held,
                is_full: Arc::default(),
            };
            slot.prepare(all, max)?;
            return Ok(slot);
        }
        let reason = format!("{SLOTS} other sessions use the caches of this work folder");
        Err(io::Error::other(reason))
    }

    /// Empties the slot if it is too large, or if the machine stopped while it was in use:
    /// nothing in it was synced.
    fn prepare(&self, all: &Path, max: u64) -> io::Result<()> {
        let now = boot_id();
        let before = read(&self.folder.join("in-use"));
        let before = before.as_deref().and_then(|text| text.split(' ').next());
        let own = read_size(&self.folder).0;
        let mut total = own;
        for other in slots(all).into_iter().filter(|other| *other != self.folder) {
            let size = read_size(&other).0;
            total = total.saturating_add(size);
            if total > max
                && size > 0
                && let Some(_lock) = FolderLock::try_exclusive(&other)
            {
                empty(&other);
                total = total.saturating_sub(size);
            }
        }
        if before.is_some_and(|before| before != now) || own > max || total > max {
            if own > max || total > max {
                tracing::warn!(
                    target: "haft",
                    "the caches of this work folder were emptied, because they had become larger than tools.caches.max"
                );
            }
            empty(&self.folder);
            self.measured.store(0, Ordering::Relaxed);
        }
        write(
            &self.folder.join("in-use"),
            &format!("{now} {}", std::process::id()),
        )
    }

    /// Returns a copy of the lock, for everything that uses the layers.
    pub(super) fn handle(&self) -> io::Result<OwnedFd> {
        self.lock.handle()
    }

    /// Prepares the layer over a folder.
    pub(super) fn source(&self, path: &Path, lower: Option<&Path>) -> io::Result<LayerSource> {
        let folder = self.folder.join(name_for(path));
        let (upper, work) = (folder.join("upper"), folder.join("work"));
        private::folder(&folder)?;
        // The kernel refuses one that was in use when haft was killed.
        disk::remove(&work);
        private::folder(&work)?;
        let empty = self.folder.join("empty");
        private::folder(&empty)?;
        if stat(&upper).is_err() {
            // Private like everything that haft keeps, whatever the mode of the real folder.
            private::folder(&upper)?;
        }
        Ok(LayerSource {
            lower: lower.map_or(empty, Path::to_owned),
            upper,
            work,
        })
    }

    /// Returns the folder for caches without a layer.
    pub(super) fn plain(&self) -> io::Result<PathBuf> {
        let plain = self.folder.join("plain");
        private::folder(&plain)?;
        Ok(plain)
    }

    /// Whether the slot should not be used any longer.
    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Measures the slot in the background, if that was not done lately.
    pub(super) fn check_size(&self, max: u64) {
        if self.is_measured() {
            return;
        }
        self.measured.store(seconds(), Ordering::Relaxed);
        let (folder, is_full) = (self.folder.clone(), Arc::clone(&self.is_full));
        // Nothing waits for the thread, not even the end of the process.
        let measure = move || {
            let size = disk::size(&folder, Duration::MAX / 4);
            write_size(&folder, size);
            is_full.store(size.bytes > max, Ordering::Relaxed);
        };
        let _ = std::thread::Builder::new().spawn(measure);
    }

    /// Measures the slot now, if the result on the disk is old.
    pub(super) fn measure_briefly(&self) {
        let (_, measured) = read_size(&self.folder);
        if seconds().saturating_sub(measured) > MEASURED_LATELY.as_secs() {
            write_size(&self.folder, disk::size(&self.folder, BRIEFLY));
        }
    }

    fn is_measured(&self) -> bool {
        let measured = self.measured.load(Ordering::Relaxed);
        seconds().saturating_sub(measured) <= MEASURED_LATELY.as_secs()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let _ = rustix::fs::unlink(self.folder.join("in-use"));
    }
}

/// Returns the size of the layers of one or more work folders.
#[must_use]
pub fn kept(folder: &Path) -> Size {
    disk::size(folder, Duration::from_secs(5))
}

/// Removes the layers of all work folders, except those in use. Returns what is left.
pub fn clean(all: &Path) -> Size {
    for folder in slots(all) {
        match FolderLock::try_exclusive(&folder) {
            Some(_lock) => disk::remove(&folder),
            None => {
                for slot in slots(&folder) {
                    if let Some(_lock) = FolderLock::try_exclusive(&slot) {
                        disk::remove(&slot);
                    }
                }
            }
        }
    }
    kept(all)
}

/// Locks a slot, unless another session uses it.
fn lock(folder: &Path) -> Option<FolderLock> {
    let locked = FolderLock::try_exclusive(folder);
    if locked.is_some() || !is_dying(folder) {
        return locked;
    }
    let until = std::time::Instant::now() + DYING;
    while std::time::Instant::now() < until {
        std::thread::sleep(PAUSE);
        if let Some(lock) = FolderLock::try_exclusive(folder) {
            return Some(lock);
        }
    }
    None
}

/// Whether the haft that leased a slot is gone, so that only its commands still end.
fn is_dying(folder: &Path) -> bool {
    match read(&folder.join("in-use")) {
        Some(text) => {
            let pid = text.split(' ').nth(1).unwrap_or_default();
            stat(Path::new("/proc").join(pid)).is_err()
        }
        // It has ended by itself.
        None => true,
    }
}

fn slots(folder: &Path) -> Vec<PathBuf> {
    crate::executor::sandbox::entries(folder)
        .into_iter()
        .filter(|entry| crate::scope::is_folder(entry))
        .collect()
}

fn empty(slot: &Path) {
    for entry in crate::executor::sandbox::entries(slot) {
        match crate::scope::is_folder(&entry) {
            true => disk::remove(&entry),
            false => _ = rustix::fs::unlink(&entry),
        }
    }
}

/// Returns a name for the layer over a path: its last part, and a hash of all of it.
fn name_for(path: &Path) -> PathBuf {
    let hash = Sha256::digest(path.as_os_str().as_bytes());
    let hash: String = hash
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    if name.len() > 100 {
        name.clear();
    }
    name.push(format!("-{hash}"));
    PathBuf::from(name)
}

fn read_size(slot: &Path) -> (u64, u64) {
    let text = read(&slot.join("size")).unwrap_or_default();
    let mut numbers = text.split(' ').map(|word| word.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn write_size(slot: &Path, size: Size) {
    let _ = write(&slot.join("size"), &format!("{} {}", size.bytes, seconds()));
}

fn seconds() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

fn boot_id() -> String {
    let id = read(Path::new("/proc/sys/kernel/random/boot_id"));
    id.unwrap_or_default().trim().to_owned()
}

#[expect(clippy::disallowed_methods, reason = "haft's own files")]
fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    let mut options = std::fs::OpenOptions::new();
    let mut file = private::file(options.write(true).create(true).truncate(true), path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests look at the disk themselves"
)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_used_by_one_session_at_a_time_and_kept() {
        let all = tempfile::tempdir().unwrap();
        let all = all.path().join("one");
        let first = Slot::lease(&all, "", 1 << 30).unwrap();
        let second = Slot::lease(&all, "", 1 << 30).unwrap();
        assert_ne!(first.folder, second.folder);
        let source = first.source(Path::new("/home/.cache"), None).unwrap();
        std::fs::write(source.upper.join("file"), "x").unwrap();
        let folder = first.folder.clone();
        drop(first);
        let again = Slot::lease(&all, "", 1 << 30).unwrap();
        assert_eq!(again.folder, folder);
        assert!(source.upper.join("file").exists());
        // Its copies keep the lock.
        let copy = again.handle().unwrap();
        drop(again);
        assert!(FolderLock::try_exclusive(&folder).is_none());
        drop(copy);
        assert!(FolderLock::try_exclusive(&folder).is_some());
    }

    #[test]
    fn a_slot_is_emptied_if_it_is_too_large_or_the_machine_stopped() {
        let all = tempfile::tempdir().unwrap();
        let all = all.path().join("one");
        let fill = |size: usize| {
            let slot = Slot::lease(&all, "", 100_000).unwrap();
            let source = slot.source(Path::new("/home/.cache"), None).unwrap();
            let file = source.upper.join("file");
            let was_there = file.exists();
            std::fs::write(file, vec![1; size]).unwrap();
            write_size(&slot.folder, disk::size(&slot.folder, BRIEFLY));
            (was_there, slot.folder.clone())
        };
        assert!(!fill(10).0);
        assert!(fill(200_000).0);
        let (was_there, folder) = fill(10);
        assert!(!was_there);
        write(&folder.join("in-use"), "another-boot 1").unwrap();
        assert!(!fill(10).0);
    }

    #[test]
    fn cleaning_spares_what_is_in_use() {
        let all = tempfile::tempdir().unwrap();
        let used = Slot::lease(&all.path().join("one"), "", 1 << 30).unwrap();
        drop(Slot::lease(&all.path().join("two"), "", 1 << 30).unwrap());
        drop(Slot::lease(&all.path().join("one"), "strict-", 1 << 30).unwrap());
        clean(all.path());
        assert!(used.folder.exists());
        assert!(!all.path().join("two").exists());
        assert!(!all.path().join("one/strict-0").exists());
        drop(used);
        clean(all.path());
        assert!(slots(all.path()).is_empty());
    }
}
