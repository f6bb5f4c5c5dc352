//! A whole output on the disk, bounded. Past the bound its beginning stays in
//! the file and its end goes round in a second one without a name; when the
//! output is over the two become one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The most that is kept of the end of an output that is too long. It is written
/// over and over while the output goes on, so it should stay in the page cache.
const END: u64 = 8 << 20;

/// Writes an output.
pub(super) struct Writer {
    path: PathBuf,
    log: Arc<Log>,
    trouble: Option<String>,
}

/// What became of it.
pub(super) struct Kept {
    pub(super) path: Option<PathBuf>,
    pub(super) omitted: u64,
    pub(super) trouble: Option<String>,
}

/// An output on the disk, which can be read while it is written.
#[derive(Debug)]
pub struct Log {
    file: File,
    round: OnceLock<File>,
    /// How many bytes the file takes.
    head_max: u64,
    /// How many bytes go round.
    round_max: u64,
    sizes: Mutex<Sizes>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sizes {
    head: u64,
    /// Everything that went into the second file.
    round: u64,
    /// Everything.
    total: u64,
    /// Newlines in it.
    newlines: u64,
    /// Whether something stands behind the last one.
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
    /// The last bytes of the output, at most `max` of them.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn tail(&self, max: usize) -> io::Result<Vec<u8>> {
        // Held while reading, so that the end does not go round meanwhile.
        let sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        let held = sizes.round.min(self.round_max);
        let want = max as u64;
        let late = want.min(held);
        // What lies between the two was dropped: nothing is shown as one piece
        // that was not.
        let early = if sizes.round > held {
            0
        } else {
            (want - late).min(sizes.head)
        };
        let mut bytes = vec![0; usize::try_from(early + late).unwrap_or(0)];
        let (first, second) = bytes.split_at_mut(usize::try_from(early).unwrap_or(0));
        self.file.read_exact_at(first, sizes.head - early)?;
        if let Some(round) = self.round.get() {
            around(sizes.round - late, late, self.round_max, |at, from, to| {
                round.read_exact_at(second.get_mut(from..to).unwrap_or_default(), at)
            })?;
        }
        Ok(bytes)
    }

    /// The output from a place on, at most `max` bytes, and where they begin: later
    /// than asked where what was there is not kept any more.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn from(&self, place: u64, max: usize) -> io::Result<(u64, Vec<u8>)> {
        let sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        let max = max as u64;
        if place < sizes.head {
            let length = max.min(sizes.head - place);
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
            self.file.read_exact_at(&mut bytes, place)?;
            return Ok((place, bytes));
        }
        let held = sizes.round.min(self.round_max);
        let place = place.max(sizes.total - held).min(sizes.total);
        let length = max.min(sizes.total - place);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        if let Some(round) = self.round.get() {
            let begin = sizes.round - (sizes.total - place);
            around(begin, length, self.round_max, |at, from, to| {
                round.read_exact_at(bytes.get_mut(from..to).unwrap_or_default(), at)
            })?;
        }
        Ok((place, bytes))
    }

    /// How long the output is by now.
    #[must_use]
    pub fn len(&self) -> u64 {
        let sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        sizes.total
    }

    /// How many lines it has by now.
    #[must_use]
    pub fn lines(&self) -> u64 {
        let sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        sizes.newlines + u64::from(sizes.open)
    }

    /// Whether there is none yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Writer {
    /// Makes the file, and the folder it is in.
    pub(super) fn create(path: PathBuf, max: u64) -> Result<Self, String> {
        let round_max = END.min(max / 4).max(1);
        match open(&path) {
            Ok(file) => Ok(Self {
                log: Arc::new(Log {
                    file,
                    round: OnceLock::new(),
                    // Together they are what was promised. While the one becomes the
                    // end of the other, the end is there twice.
                    head_max: max.saturating_sub(round_max),
                    round_max,
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

    /// Writes more, until the first failure: after it the counts go on and the
    /// disk is left alone.
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
        let round = match log.round.get() {
            Some(round) => round,
            None => {
                let file = nameless(&self.path)?;
                log.round.get_or_init(|| file)
            }
        };
        let skip = rest
            .len()
            .saturating_sub(usize::try_from(log.round_max).unwrap_or(usize::MAX));
        let last = rest.get(skip..).unwrap_or_default();
        let begin = sizes.round + skip as u64;
        around(begin, last.len() as u64, log.round_max, |at, from, to| {
            round.write_all_at(last.get(from..to).unwrap_or_default(), at)
        })?;
        sizes.round += rest.len() as u64;
        sizes.count(rest);
        Ok(())
    }

    /// Puts the end behind the beginning.
    pub(super) fn finish(mut self) -> Kept {
        let mut omitted = 0;
        if self.trouble.is_none() {
            match self.join() {
                Ok(dropped) => omitted = dropped,
                Err(error) => self.trouble = Some(trouble(&self.path, &error)),
            }
        }
        // Half an output is no whole one, but it is what there is.
        Kept {
            path: Some(self.path),
            omitted,
            trouble: self.trouble,
        }
    }

    fn join(&self) -> io::Result<u64> {
        let log = &*self.log;
        let mut sizes = log.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(round) = log.round.get() else {
            return Ok(0);
        };
        let held = sizes.round.min(log.round_max);
        let omitted = sizes.round - held;
        if omitted > 0 {
            let note =
                format!("\n[{omitted} bytes omitted: the limit for kept outputs was reached]\n");
            log.file.write_all_at(note.as_bytes(), sizes.head)?;
            sizes.head += note.len() as u64;
        }
        let mut buffer = vec![0; 256 << 10];
        let mut done = 0;
        while done < held {
            let part = (held - done).min(buffer.len() as u64);
            let from = omitted + done;
            around(from, part, log.round_max, |at, from, to| {
                round.read_exact_at(buffer.get_mut(from..to).unwrap_or_default(), at)
            })?;
            let part_length = usize::try_from(part).unwrap_or(0);
            log.file
                .write_all_at(buffer.get(..part_length).unwrap_or_default(), sizes.head)?;
            sizes.head += part;
            done += part;
        }
        sizes.round = 0;
        Ok(omitted)
    }
}

/// Walks `length` bytes from `begin` on in a file that goes round after `max`:
/// where in the file, and from where to where in the bytes.
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
        action: "keep the output in",
        path: path.to_string_lossy().into_owned(),
        source: io::Error::new(error.kind(), error.to_string()),
    }
    .to_string()
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        crate::private::made(folder)?;
    }
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(true);
    crate::private::file(&options, path)
}

/// A file beside `path` that is gone when it is closed.
#[expect(
    clippy::disallowed_methods,
    reason = "outputs lie in haft's own folder, outside every scope"
)]
fn nameless(path: &Path) -> io::Result<File> {
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
    #[expect(clippy::disallowed_methods, reason = "looks at what was written")]
    fn beginning_and_end_stay_when_the_middle_is_too_much() {
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
                assert!(file.len() < 1100, "the note of what is missing, no more");
            }
            let names: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
            assert_eq!(names.len(), 1, "nothing else is left");
        }
    }

    #[test]
    fn a_full_disk_is_told() {
        let mut writer = Writer::create("/dev/full".into(), 1000).unwrap();
        writer.write(b"abc");
        let trouble = writer.finish().trouble.unwrap();
        assert_eq!(
            trouble,
            "cannot keep the output in /dev/full: no space left on device"
        );
    }
}
