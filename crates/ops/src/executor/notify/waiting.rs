//! Waiting for the next notification of a command.

use super::raw::{Listener, Notification};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;

/// Result of waiting for a notification.
pub(super) enum Next {
    Call(Notification),
    /// The process that called has ended.
    Again,
    /// The last process has ended.
    End,
}

pub(super) fn next(listener: &Listener, waiting: Waiting) -> io::Result<Next> {
    if waiting == Waiting::First && !wait(listener, None)? {
        return Ok(Next::End);
    }
    match listener.receive() {
        Ok(call) => Ok(Next::Call(call)),
        Err(error) if is_passing(&error) => Ok(match wait(listener, Some(&Timespec::default())) {
            Ok(false) => Next::End,
            _ => Next::Again,
        }),
        Err(error) => Err(error),
    }
}

/// When to wait for a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    /// Before receiving it. Otherwise an older kernel would wait for ever after the last
    /// process has ended.
    First,
    /// By receiving it, which saves a system call each time. Linux 6.11.
    ByReceiving,
}

impl Waiting {
    pub(super) fn of_this_kernel() -> Self {
        let release = rustix::system::uname();
        let mut numbers = release.release().to_str().unwrap_or("").split(['.', '-']);
        let mut next = || numbers.next().and_then(|text| text.parse::<u32>().ok());
        match (next(), next()) {
            (Some(major), Some(minor)) if (major, minor) >= (6, 11) => Self::ByReceiving,
            _ => Self::First,
        }
    }
}

/// Waits for a notification, at most for a time. Returns `false` once no process can make
/// one.
fn wait(listener: &Listener, limit: Option<&Timespec>) -> io::Result<bool> {
    loop {
        let mut fds = [PollFd::new(listener, PollFlags::IN)];
        match poll(&mut fds, limit) {
            Ok(0) => return Ok(true),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let [seen] = fds.map(|fd| fd.revents());
        if seen.contains(PollFlags::IN) {
            return Ok(true);
        }
        if seen.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Ok(false);
        }
    }
}

/// Whether an error concerns one call only: its process has ended, or a signal arrived.
pub(super) fn is_passing(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    matches!(code, Some(libc::ENOENT | libc::EINTR | libc::EINPROGRESS))
}
