//! System calls without a safe wrapper: installing the filter, receiving and answering
//! notifications, and reading the memory of the process that waits.
#![expect(
    unsafe_code,
    reason = "`seccomp`, its `ioctl`s and `process_vm_readv` have no safe wrapper"
)]

use libc::{c_ulong, seccomp_notif, seccomp_notif_resp, seccomp_notif_sizes, sock_filter};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Lets the kernel hand the processor over to the handler and back, instead of waking it on
/// another one. Linux 6.6.
const SYNC_WAKE_UP: u64 = 1;

/// A system call that waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Notification {
    /// Identifies the notification.
    pub(super) id: u64,
    /// Thread that makes the call, as this process numbers it.
    pub(super) thread: u32,
    /// Number of the system call.
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
}

/// Answer to a system call that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The kernel makes the call.
    Continue,
    /// haft has made it.
    Done,
    /// It fails.
    Denied,
}

/// Receives the notifications of a filter.
#[derive(Debug)]
pub(super) struct Listener(OwnedFd);

/// Installs a filter for the calling thread and everything it starts, and returns the
/// listener of its notifications. The thread must have given up gaining privileges.
pub(super) fn install(program: &[sock_filter]) -> io::Result<OwnedFd> {
    check_sizes()?;
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: program.as_ptr().cast_mut(),
    };
    let install = |flags: c_ulong| {
        // SAFETY: the kernel reads `len` instructions, which are alive during the call, and
        // writes to none of them.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            )
        };
        let number = i32::try_from(answer).unwrap_or(-1);
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just created this descriptor for us.
        Ok(unsafe { OwnedFd::from_raw_fd(number) })
    };
    let wanted = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // Only a deadly signal interrupts a call that is being handled. Otherwise a program with
    // a fast timer would repeat its calls for ever. Linux 5.19.
    match install(wanted | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => install(wanted),
        installed => installed,
    }
}

/// Fails if the kernel's structures are not those of this program.
fn check_sizes() -> io::Result<()> {
    let mut sizes = seccomp_notif_sizes {
        seccomp_notif: 0,
        seccomp_notif_resp: 0,
        seccomp_data: 0,
    };
    // SAFETY: the kernel fills a structure that is alive during the call.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_NOTIF_SIZES,
            0,
            &raw mut sizes,
        )
    };
    if answer != 0 {
        return Err(io::Error::last_os_error());
    }
    let same = usize::from(sizes.seccomp_notif) == size_of::<seccomp_notif>()
        && usize::from(sizes.seccomp_notif_resp) == size_of::<seccomp_notif_resp>();
    match same {
        true => Ok(()),
        false => Err(io::ErrorKind::Unsupported.into()),
    }
}

impl Listener {
    pub(super) fn new(handle: OwnedFd) -> Self {
        let listener = Self(handle);
        // SAFETY: the request takes a number, and an older kernel refuses it.
        unsafe {
            libc::ioctl(
                listener.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as _,
                SYNC_WAKE_UP,
            );
        }
        listener
    }

    /// Waits for a notification. `NotFound` means that the process ended meanwhile.
    pub(super) fn receive(&self) -> io::Result<Notification> {
        // SAFETY: a structure of numbers, for which zero is a value; the kernel demands it.
        let mut arrived: seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills a structure that is alive during the call; its size was
        // checked when the filter was installed.
        let answer = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV as _,
                &raw mut arrived,
            )
        };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Notification {
            id: arrived.id,
            thread: arrived.pid,
            number: arrived.data.nr.into(),
            arguments: arrived.data.args,
        })
    }

    /// Whether the process that made a call still waits for its answer.
    pub(super) fn is_waiting(&self, id: u64) -> bool {
        // SAFETY: the kernel reads a number that is alive during the call.
        let answer = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _,
                &raw const id,
            )
        };
        answer == 0
    }

    /// Answers a call. `NotFound` means that its process has ended.
    pub(super) fn answer(&self, id: u64, answer: Answer) -> io::Result<()> {
        let (error, flags) = match answer {
            Answer::Continue => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
            Answer::Done => (0, 0),
            Answer::Denied => (-libc::EACCES, 0),
        };
        let answer = seccomp_notif_resp {
            id,
            val: 0,
            error,
            flags,
        };
        // SAFETY: the kernel reads a structure that is alive during the call.
        let sent = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND as _,
                &raw const answer,
            )
        };
        match sent {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Copies memory of another process. Returns the number of bytes before memory that it does
/// not have.
pub(super) fn read_memory(thread: u32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let thread = i32::try_from(thread).map_err(|_| io::ErrorKind::InvalidInput)?;
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let remote = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(usize::try_from(address).unwrap_or(0)),
        iov_len: into.len(),
    };
    // SAFETY: the kernel writes at most `into.len()` bytes to `into`, which nothing else
    // uses during the call. It checks the address in the other process itself.
    let read =
        unsafe { libc::process_vm_readv(thread, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}
