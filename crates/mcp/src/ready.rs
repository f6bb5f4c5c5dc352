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
pub(crate) struct Ready {
    descriptor: AsyncFd<OwnedFd>,
    /// What it holds, if it is a pipe.
    pipe: Option<usize>,
    /// Whether it was used up when it last said that it is ready: then it is.
    fresh: bool,
}

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
        let pipe = rustix::pipe::fcntl_getpipe_size(descriptor).ok();
        let descriptor = AsyncFd::with_interest(descriptor.try_clone_to_owned()?, interest)?;
        Ok(Self {
            descriptor,
            pipe,
            fresh: true,
        })
    }

    /// How much can be written without waiting: an empty pipe takes all it can
    /// hold.
    fn room(&self) -> io::Result<Option<usize>> {
        let descriptor = self.descriptor.get_ref();
        if let Some(size) = self.pipe
            && rustix::io::ioctl_fionread(descriptor).is_ok_and(|waiting| waiting == 0)
            // A pipe that nobody reads is empty too, but the attempt will say so.
            && size >= PIECE
        {
            return Ok(Some(size));
        }
        Ok(now(descriptor, PollFlags::OUT)?.then_some(PIECE))
    }
}

impl AsyncRead for Ready {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            let mut guard = ready!(this.descriptor.poll_read_ready(cx))?;
            if !std::mem::take(&mut this.fresh) && !now(this.descriptor.get_ref(), PollFlags::IN)? {
                guard.clear_ready();
                this.fresh = true;
                continue;
            }
            match rustix::io::read(this.descriptor.get_ref(), buffer.initialize_unfilled()) {
                Ok(read) => {
                    // Less than there was room for: that was all of it.
                    if read < buffer.remaining() {
                        guard.clear_ready();
                        this.fresh = true;
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
        loop {
            let mut guard = ready!(self.descriptor.poll_write_ready(cx))?;
            let Some(room) = self.room()? else {
                guard.clear_ready();
                continue;
            };
            let piece = bytes.get(..room.min(bytes.len())).unwrap_or_default();
            match rustix::io::write(self.descriptor.get_ref(), piece) {
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

/// Whether `what` can be done now without waiting. A closed other end counts:
/// the attempt will say so.
fn now(descriptor: &OwnedFd, what: PollFlags) -> io::Result<bool> {
    let mut asked = [PollFd::new(descriptor, what)];
    Ok(poll(&mut asked, Some(&Timespec::default()))? > 0)
}
