//! The process that makes a call, as the kernel shows it: its memory, working directory and
//! open files.

use super::raw::read_memory;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, readlinkat, statat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Maximum length of a path, including the NUL at its end.
const MAX_PATH: usize = 4096;

/// Bytes to read first; most paths are shorter.
const USUAL_PATH: usize = 256;

/// Smallest page of any supported machine. A read within one never fails half-way.
const PAGE: u64 = 4096;

/// Maximum number of processes whose folders in `/proc` stay open.
const MAX_OPEN: usize = 64;

/// Suffix that the kernel adds to the path of a file that has lost its name.
const DELETED: &[u8] = b" (deleted)";

/// Folders in `/proc` of the processes that made calls. An open one never refers to a later
/// process with the same number.
#[derive(Debug, Default)]
pub(super) struct Targets {
    open: HashMap<u32, OwnedFd>,
    /// The root folder that all processes of the command share; the confinement allows no
    /// other.
    root: Option<OwnedFd>,
}

impl Targets {
    /// Returns the working directory of a process, or `None` if it has been removed.
    pub(super) fn cwd(&mut self, thread: u32) -> io::Result<Option<PathBuf>> {
        self.link(thread, Path::new("cwd"))
    }

    /// Returns the path of an open file, or `None` if it has none.
    pub(super) fn open_file(&mut self, thread: u32, number: i32) -> io::Result<Option<PathBuf>> {
        match self.link(thread, Path::new(&format!("fd/{number}"))) {
            // The call fails for the same reason.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            path => path,
        }
    }

    /// Returns the folder that is `/` for the command. Paths below it are those that the
    /// command sees, including its private folder for temporary files.
    pub(super) fn root(&mut self, thread: u32) -> io::Result<&OwnedFd> {
        if self.root.is_none() {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let path = format!("/proc/{thread}/root");
            self.root = Some(openat(CWD, path, flags, Mode::empty())?);
        }
        self.root
            .as_ref()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns the numbers of the process and the thread as the process itself sees them.
    #[expect(
        clippy::disallowed_methods,
        reason = "a file of the kernel about a process"
    )]
    pub(super) fn own_numbers(&self, thread: u32) -> io::Result<(String, String)> {
        let text = std::fs::read_to_string(format!("/proc/{thread}/status"))?;
        let last = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().last().map(str::to_owned)
        };
        let found = last("NStgid:").zip(last("NSpid:"));
        found.ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    fn link(&mut self, thread: u32, name: &Path) -> io::Result<Option<PathBuf>> {
        for fresh in [false, true] {
            let handle = self.handle(thread, fresh)?;
            // An error may mean that the folder belongs to an earlier process.
            match readlinkat(handle, name, Vec::new()) {
                Ok(target) => return Ok(living(target.into_bytes())),
                Err(Errno::NAMETOOLONG) => {
                    return match super::long::path(handle, name) {
                        // It has been removed.
                        Err(Errno::NOENT) => Ok(None),
                        path => Ok(Some(path?)),
                    };
                }
                Err(error) if fresh => return Err(error.into()),
                Err(_) => {}
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    fn handle(&mut self, thread: u32, fresh: bool) -> Result<&OwnedFd, Errno> {
        if fresh {
            self.open.remove(&thread);
        }
        if !self.open.contains_key(&thread) {
            if self.open.len() >= MAX_OPEN {
                self.open.clear();
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let handle = openat(CWD, format!("/proc/{thread}"), flags, Mode::empty())?;
            self.open.insert(thread, handle);
        }
        self.open.get(&thread).ok_or(Errno::SRCH)
    }
}

/// Reads a path from the memory of a process. Returns `None` if the kernel will refuse it.
pub(super) fn path(thread: u32, address: u64) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::with_capacity(USUAL_PATH);
    while text.len() < MAX_PATH {
        let from = address.saturating_add(text.len() as u64);
        let rest = usize::try_from(PAGE - from % PAGE).unwrap_or(USUAL_PATH);
        let wanted = match text.len() {
            0 => rest.min(USUAL_PATH),
            held => rest.min(MAX_PATH - held),
        };
        let held = text.len();
        text.resize(held + wanted, 0);
        let read = match read_memory(thread, from, text.get_mut(held..).unwrap_or_default()) {
            Ok(read) => read,
            Err(error) if error.raw_os_error() == Some(libc::EFAULT) => return Ok(None),
            Err(error) => return Err(error),
        };
        let arrived = text.get(held..held + read).unwrap_or_default();
        if let Some(end) = memchr::memchr(0, arrived) {
            text.truncate(held + end);
            return Ok(Some(text));
        }
        if read < wanted {
            return Ok(None);
        }
    }
    Ok(None)
}

/// Reads numbers from the memory of a process. Returns `None` if it has no memory there.
pub(super) fn bytes<const N: usize>(thread: u32, address: u64) -> io::Result<Option<[u8; N]>> {
    let mut found = [0; N];
    match read_memory(thread, address, &mut found) {
        Ok(read) if read == N => Ok(Some(found)),
        Ok(_) => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::EFAULT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the path that a link in `/proc` names, unless it has been removed.
pub(super) fn living(target: Vec<u8>) -> Option<PathBuf> {
    let path = PathBuf::from(OsString::from_vec(target));
    let bytes = path.as_os_str().as_encoded_bytes();
    // Pipes and sockets have no path.
    if !bytes.starts_with(b"/") {
        return None;
    }
    // A name may end like that, too.
    if bytes.ends_with(DELETED) && statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).is_err() {
        return None;
    }
    Some(path)
}
