//! The log beside a database (`-wal`). SQLite takes a log whose header is damaged or cut
//! off for an empty one, and takes one with a damaged page to end there; then it writes over the rest.
//! What was committed last would be gone without a word, so the log is looked at first.
//!
//! A log that just ends in the middle of a page, or of a transaction, is what a crash
//! leaves behind, and is fine. It is damaged if something committed stands behind the
//! first page that SQLite would not take.
//!
//! Reading the log as a plain file is harmless: SQLite's locks are on the database and on
//! its `-shm` file, never on this one.

use super::make::beside;
use crate::problem::Problem;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, openat, statat};
use rustix::io::{Errno, pread, read};
use std::path::Path;
use std::time::Duration;

/// The header of the log, and of each page in it, in bytes.
const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The first four bytes. The last bit says in which order checksums read the bytes.
const MAGIC: u32 = 0x377f_0682;
/// The only version of the format there is.
const VERSION: u32 = 3_007_000;

/// Every connection to a database with a log holds a lock on this byte of its `-shm` file.
const IN_USE: &str = "128";
/// No list of locks that is read is longer.
const MOST_LOCKS: usize = 4 << 20;

/// Another process may be writing the log anew: how often it is looked at, and how
/// long one waits in between.
const LOOKS: usize = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// Refuses a database whose log cannot be read.
pub(super) fn check(database: &Path) -> Result<(), Problem> {
    let path = beside(database, "-wal");
    for look in 0..LOOKS {
        if look > 0 {
            std::thread::sleep(PAUSE);
        }
        match is_fine(&path, database) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(errno) => return Err(Problem::io(&errno.into())),
        }
    }
    let log = path.file_name().unwrap_or(path.as_os_str());
    Err(Problem::DamagedLog {
        log: log.to_string_lossy().into_owned(),
    })
}

fn is_fine(path: &Path, database: &Path) -> Result<bool, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match openat(CWD, path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(true),
        Err(errno) => return Err(errno),
    };
    // An empty one is what is left when all of it has been taken into the database.
    let mut header = [0; HEADER];
    if fstat(&file)?.st_size == 0 {
        return Ok(true);
    }
    // The header is written at once: only one that was cut off has less.
    if !fill(&file, &mut header, 0)? {
        return Ok(fstat(&file)?.st_size == 0);
    }
    let Some(log) = Log::new(&header) else {
        return Ok(false);
    };
    // Who has it open knows what is in it, and nobody else reads it from its beginning.
    Ok(is_in_use(database) || !log.has_lost(&file)?)
}

/// Reads all of `buffer`, unless the file ends before that.
fn fill(file: &OwnedFd, buffer: &mut [u8], at: u64) -> Result<bool, Errno> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match pread(file, rest, at + done as u64) {
            Ok(0) => return Ok(false),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(true)
}

/// Whether a connection to the database is open, in whichever process. The list of locks
/// is read for it: to ask for a lock, the file would have to be opened, and closing it
/// would drop the locks of this process.
fn is_in_use(database: &Path) -> bool {
    let shared = beside(database, "-shm");
    let Ok(stat) = statat(CWD, &shared, AtFlags::SYMLINK_NOFOLLOW) else {
        return false;
    };
    let inode = format!(":{}", stat.st_ino);
    let locks = locks().unwrap_or_default();
    String::from_utf8_lossy(&locks).lines().any(|line| {
        // 1: POSIX  ADVISORY  READ 4711 fd:01:1234 128 128
        let mut words = line.split_ascii_whitespace().rev();
        let (last, first, place) = (words.next(), words.next(), words.next());
        (first, last) == (Some(IN_USE), Some(IN_USE))
            && place.is_some_and(|place| place.ends_with(&inode))
    })
}

fn locks() -> Result<Vec<u8>, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = openat(CWD, "/proc/locks", flags, Mode::empty())?;
    let mut all = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    while all.len() < MOST_LOCKS {
        match read(&file, &mut buffer) {
            Ok(0) => break,
            Ok(count) => all.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(all)
}

/// A log whose header SQLite takes.
struct Log {
    is_big: bool,
    page: usize,
    /// Each page that belongs to this log has them, too.
    salts: [u8; 8],
    /// The checksum so far, which those of the pages go on from.
    sum: (u32, u32),
}

impl Log {
    fn new(header: &[u8; HEADER]) -> Option<Self> {
        let size = field(header, 8);
        let page = usize::try_from(size).ok()?;
        let mut log = Self {
            is_big: field(header, 0) & 1 == 1,
            page,
            salts: header.get(16..24)?.try_into().ok()?,
            sum: (0, 0),
        };
        log.sum = log.summed(log.sum, header.get(..24)?);
        let is_whole = field(header, 0) & !1 == MAGIC
            && field(header, 4) == VERSION
            && size.is_power_of_two()
            && (512..=65_536).contains(&size)
            && log.sum == (field(header, 24), field(header, 28));
        is_whole.then_some(log)
    }

    /// Whether something committed stands behind a page that SQLite would not take.
    fn has_lost(&self, file: &OwnedFd) -> Result<bool, Errno> {
        let mut frame = vec![0; FRAME_HEADER + self.page];
        let mut at = HEADER as u64;
        let mut sum = self.sum;
        let mut is_broken = false;
        while fill(file, &mut frame, at)? {
            let belongs = frame.get(8..16) == Some(&self.salts[..]);
            let is_commit = field(&frame, 4) != 0;
            if is_broken {
                if belongs && is_commit {
                    return Ok(true);
                }
            } else {
                sum = self.summed(sum, frame.get(..8).unwrap_or_default());
                sum = self.summed(sum, frame.get(FRAME_HEADER..).unwrap_or_default());
                let is_whole = sum == (field(&frame, 16), field(&frame, 20));
                is_broken = !(belongs && is_whole && field(&frame, 0) != 0);
            }
            at += frame.len() as u64;
        }
        Ok(false)
    }

    fn summed(&self, (mut first, mut second): (u32, u32), bytes: &[u8]) -> (u32, u32) {
        let word = |bytes: [u8; 4]| match self.is_big {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        };
        for eight in bytes.chunks_exact(8) {
            if let &[a, b, c, d, e, f, g, h] = eight {
                first = first.wrapping_add(word([a, b, c, d])).wrapping_add(second);
                second = second.wrapping_add(word([e, f, g, h])).wrapping_add(first);
            }
        }
        (first, second)
    }
}

/// A number in a header.
fn field(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    u32::from_be_bytes(four.unwrap_or([0; 4]))
}
