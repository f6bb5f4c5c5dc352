//! A complete output on disk, with a maximum size. Beyond that size the start stays in the
//! file, and the end goes to a second, unnamed file that is used as a ring buffer. When the
//! output ends, the two are joined.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Maximum number of bytes kept from the end of an output that is too long. They are
/// overwritten repeatedly, so they should fit in the page cache.
const END: u64 = 8 << 20;

/// Writes an output to disk.
pub(super) struct Writer {
    path: PathBuf,
    log: Arc<Log>,
    trouble: Option<String>,
}

/// Result of writing an output.
pub(super) struct WrittenOutput {
    pub(super) path: Option<PathBuf>,
    pub(super) omitted: u64,
    pub(super) trouble: Option<String>,
}

/// An output on disk, which can be read while it is written.
#[derive(Debug)]
pub struct Log {
    file: File,
    ring: OnceLock<File>,
    /// Maximum number of bytes in the file.
    head_max: u64,
    /// Size of the ring buffer in bytes.
    ring_max: u64,
    sizes: Mutex<Sizes>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sizes {
    head: u64,
    /// Total number of bytes written to the ring buffer.
    ring: u64,
    /// Total number of bytes.
    total: u64,
    /// Total number of newlines.
    newlines: u64,
    /// Whether the last line has no newline yet.
    open: bool,
}

impl Sizes {
    fn count(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.newlines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        if let Some(last) = bytes.last() {
            self.open = *last != b'\n';
        }
    }
}

impl Log {
    /// Returns the last bytes of the output, at most `max`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn tail(&self, max: usize) -> io::Result<Vec<u8>> {
        // Locked while reading, so that the ring buffer is not overwritten.
        let sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = sizes.ring.min(self.ring_max);
        let want = max as u64;
        let late = want.min(stored);
        // The bytes in between were dropped. The two parts must not appear to be adjacent.
        let early = if sizes.ring > stored {
            0
        } else {
            (want - late).min(sizes.head)
        };
        let mut bytes = vec![0; usize::try_from(early + late).unwrap_or(0)];
        let (first, second) = bytes.split_at_mut(usize::try_from(early).unwrap_or(0));
        self.file.read_exact_at(first, sizes.head - early)?;
        if let Some(ring) = self.ring.get() {
            around(sizes.ring - late, late, self.ring_max, |at, from, to| {
                ring.read_exact_at(second.get_mut(from..to).unwrap_or_default(), at)
            })?;
        }
        Ok(bytes)
    }

    /// Returns at most `max` bytes starting at `place`, and the offset of the first one. It
    /// is larger than `place` if the bytes there are no longer stored.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn from(&self, place: u64, max: usize) -> io::Result<(u64, Vec<u8>)> {
        let sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        let max = max as u64;
        if place < sizes.head {
            let length = max.min(sizes.head - place);
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
            self.file.read_exact_at(&mut bytes, place)?;
            return Ok((place, bytes));
        }
        let stored = sizes.ring.min(self.ring_max);
        let place = place.max(sizes.total - stored).min(sizes.total);
        let length = max.min(sizes.total - place);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        if let Some(ring) = self.ring.get() {
            let begin = sizes.ring - (sizes.total - place);
            around(begin, length, self.ring_max, |at, from, to| {
                ring.read_exact_at(bytes.get_mut(from..to).unwrap_or_default(), at)
            })?;
        }
        Ok((place, bytes))
    }

    /// Returns the current length of the output in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        let sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        sizes.total
    }

    /// Returns the current number of lines.
    #[must_use]
    pub fn lines(&self) -> u64 {
        let sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        sizes.newlines + u64::from(sizes.open)
    }

    /// Whether there is no output yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Writer {
    /// Creates the file and its folder.
    pub(super) fn create(path: PathBuf, max: u64) -> Result<Self, String> {
        let ring_max = END.min(max / 4).max(1);
        match open(&path) {
            Ok(file) => Ok(Self {
                log: Arc::new(Log {
                    file,
                    ring: OnceLock::new(),
                    // Together they have the promised size. While the ring buffer is
                    // appended to the file, its content exists twice.
                    head_max: max.saturating_sub(ring_max),
                    ring_max,
                    sizes: Mutex::default(),
                }),
                path,
                trouble: None,
            }),
            Err(error) => Err(trouble(&path, &error)),
        }
    }

    pub(super) fn log(&self) -> Arc<Log> {
        Arc::clone(&self.log)
    }

    /// Writes more bytes. After the first failure it only counts them.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.trouble.is_some() {
            return;
        }
        if let Err(error) = self.put(bytes) {
            self.trouble = Some(trouble(&self.path, &error));
        }
    }

    fn put(&self, bytes: &[u8]) -> io::Result<()> {
        let log = &*self.log;
        let mut sizes = log.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        let room = usize::try_from(log.head_max - sizes.head).unwrap_or(usize::MAX);
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        log.file.write_all_at(first, sizes.head)?;
        sizes.head += first.len() as u64;
        sizes.count(first);
        if rest.is_empty() {
            return Ok(());
        }
        let ring = match log.ring.get() {
            Some(ring) => ring,
            None => {
                let file = create_unnamed(&self.path)?;
                log.ring.get_or_init(|| file)
            }
        };
        let skip = rest
            .len()
            .saturating_sub(usize::try_from(log.ring_max).unwrap_or(usize::MAX));
        let last = rest.get(skip..).unwrap_or_default();
        let begin = sizes.ring + skip as u64;
        around(begin, last.len() as u64, log.ring_max, |at, from, to| {
            ring.write_all_at(last.get(from..to).unwrap_or_default(), at)
        })?;
        sizes.ring += rest.len() as u64;
        sizes.count(rest);
        Ok(())
    }

    /// Appends the end to the start.
    pub(super) fn finish(mut self) -> WrittenOutput {
        let mut omitted = 0;
        if self.trouble.is_none() {
            match self.join() {
                Ok(dropped) => omitted = dropped,
                Err(error) => self.trouble = Some(trouble(&self.path, &error)),
            }
        }
        // A partial output is better than none.
        WrittenOutput {
            path: Some(self.path),
            omitted,
            trouble: self.trouble,
        }
    }

    fn join(&self) -> io::Result<u64> {
        let log = &*self.log;
        let mut sizes = log.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(ring) = log.ring.get() else {
            return Ok(0);
        };
        let stored = sizes.ring.min(log.ring_max);
        let omitted = sizes.ring - stored;
        if omitted > 0 {
            let note =
                format!("\n[{omitted} bytes omitted: the limit for kept outputs was reached]\n");
            log.file.write_all_at(note.as_bytes(), sizes.head)?;
            sizes.head += note.len() as u64;
        }
        let mut buffer = vec![0; 256 << 10];
        let mut done = 0;
        while done < stored {
            let part = (stored - done).min(buffer.len() as u64);
            let from = omitted + done;
            around(from, part, log.ring_max, |at, from, to| {
                ring.read_exact_at(buffer.get_mut(from..to).unwrap_or_default(), at)
            })?;
            let part_length = usize::try_from(part).unwrap_or(0);
            log.file
                .write_all_at(buffer.get(..part_length).unwrap_or_default(), sizes.head)?;
            sizes.head += part;
            done += part;
        }
        sizes.ring = 0;
        Ok(omitted)
    }
}

