//! System calls without a safe wrapper: leases and `fork`.
#![expect(
    unsafe_code,
    reason = "`fcntl` for leases and `fork` have no safe wrapper"
)]

use rustix::io::{Errno, Result};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// `F_SETSIG`, which libc does not name everywhere.
const SET_SIGNAL: libc::c_int = 10;

/// A write lease: until it is dropped, every attempt to open the file waits.
#[derive(Debug)]
pub(super) struct Lease<'a>(&'a OwnedFd);

impl<'a> Lease<'a> {
    /// Takes the lease. Fails with `AGAIN` while anybody else has the file open.
    pub(super) fn new(file: &'a OwnedFd) -> Result<Self> {
        // The signal for those who wait would end haft; this one is ignored.
        set(file, SET_SIGNAL, libc::SIGURG)?;
        set(file, libc::F_SETLEASE, libc::F_WRLCK)?;
        Ok(Self(file))
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let _ = set(self.0, libc::F_SETLEASE, libc::F_UNLCK);
    }
}

fn set(file: &OwnedFd, command: libc::c_int, value: impl Into<libc::c_int>) -> Result<()> {
    // SAFETY: numbers only.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), command, value.into()) };
    match answer {
        -1 => Err(last()),
        _ => Ok(()),
    }
}

/// Runs `act` in a process of its own and waits for it. The process completes it even if this
/// one is killed.
///
/// `act` must only make system calls: it must neither allocate nor use anything that another
/// thread may have locked.
pub(super) fn apart(act: impl Fn() -> Result<()>) -> io::Result<()> {
    // SAFETY: the new process only makes the system calls of `act` and ends.
    match unsafe { libc::fork() } {
        -1 => Err(last().into()),
        0 => {
            let code = act().err().map_or(0, Errno::raw_os_error);
            // SAFETY: ends the process without running anything of this program.
            unsafe { libc::_exit(code) }
        }
        number => {
            let pid = Pid::from_raw(number).ok_or(io::ErrorKind::NotFound)?;
            let status = loop {
                match waitpid(Some(pid), WaitOptions::empty()) {
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                    Ok(status) => break status,
                }
            };
            match status.and_then(|(_, status)| status.exit_status()) {
                Some(0) => Ok(()),
                Some(code) => Err(io::Error::from_raw_os_error(code)),
                None => Err(io::Error::other("the process that writes it was killed")),
            }
        }
    }
}

fn last() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}
