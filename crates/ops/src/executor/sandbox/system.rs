//! The four system calls that have no safe wrapper.
#![expect(
    unsafe_code,
    reason = "`mount_setattr` and `close_range` have no wrapper at all, `unshare` and `fork` none that is safe"
)]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, Result};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, pidfd_open, set_parent_process_death_signal,
};
use rustix::thread::UnshareFlags;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};

/// What is set on every mount of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attributes {
    /// Nothing that happens to mounts outside is seen here, nor the reverse.
    Private,
    /// No device works, no set-id bit counts.
    Tame,
    /// The same, and nothing can be written.
    ReadOnly,
    /// No device works, no set-id bit counts, and no program or library can be run.
    Inert,
    /// The same, and nothing can be written.
    InertReadOnly,
}

/// Sets the attributes on a mount and all mounts below it at once. Unlike a
/// remount of each, it touches no file system: a dead network mount cannot make
/// it wait.
pub(super) fn set_mount_attributes(
    folder: BorrowedFd<'_>,
    path: &CStr,
    attributes: Attributes,
) -> Result<()> {
    let mut wanted = libc::mount_attr {
        attr_set: 0,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let tame = libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOSUID;
    match attributes {
        Attributes::Private => wanted.propagation = libc::MS_PRIVATE,
        Attributes::Tame => wanted.attr_set = tame,
        Attributes::ReadOnly => wanted.attr_set = tame | libc::MOUNT_ATTR_RDONLY,
        Attributes::Inert => wanted.attr_set = tame | libc::MOUNT_ATTR_NOEXEC,
        Attributes::InertReadOnly => {
            wanted.attr_set = tame | libc::MOUNT_ATTR_NOEXEC | libc::MOUNT_ATTR_RDONLY;
        }
    }
    let flags = libc::AT_RECURSIVE | libc::AT_EMPTY_PATH;
    // SAFETY: the kernel reads a string that ends in NUL and a structure of the
    // size given, both alive during the call, and writes to neither.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            folder.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    if answer == 0 {
        Ok(())
    } else {
        let error = std::io::Error::last_os_error();
        Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
    }
}

/// Leaves the namespaces that haft is in.
pub(super) fn leave_namespaces(flags: UnshareFlags) -> Result<()> {
    // SAFETY: the table of open files stays shared, which is the one thing that
    // could make a descriptor of another thread mean something else.
    unsafe { rustix::thread::unshare_unsafe(flags - UnshareFlags::FILES) }
}

/// No descriptor but the standard streams is passed on to the next program.
/// They stay open in this one.
pub(in crate::executor) fn keep_standard_streams_only() -> Result<()> {
    // SAFETY: numbers only, and no descriptor is closed under its owner.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if answer == 0 {
        Ok(())
    } else {
        let error = std::io::Error::last_os_error();
        Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
    }
}

/// Splits the calling process in two; the new one gets `None` and dies with the
/// old one. Refused with more than one thread: what the others held locked would
/// stay locked in the new process.
pub(super) fn split() -> Result<Option<Pid>> {
    if super::places::names(std::path::Path::new("/proc/self/task")).len() != 1 {
        return Err(Errno::BUSY);
    }
    let old = pidfd_open(getpid(), PidfdFlags::empty())?;
    // SAFETY: there is one thread, so the copy is as whole as the original.
    match unsafe { libc::fork() } {
        -1 => {
            let error = std::io::Error::last_os_error();
            Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
        }
        0 => {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // It may have died before the signal was asked for, and a process
            // in another PID namespace cannot be asked by number.
            let mut gone = [PollFd::new(&old, PollFlags::IN)];
            match poll(&mut gone, Some(&Timespec::default()))? {
                0 => Ok(None),
                _ => Err(Errno::SRCH),
            }
        }
        number => Ok(Pid::from_raw(number)),
    }
}
