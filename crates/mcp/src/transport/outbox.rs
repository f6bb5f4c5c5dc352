//! What goes out, in order, one message a line.

use crate::ServeError;
use crate::link::Link;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};

/// When so much waits to be written, no more requests are taken on.
const FULL: usize = 1 << 20;
/// Messages that wait are written together up to this size.
const TOGETHER: usize = 64 << 10;

/// The end that messages are put into. It never waits, so that the protocol
/// loop does not.
pub(crate) struct Outbox {
    messages: mpsc::UnboundedSender<Vec<u8>>,
    gauge: Arc<Gauge>,
}

/// The end that they are written from.
pub(crate) struct Queue {
    messages: mpsc::UnboundedReceiver<Vec<u8>>,
    gauge: Arc<Gauge>,
}

#[derive(Default)]
struct Gauge {
    bytes: AtomicUsize,
    fell: Notify,
}

impl Outbox {
    pub(crate) fn new() -> (Self, Queue) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let gauge = Arc::new(Gauge::default());
        let outbox = Self {
            messages: sender,
            gauge: Arc::clone(&gauge),
        };
        let queue = Queue {
            messages: receiver,
            gauge,
        };
        (outbox, queue)
    }

    /// Puts a message in, which has no line end yet.
    pub(crate) fn push(&self, mut message: Vec<u8>) {
        message.push(b'\n');
        self.gauge.bytes.fetch_add(message.len(), Ordering::AcqRel);
        // It fails when nobody reads us any more; the link knows already.
        let _ = self.messages.send(message);
    }

    /// Waits until a client that reads slowly has caught up.
    pub(crate) async fn room(&self) {
        loop {
            let fell = self.gauge.fell.notified();
            if self.gauge.bytes.load(Ordering::Acquire) < FULL {
                return;
            }
            fell.await;
        }
    }
}

/// Writes until the outbox is gone or nobody reads.
pub(crate) async fn pump<W>(mut queue: Queue, mut writer: W, link: Arc<Link>)
where
    W: AsyncWrite + Unpin,
{
    while let Some(mut bytes) = queue.messages.recv().await {
        while bytes.len() < TOGETHER
            && let Ok(more) = queue.messages.try_recv()
        {
            bytes.extend_from_slice(&more);
        }
        if let Err(error) = write(&mut writer, &bytes).await {
            if !gone(&error) {
                link.fail(ServeError::Write(error));
            }
            link.broken.cancel();
            break;
        }
        queue.gauge.bytes.fetch_sub(bytes.len(), Ordering::AcqRel);
        queue.gauge.fell.notify_one();
    }
    // The other side may be gone by now, which is no news.
    let _ = writer.shutdown().await;
    link.written.cancel();
}

async fn write<W: AsyncWrite + Unpin>(writer: &mut W, bytes: &[u8]) -> io::Result<()> {
    writer.write_all(bytes).await?;
    writer.flush().await
}

/// A client that goes away is a way to end.
fn gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::NotConnected
            | io::ErrorKind::WriteZero
    )
}
