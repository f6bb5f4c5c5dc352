//! Writes messages to standard output, in order, on a thread of its own.

use serde_json::Value;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

/// While more bytes than this wait to be written, sessions produce no more updates.
const MAX_WAITING: usize = 4 << 20;

/// Waiting messages are combined into writes of up to this many bytes.
const MAX_WRITE: usize = 64 << 10;

/// The sending end. Clones write to the same output.
#[derive(Clone)]
pub(crate) struct Outbox {
    messages: mpsc::UnboundedSender<Vec<u8>>,
    gauge: Arc<Gauge>,
}

#[derive(Default)]
struct Gauge {
    bytes: AtomicUsize,
    decreased: Notify,
    /// Cancelled when the client no longer reads.
    broken: CancellationToken,
}

impl Outbox {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (messages, receiver) = mpsc::unbounded_channel();
        let gauge = Arc::new(Gauge::default());
        let shared = Arc::clone(&gauge);
        thread::Builder::new()
            .name("acp-output".to_owned())
            .spawn(move || write(receiver, &shared))?;
        Ok(Self { messages, gauge })
    }

    /// Queues a message.
    pub(crate) fn push(&self, message: &Value) {
        let mut bytes = message.to_string().into_bytes();
        bytes.push(b'\n');
        self.gauge.bytes.fetch_add(bytes.len(), Ordering::AcqRel);
        // Fails when the client no longer reads, which ends the connection.
        let _ = self.messages.send(bytes);
    }

    /// Waits until a slow client has caught up.
    pub(crate) async fn wait_for_room(&self) {
        self.wait_below(MAX_WAITING).await;
    }

    /// Waits until everything is written.
    pub(crate) async fn flush(&self) {
        self.wait_below(0).await;
    }

    async fn wait_below(&self, most: usize) {
        loop {
            let decreased = self.gauge.decreased.notified();
            let is_broken = self.gauge.broken.is_cancelled();
            if is_broken || self.gauge.bytes.load(Ordering::Acquire) <= most {
                return;
            }
            decreased.await;
        }
    }

    /// Waits until the client no longer reads.
    pub(crate) async fn broken(&self) {
        self.gauge.broken.cancelled().await;
    }
}

fn write(mut messages: mpsc::UnboundedReceiver<Vec<u8>>, gauge: &Gauge) {
    let mut output = io::stdout();
    while let Some(mut bytes) = messages.blocking_recv() {
        while bytes.len() < MAX_WRITE {
            let Ok(more) = messages.try_recv() else {
                break;
            };
            bytes.extend(more);
        }
        let written = output.write_all(&bytes).and_then(|()| output.flush());
        if written.is_err() {
            gauge.broken.cancel();
            gauge.decreased.notify_waiters();
            return;
        }
        gauge.bytes.fetch_sub(bytes.len(), Ordering::AcqRel);
        gauge.decreased.notify_waiters();
    }
}
