//! Standard input and output on dedicated threads, for when they are files.
//!
//! tokio's handles use its pool of blocking threads, where a read that never returns keeps
//! the whole runtime from shutting down, and every message costs two thread switches each
//! way. A dedicated thread costs one, works for pipes, sockets, files and terminals alike,
//! and may be abandoned.

use crate::link::Link;
use crate::transport::{Queue, pump};
use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::thread;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

/// Number of bytes read at a time.
const CHUNK: usize = 64 << 10;

/// Starts reading standard input.
///
/// # Errors
/// When no thread can be started.
pub fn input() -> io::Result<Input> {
    let (sender, chunks) = mpsc::channel(4);
    thread::Builder::new()
        .name("mcp-input".to_owned())
        .spawn(move || read(&sender))?;
    Ok(Input {
        chunks,
        current: Vec::new(),
        at: 0,
    })
}

fn read(chunks: &mpsc::Sender<io::Result<Vec<u8>>>) {
    let mut input = io::stdin().lock();
    let mut buffer = vec![0; CHUNK];
    loop {
        let chunk = match input.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => Ok(buffer.iter().take(length).copied().collect()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let failed = chunk.is_err();
        if chunks.blocking_send(chunk).is_err() || failed {
            return;
        }
    }
}

/// Starts writing queued messages to standard output.
pub(crate) fn output(queue: Queue, link: Arc<Link>) -> io::Result<()> {
    let runtime = tokio::runtime::Handle::current();
    thread::Builder::new()
        .name("mcp-output".to_owned())
        .spawn(move || runtime.block_on(pump(queue, Output, link)))?;
    Ok(())
}

/// Chunks that the reading thread has read.
pub struct Input {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    current: Vec<u8>,
    at: usize,
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.at >= self.current.len() {
            match ready!(self.chunks.poll_recv(cx)) {
                None => return Poll::Ready(Ok(())),
                Some(chunk) => {
                    self.current = chunk?;
                    self.at = 0;
                }
            }
        }
        let rest = self.current.get(self.at..).unwrap_or_default();
        let part = rest.len().min(buffer.remaining());
        buffer.put_slice(rest.get(..part).unwrap_or_default());
        self.at += part;
        Poll::Ready(Ok(()))
    }
}

/// Blocking standard output, for a thread that does nothing else.
struct Output;

impl AsyncWrite for Output {
    fn poll_write(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(io::stdout().write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(io::stdout().flush())
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(io::stdout().flush())
    }
}
