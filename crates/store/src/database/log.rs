//! Checks the log beside a database (`-wal`). SQLite treats a log with a damaged or
//! truncated header as empty, and a log with a damaged page as ending there; then it
//! overwrites the rest. The latest commits would be lost silently, so the log is checked
//! first.
//!
//! A log that ends in the middle of a page or a transaction is the normal result of a
//! crash. It is damaged if committed data follows the first page that SQLite would reject.
//!
//! Reading the log as a plain file is harmless: SQLite holds locks on the database and its
//! `-shm` file, never on the log.

use super::create::with_suffix;
use crate::problem::Problem;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, openat, statat};
use rustix::io::{Errno, pread, read};
use std::path::Path;
use std::time::Duration;

/// Sizes of the header of the log, and of the header of each page in it, in bytes.
const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The first four bytes. The lowest bit is the byte order of checksums.
const MAGIC: u32 = 0x377f_0682;
/// The only version of the format.
const VERSION: u32 = 3_007_000;

/// Every connection to a database with a log holds a lock on this byte of its `-shm` file.
const IN_USE: &str = "128";
/// Maximum number of bytes read from the list of locks.
const MAX_LOCKS: usize = 4 << 20;

/// Number of checks and the pause between them, because another process may be restarting
/// the log.
const CHECKS: usize = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// Fails if the log is damaged.
pub(super) fn check(database: &Path) -> Result<(), Problem> {
    let path = with_suffix(database, "-wal");
    for check in 0..CHECKS {
        if check > 0 {
            std::thread::sleep(PAUSE);
        }
        match is_intact(&path, database) {
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

fn is_intact(path: &Path, database: &Path) -> Result<bool, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match openat(CWD, path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(true),
        Err(errno) => return Err(errno),
    };
    // An empty log was copied into the database completely.
    let mut header = [0; HEADER];
    if fstat(&file)?.st_size == 0 {
        return Ok(true);
    }
    // The header is written in one piece, so a partial one was truncated.
    if !read_exact_at(&file, &mut header, 0)? {
        return Ok(fstat(&file)?.st_size == 0);
    }
    let Some(log) = Log::new(&header) else {
        return Ok(false);
    };
    // A process that has the log open knows its content, and does not read it from the
    // start.
    Ok(is_in_use(database) || !log.has_lost_commits(&file)?)
}

/// Fills `buffer`. Returns whether the file was long enough.
fn read_exact_at(file: &OwnedFd, buffer: &mut [u8], at: u64) -> Result<bool, Errno> {
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

/// Whether any process has a connection to the database. Reads the kernel's list of locks,
/// because testing a lock would require opening the file, and closing it would drop the
/// locks of this process.
fn is_in_use(database: &Path) -> bool {
    let shared = with_suffix(database, "-shm");
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
    while all.len() < MAX_LOCKS {
        match read(&file, &mut buffer) {
            Ok(0) => break,
            Ok(count) => all.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(all)
}

/// A log with a valid header.
struct Log {
    is_big_endian: bool,
    page: usize,
    /// Every page of this log repeats these.
    salts: [u8; 8],
    /// Checksum of the header, from which the checksums of pages continue.
    checksum_so_far: (u32, u32),
}

impl Log {
    fn new(header: &[u8; HEADER]) -> Option<Self> {
        let size = field(header, 8);
        let page = usize::try_from(size).ok()?;
        let mut log = Self {
            is_big_endian: field(header, 0) & 1 == 1,
            page,
            salts: header.get(16..24)?.try_into().ok()?,
            checksum_so_far: (0, 0),
        };
        log.checksum_so_far = log.checksum(log.checksum_so_far, header.get(..24)?);
        let is_valid = field(header, 0) & !1 == MAGIC
            && field(header, 4) == VERSION
            && size.is_power_of_two()
            && (512..=65_536).contains(&size)
            && log.checksum_so_far == (field(header, 24), field(header, 28));
        is_valid.then_some(log)
    }

    /// Whether committed data follows a page that SQLite would reject.
    fn has_lost_commits(&self, file: &OwnedFd) -> Result<bool, Errno> {
        let mut frame = vec![0; FRAME_HEADER + self.page];
        let mut at = HEADER as u64;
        let mut checksum_so_far = self.checksum_so_far;
        let mut is_broken = false;
        while read_exact_at(file, &mut frame, at)? {
            let belongs = frame.get(8..16) == Some(&self.salts[..]);
            let is_commit = field(&frame, 4) != 0;
            if is_broken {
                if belongs && is_commit {
                    return Ok(true);
                }
            } else {
                checksum_so_far =
                    self.checksum(checksum_so_far, frame.get(..8).unwrap_or_default());
                checksum_so_far = self.checksum(
                    checksum_so_far,
                    frame.get(FRAME_HEADER..).unwrap_or_default(),
                );
                let is_valid = checksum_so_far == (field(&frame, 16), field(&frame, 20));
                is_broken = !(belongs && is_valid && field(&frame, 0) != 0);
            }
            at += frame.len() as u64;
        }
        Ok(false)
    }

    fn checksum(&self, (mut first, mut second): (u32, u32), bytes: &[u8]) -> (u32, u32) {
        let word = |bytes: [u8; 4]| match self.is_big_endian {
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

/// Reads a big-endian number from a header.
fn field(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
    u32::from_be_bytes(four.unwrap_or([0; 4]))
}