/// Calls `act` for the pieces of a range in a ring buffer of size `max`: with the offset in
/// the file, and the range of the bytes.
fn around(
    begin: u64,
    length: u64,
    max: u64,
    mut step: impl FnMut(u64, usize, usize) -> io::Result<()>,
) -> io::Result<()> {
    let mut done = 0;
    while done < length {
        let at = (begin + done) % max;
        let part = (length - done).min(max - at);
        let from = usize::try_from(done).unwrap_or(usize::MAX);
        step(at, from, from + usize::try_from(part).unwrap_or(0))?;
        done += part;
    }
    Ok(())
}

fn trouble(path: &Path, error: &io::Error) -> String {
    crate::Error::Io {
        action: "store the output in",
        path: path.to_string_lossy().into_owned(),
        source: io::Error::new(error.kind(), error.to_string()),
    }
    .to_string()
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        crate::private::create_missing(folder)?;
    }
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(true);
    crate::private::file(&options, path)
}

/// Creates an unnamed file next to `path`, which disappears when it is closed.
#[expect(
    clippy::disallowed_methods,
    reason = "outputs lie in haft's own folder, outside every scope"
)]
fn create_unnamed(path: &Path) -> io::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".end");
    let file = open(Path::new(&name))?;
    std::fs::remove_file(&name)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(count: usize) -> Vec<u8> {
        (0..count)
            .flat_map(|n| format!("{n}\n").into_bytes())
            .collect()
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "checks the written file")]
    fn the_start_and_the_end_are_kept_if_the_output_is_too_long() {
        let folder = tempfile::tempdir().unwrap();
        for (lines, chunk) in [(10, 3), (200, 7), (300, 1000), (5_000, 13), (5_000, 9_999)] {
            let path = folder.path().join("deep/output");
            let mut writer = Writer::create(path.clone(), 1000).unwrap();
            let whole = numbered(lines);
            for part in whole.chunks(chunk) {
                writer.write(part);
                let log = writer.log();
                let tail = log.tail(100).unwrap();
                let so_far = usize::try_from(log.len()).unwrap();
                assert!(tail.len() >= 100.min(so_far), "{lines} {chunk}");
                assert!(whole[..so_far].ends_with(&tail), "{lines} {chunk}");
            }
            let kept = writer.finish();
            let file = std::fs::read(kept.path.unwrap()).unwrap();
            assert_eq!(kept.trouble, None);
            if whole.len() <= 1000 {
                assert_eq!((&file, kept.omitted), (&whole, 0));
            } else {
                assert!(file.starts_with(&whole[..750]), "{lines} {chunk}");
                assert!(
                    file.ends_with(&whole[whole.len() - 250..]),
                    "{lines} {chunk}"
                );
                assert_eq!(kept.omitted, whole.len() as u64 - 1000);
                assert!(file.len() < 1100, "only the note about missing bytes");
            }
            let names: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
            assert_eq!(names.len(), 1, "no other file is left");
        }
    }

    #[test]
    fn a_full_disk_is_reported() {
        let mut writer = Writer::create("/dev/full".into(), 1000).unwrap();
        writer.write(b"abc");
        let trouble = writer.finish().trouble.unwrap();
        assert_eq!(
            trouble,
            "cannot store the output in /dev/full: no space left on device"
        );
    }
}
