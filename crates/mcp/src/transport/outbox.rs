//! Writes outgoing messages in order, one per line.

use crate::ServeError;
use crate::link::Link;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};

/// While this many bytes wait to be written, no request is accepted.
const MAX_WAITING: usize = 1 << 20;
/// Waiting messages are combined into writes of up to this many bytes.
const MAX_WRITE: usize = 64 << 10;

/// The sending end. It never blocks, so that the protocol loop does not.
pub(crate) struct Outbox {
    messages: mpsc::UnboundedSender<Vec<u8>>,
    gauge: Arc<Gauge>,
}

/// The receiving end, whose messages are written to the client.
pub(crate) struct Queue {
    messages: mpsc::UnboundedReceiver<Vec<u8>>,
    gauge: Arc<Gauge>,
}

#[derive(Default)]
struct Gauge {
    bytes: AtomicUsize,
    decreased: Notify,
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

    /// Queues a message that does not end with a line feed yet.
    pub(crate) fn push(&self, mut message: Vec<u8>) {
        message.push(b'\n');
        self.gauge.bytes.fetch_add(message.len(), Ordering::AcqRel);
        // Fails when the client no longer reads; the link has recorded that already.
        let _ = self.messages.send(message);
    }

    /// Waits until a slow client has caught up.
    pub(crate) async fn wait_for_room(&self) {
        loop {
            let decreased = self.gauge.decreased.notified();
            if self.gauge.bytes.load(Ordering::Acquire) < MAX_WAITING {
                return;
            }
            decreased.await;
        }
    }
}

/// Writes messages until the outbox is dropped or the client stops reading.
pub(crate) async fn pump<W>(mut queue: Queue, mut writer: W, link: Arc<Link>)
where
    W: AsyncWrite + Unpin,
{
    while let Some(mut bytes) = queue.messages.recv().await {
        while bytes.len() < MAX_WRITE
            && let Ok(more) = queue.messages.try_recv()
        {
            bytes.extend_from_slice(&more);
        }
        if let Err(error) = write(&mut writer, &bytes).await {
            if !is_disconnected(&error) {
                link.fail(ServeError::Write(error));
            }
            link.output_broken.cancel();
            break;
        }
        queue.gauge.bytes.fetch_sub(bytes.len(), Ordering::AcqRel);
        queue.gauge.decreased.notify_one();
    }
    // The client may have disconnected by now.
    let _ = writer.shutdown().await;
    link.flushed.cancel();
}

async fn write<W: AsyncWrite + Unpin>(writer: &mut W, bytes: &[u8]) -> io::Result<()> {
    writer.write_all(bytes).await?;
    writer.flush().await
}

/// Whether the client has disconnected, which is a normal end.
fn is_disconnected(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::NotConnected
            | io::ErrorKind::WriteZero
    )
}
