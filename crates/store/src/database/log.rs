//! The log beside a database (`-wal`). SQLite takes a log whose header is damaged for an
//! empty one and writes over it: what was committed last would be gone without a word.
//! So the header is looked at first.
//!
//! Reading the log as a plain file is harmless: SQLite's locks are on the database and on
//! its `-shm` file, never on this one.

use super::make::beside;
use crate::problem::Problem;
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::{Errno, pread};
use std::path::Path;
use std::time::Duration;

/// The header of the log, and of each page in it, in bytes.
const HEADER: usize = 32;
const FRAME_HEADER: u64 = 24;
/// The smallest page there is.
const PAGE: u64 = 512;
/// The first four bytes. The last bit says in which order checksums read the bytes.
const MAGIC: u32 = 0x377f_0682;
/// The only version of the format there is.
const VERSION: u32 = 3_007_000;

/// Another process may be writing the header anew: how often it is looked at, and how
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
        match header(&path) {
            Ok(None) => return Ok(()),
            Ok(Some(header)) if is_whole(&header) => return Ok(()),
            Ok(Some(_)) => {}
            Err(errno) => return Err(Problem::io(&errno.into())),
        }
    }
    let log = path.file_name().unwrap_or(path.as_os_str());
    Err(Problem::DamagedLog {
        log: log.to_string_lossy().into_owned(),
    })
}

/// The header of a log that can have something in it.
fn header(path: &Path) -> Result<Option<[u8; HEADER]>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match openat(CWD, path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    // Without a whole page nothing was ever committed in it.
    let size = u64::try_from(fstat(&file)?.st_size).unwrap_or(0);
    if size < HEADER as u64 + FRAME_HEADER + PAGE {
        return Ok(None);
    }
    let mut header = [0; HEADER];
    let mut read = 0;
    while let Some(rest) = header.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match pread(&file, rest, read as u64)? {
            // It was emptied meanwhile.
            0 => return Ok(None),
            count => read += count,
        }
    }
    Ok(Some(header))
}

/// Whether SQLite would read a log with this header.
fn is_whole(header: &[u8; HEADER]) -> bool {
    let bytes = |at: usize| {
        let four = header.get(at..at + 4).and_then(|four| four.try_into().ok());
        four.unwrap_or([0; 4])
    };
    let field = |at: usize| u32::from_be_bytes(bytes(at));
    let is_big = field(0) & 1 == 1;
    let word = |at: usize| match is_big {
        true => u32::from_be_bytes(bytes(at)),
        false => u32::from_le_bytes(bytes(at)),
    };
    let (mut first, mut second) = (0_u32, 0_u32);
    for at in (0..24).step_by(8) {
        first = first.wrapping_add(word(at)).wrapping_add(second);
        second = second.wrapping_add(word(at + 4)).wrapping_add(first);
    }
    let size = field(8);
    field(0) & !1 == MAGIC
        && field(4) == VERSION
        && size.is_power_of_two()
        && (512..=65_536).contains(&size)
        && (first, second) == (field(24), field(28))
}
