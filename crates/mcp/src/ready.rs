//! Standard input and output without a thread for each.
//!
//! The descriptors stay in blocking mode: they may be shared with the program
//! that started us, which would be surprised by `O_NONBLOCK`. So every read and
//! write first asks whether it would wait, and moves no more than what then
//! cannot: what is there, or [`PIECE`] bytes, which a pipe that says it is
//! writable has room for.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// What a writable pipe takes without waiting.
const PIECE: usize = 4096;

/// A descriptor that says when it is ready.
pub(crate) struct Ready(AsyncFd<OwnedFd>);

impl Ready {
    /// Standard input; an error when it is a file.
    pub(crate) fn stdin() -> io::Result<Self> {
        Self::new(io::stdin().as_fd(), Interest::READABLE)
    }

    /// Standard output; an error when it is a file.
    pub(crate) fn stdout() -> io::Result<Self> {
        Self::new(io::stdout().as_fd(), Interest::WRITABLE)
    }

    #[expect(
        deprecated,
        reason = "the successor needs `unsafe` to promise what an owned descriptor keeps by itself"
    )]
    fn new(descriptor: BorrowedFd<'_>, interest: Interest) -> io::Result<Self> {
        AsyncFd::with_interest(descriptor.try_clone_to_owned()?, interest).map(Self)
    }

    /// How much can be written without waiting, if anything can: an empty pipe
    /// takes all it can hold.
    fn room(&self) -> usize {
        let pipe = self.0.get_ref();
        match (
            rustix::io::ioctl_fionread(pipe),
            rustix::pipe::fcntl_getpipe_size(pipe),
        ) {
            (Ok(0), Ok(size)) => size.max(PIECE),
            _ => PIECE,
        }
    }

    /// Whether `what` can be done now without waiting. A closed other end
    /// counts: the attempt will say so.
    fn now(&self, what: PollFlags) -> io::Result<bool> {
        let mut asked = [PollFd::new(self.0.get_ref(), what)];
        Ok(poll(&mut asked, Some(&Timespec::default()))? > 0)
    }
}

impl AsyncRead for Ready {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(cx))?;
            if !self.now(PollFlags::IN)? {
                guard.clear_ready();
                continue;
            }
            match rustix::io::read(self.0.get_ref(), buffer.initialize_unfilled()) {
                Ok(read) => {
                    // Less than there was room for: that was all of it.
                    if read < buffer.remaining() {
                        guard.clear_ready();
                    }
                    buffer.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => guard.clear_ready(),
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
        }
    }
}

impl AsyncWrite for Ready {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let piece = bytes
            .get(..self.room().min(bytes.len()))
            .unwrap_or_default();
        loop {
            let mut guard = ready!(self.0.poll_write_ready(cx))?;
            if !self.now(PollFlags::OUT)? {
                guard.clear_ready();
                continue;
            }
            match rustix::io::write(self.0.get_ref(), piece) {
                Ok(written) => return Poll::Ready(Ok(written)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => guard.clear_ready(),
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
