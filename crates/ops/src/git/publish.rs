//! Publishes the new content of a git configuration.
//!
//! The file is written in place. Renaming another file over it would be simpler, but the
//! kernel would then drop the read-only mount that protects it in every sandbox that runs.
//! Three things make that as good as a rename:
//!
//! - **Nobody sees a mixture.** A write lease keeps others from opening the file while it is
//!   written, and is refused while anybody has it open. git opens it, reads it and closes it,
//!   so both waits are short.
//! - **The user's changes are not lost.** Under the lease, the content is compared with the
//!   one from which the command started.
//! - **A kill leaves the old or the new content.** The kernel writes a page at once. A longer
//!   content is written by a process of its own, which no signal to haft reaches. Between the
//!   steps, the content is the new one with empty lines at its end.
//!
//! Where the file system has no leases, nothing is published.

mod raw;
#[cfg(test)]
mod tests;

use super::variables::MAX_BYTES;
use rustix::fs::{
    CWD, FallocateFlags, FileType, Mode, OFlags, ResolveFlags, fallocate, fchmod, fstat, fsync,
    ftruncate, openat2, statat,
};
use rustix::io::{Errno, pread, pwrite};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time to wait until nobody else has the file open, and between two attempts.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_micros(500);

/// Smallest page of any supported machine.
const PAGE: usize = 4096;

/// Permissions that a command may change: git tries them out.
const EXECUTE: u32 = 0o111;

/// A git configuration that is about to change.
#[derive(Debug)]
pub(crate) struct Config {
    folder: OwnedFd,
    name: OsString,
    file: OwnedFd,
}

/// Result of replacing a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Published,
    /// Somebody else has changed the file.
    Changed,
}

impl Config {
    /// Opens a regular file. No part of the path may be a link.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat2(CWD, folder, flags, Mode::empty(), resolve)?;
        let deadline = Instant::now() + PATIENCE;
        let file = until(deadline, || {
            open_file(&folder, name, OFlags::RDWR, ResolveFlags::empty())
        })?;
        Ok(Self {
            folder,
            name: name.to_owned(),
            file,
        })
    }

    /// Replaces the content if it is the expected one.
    pub(crate) fn replace(&self, expected: &[u8], new: &[u8]) -> io::Result<Outcome> {
        // Under another name, it may be part of another repository or of a backup.
        if fstat(&self.file)?.st_nlink > 1 {
            return Err(io::Error::other("it has other hard links"));
        }
        let deadline = Instant::now() + PATIENCE;
        let lease =
            until(deadline, || raw::Lease::new(&self.file)).map_err(|error| match error {
                Errno::AGAIN => io::Error::other("another process keeps it open"),
                error => error.into(),
            })?;
        if content(&self.file)? != expected || !self.is_current()? {
            return Ok(Outcome::Changed);
        }
        if new != expected {
            self.write(expected, new)?;
        }
        drop(lease);
        fsync(&self.file)?;
        // A rename needs no lease. If there was one meanwhile, nobody sees what was written.
        Ok(match self.is_current()? {
            true => Outcome::Published,
            false => Outcome::Changed,
        })
    }

    fn write(&self, old: &[u8], new: &[u8]) -> io::Result<()> {
        if new.len() > old.len() {
            let (from, length) = (old.len() as u64, (new.len() - old.len()) as u64);
            match fallocate(&self.file, FallocateFlags::KEEP_SIZE, from, length) {
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut padded = new.to_owned();
        padded.resize(new.len().max(old.len()), b'\n');
        let write = || -> rustix::io::Result<()> {
            let written = write_all(&self.file, &padded);
            if written.is_err() {
                // The disk is full: what was there fits.
                write_all(&self.file, old)?;
                ftruncate(&self.file, old.len() as u64)?;
                return written;
            }
            ftruncate(&self.file, new.len() as u64)
        };
        match padded.len() <= PAGE {
            true => Ok(write()?),
            false => raw::apart(write),
        }
    }

    /// Whether the file still has its name.
    fn is_current(&self) -> io::Result<bool> {
        let ours = fstat(&self.file)?;
        match statat(
            &self.folder,
            &self.name,
            rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
        ) {
            Ok(named) => Ok((named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Changes the permissions of a configuration, if only those change that let a file be
/// executed. Returns whether it did.
pub(crate) fn set_mode(path: &Path, mode: u32) -> io::Result<bool> {
    let config = Config::open(path)?;
    let present = fstat(&config.file)?.st_mode & 0o7777;
    if (present ^ mode) & 0o7777 & !EXECUTE != 0 {
        return Ok(false);
    }
    fchmod(&config.file, Mode::from_raw_mode(mode & 0o7777))?;
    Ok(true)
}

/// Returns the content of a configuration.
pub(crate) fn present(path: &Path) -> io::Result<Vec<u8>> {
    content(&Config::open(path)?.file)
}

/// Returns the content of a regular file that a command has made in an open folder. Nothing
/// may be mounted on it: that would be protected or hidden.
pub(crate) fn prepared(folder: &OwnedFd, name: &OsStr) -> io::Result<Vec<u8>> {
    let file = open_file(folder, name, OFlags::RDONLY, ResolveFlags::NO_XDEV)?;
    content(&file)
}

fn open_file(
    folder: &OwnedFd,
    name: &OsStr,
    access: OFlags,
    more: ResolveFlags,
) -> rustix::io::Result<OwnedFd> {
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve =
        more | ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // A FIFO or device is not even opened.
    let handle = openat2(
        folder,
        name,
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
        resolve,
    )?;
    if !is_regular(&handle)? {
        return Err(Errno::PERM);
    }
    let file = openat2(folder, name, flags, Mode::empty(), resolve)?;
    match is_regular(&file)? {
        true => Ok(file),
        false => Err(Errno::PERM),
    }
}

fn is_regular(file: &OwnedFd) -> rustix::io::Result<bool> {
    Ok(FileType::from_raw_mode(fstat(file)?.st_mode).is_file())
}

/// Reads a whole file; of a long one, a byte more than a configuration may have.
fn content(file: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; MAX_BYTES + 1];
    let mut length = 0;
    loop {
        let rest = bytes.get_mut(length..).unwrap_or_default();
        match pread(file, rest, length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

fn write_all(file: &OwnedFd, bytes: &[u8]) -> rustix::io::Result<()> {
    let mut done = 0;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        match pwrite(file, rest, done as u64) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => done += written,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Tries until it does not fail because of what others have open.
fn until<T>(
    deadline: Instant,
    attempt: impl Fn() -> rustix::io::Result<T>,
) -> rustix::io::Result<T> {
    loop {
        match attempt() {
            Err(Errno::AGAIN) if Instant::now() < deadline => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
}
