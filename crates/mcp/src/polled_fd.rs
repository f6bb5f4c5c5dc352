//! Standard input and output without a thread for each of them.
//!
//! The descriptors stay in blocking mode: the program that started us may share them and
//! would be surprised by `O_NONBLOCK`. So every read and write first polls whether it would
//! block, and transfers only as much as cannot block: the bytes that have arrived, or
//! [`PIECE`] bytes, which a writable pipe always accepts.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// Number of bytes that a writable pipe accepts without blocking.
const PIECE: usize = 4096;

/// A descriptor that reports when it is ready.
pub(crate) struct PolledFd {
    descriptor: AsyncFd<OwnedFd>,
    /// Capacity in bytes, if it is a pipe.
    pipe: Option<usize>,
}

impl PolledFd {
    /// Opens standard input. Fails if it is a file.
    pub(crate) fn stdin() -> io::Result<Self> {
        Self::new(io::stdin().as_fd(), Interest::READABLE)
    }

    /// Opens standard output. Fails if it is a file.
    pub(crate) fn stdout() -> io::Result<Self> {
        Self::new(io::stdout().as_fd(), Interest::WRITABLE)
    }

    #[expect(
        deprecated,
        reason = "the replacement needs `unsafe` for a guarantee that an owned descriptor already gives"
    )]
    fn new(descriptor: BorrowedFd<'_>, interest: Interest) -> io::Result<Self> {
        let pipe = rustix::pipe::fcntl_getpipe_size(descriptor).ok();
        let descriptor = AsyncFd::with_interest(descriptor.try_clone_to_owned()?, interest)?;
        Ok(Self { descriptor, pipe })
    }

    /// Returns how many bytes can be written without blocking. An empty pipe accepts its
    /// full capacity.
    fn room(&self) -> io::Result<Option<usize>> {
        let descriptor = self.descriptor.get_ref();
        if let Some(size) = self.pipe
            && rustix::io::ioctl_fionread(descriptor).is_ok_and(|waiting| waiting == 0)
            // A pipe without a reader is empty too, but then the write reports the error.
            && size >= PIECE
        {
            return Ok(Some(size));
        }
        Ok(is_ready_now(descriptor, PollFlags::OUT)?.then_some(PIECE))
    }
}

impl AsyncRead for PolledFd {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.descriptor.poll_read_ready(cx))?;
            // The event may be for bytes that the last read already took.
            if !is_ready_now(self.descriptor.get_ref(), PollFlags::IN)? {
                guard.clear_ready();
                continue;
            }
            match rustix::io::read(self.descriptor.get_ref(), buffer.initialize_unfilled()) {
                Ok(read) => {
                    // A short read means that nothing is left.
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

impl AsyncWrite for PolledFd {
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

/// Whether `what` is possible now without blocking. A closed other end counts as ready: the
/// attempt then reports it.
fn is_ready_now(descriptor: &OwnedFd, operation: PollFlags) -> io::Result<bool> {
    let mut fds = [PollFd::new(descriptor, operation)];
    Ok(poll(&mut fds, Some(&Timespec::default()))? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::time::{Duration, Instant};
    use tokio::io::AsyncReadExt as _;
    use tokio::sync::mpsc;

    /// A client may write a message in many small pieces. Each piece is an event, and the
    /// event can arrive after an earlier read took its bytes. A read that trusts it stops
    /// the thread, and every answer with it, until the client writes again.
    #[test]
    fn an_event_for_bytes_already_read_does_not_block() {
        const MESSAGES: u64 = 2000;
        const PIECES: usize = 4;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(4)
            .enable_all()
            .build()
            .expect("a runtime");
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let (answers, mut answered) = mpsc::unbounded_channel();
        let serving = runtime.spawn(async move {
            let mut reader = PolledFd::new(reader.as_fd(), Interest::READABLE).expect("a pipe");
            let mut buffer = [0; 64];
            let mut received = 0;
            loop {
                // Like the protocol loop: looks for input first, then sends what is due.
                tokio::select! {
                    biased;
                    read = reader.read(&mut buffer) => match read {
                        Ok(read @ 1..) => received += read,
                        _ => return,
                    },
                    () = std::future::ready(()), if received == PIECES => {
                        received = 0;
                        answers.send(()).expect("the test is waiting");
                    }
                }
            }
        });
        // Keeps a second thread busy: it delivers the events while the first one reads.
        let busy = runtime.spawn(async {
            loop {
                tokio::task::yield_now().await;
            }
        });
        let mut unanswered = None;
        let enough = Instant::now() + Duration::from_secs(5);
        for message in (0..MESSAGES).take_while(|_| Instant::now() < enough) {
            for piece in 0..PIECES as u64 {
                writer.write_all(b"x").expect("the server reads");
                // Pauses of every length up to 20 µs: one of them meets the read.
                let pause = Duration::from_nanos((message * 37 + piece * 1009) % 20_000);
                let start = Instant::now();
                while start.elapsed() < pause {
                    std::hint::spin_loop();
                }
            }
            let answer = runtime.block_on(async {
                tokio::time::timeout(Duration::from_secs(5), answered.recv()).await
            });
            if !matches!(answer, Ok(Some(()))) {
                unanswered = Some(message);
                break;
            }
        }
        busy.abort();
        drop(writer);
        runtime.block_on(serving).expect("the server ends");
        assert_eq!(unanswered, None, "this message got no answer within 5 s");
    }
}
