//! The five system calls that have no safe wrapper.
#![expect(
    unsafe_code,
    reason = "`mount_setattr`, `close_range` and the `ioctl` for interfaces have no wrapper at all, `unshare` and `fork` none that is safe"
)]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, Result};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, pidfd_open, set_parent_process_death_signal,
};
use rustix::thread::UnshareFlags;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Attributes for every mount of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attributes {
    /// Mount events do not propagate in or out.
    Private,
    /// Devices and set-id bits are ignored.
    Tame,
    /// Like `Tame`, and read-only.
    ReadOnly,
    /// Devices and set-id bits are ignored, and no program or library can be run.
    Inert,
    /// Like `Inert`, and read-only.
    InertReadOnly,
}

/// Sets the attributes on a mount and all mounts below it at once. Unlike remounting each,
/// it accesses no file system, so it cannot block on a dead network mount.
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
    // SAFETY: the kernel reads a string that ends in NUL and a structure of the size given,
    // both alive during the call, and writes to neither.
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

/// Switches on the interface `lo` in the network of the calling process.
pub(super) fn raise_loopback() -> Result<()> {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        None,
    )?;
    // SAFETY: all of its fields may be zero.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, byte) in request.ifr_name.iter_mut().zip(*b"lo") {
        *slot = byte.cast_signed();
    }
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP).unwrap_or(1);
    // SAFETY: the kernel reads a structure of the right type that lives during the call.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if answer == 0 {
        Ok(())
    } else {
        let error = std::io::Error::last_os_error();
        Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
    }
}

/// Leaves haft's namespaces.
pub(super) fn leave_namespaces(flags: UnshareFlags) -> Result<()> {
    // SAFETY: the table of open files stays shared, which is the one thing that
    // could make a descriptor of another thread mean something else.
    unsafe { rustix::thread::unshare_unsafe(flags - UnshareFlags::FILES) }
}

/// Marks all descriptors except the standard streams as close-on-exec. They stay open in
/// this process.
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

/// Forks the calling process. Returns `None` in the new process, which dies with the old
/// one. Refused with more than one thread: locks held by other threads would stay locked in
/// the new process.
pub(super) fn split() -> Result<Option<Pid>> {
    if super::known_paths::names(std::path::Path::new("/proc/self/task")).len() != 1 {
        return Err(Errno::BUSY);
    }
    let old = pidfd_open(getpid(), PidfdFlags::empty())?;
    // SAFETY: there is only one thread, so the copy is complete.
    match unsafe { libc::fork() } {
        -1 => {
            let error = std::io::Error::last_os_error();
            Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
        }
        0 => {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the signal was requested. Its process id
            // cannot be checked, because it is in another PID namespace.
            let mut gone = [PollFd::new(&old, PollFlags::IN)];
            match poll(&mut gone, Some(&Timespec::default()))? {
                0 => Ok(None),
                _ => Err(Errno::SRCH),
            }
        }
        number => Ok(Pid::from_raw(number)),
    }
}

/// Opens a namespace of the calling process.
#[expect(
    clippy::disallowed_methods,
    reason = "a file of the kernel about the process itself"
)]
pub(super) fn namespace(kind: &str) -> std::io::Result<std::fs::File> {
    std::fs::File::open(format!("/proc/self/ns/{kind}"))
}
