//! One reader of one stream.

use super::session::Session;
use super::streams::{Generation, Number};
use bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// Reads a stream of a session. When it is dropped the session knows that the client is
/// gone, or has all it wanted.
pub(super) struct Reader {
    session: Arc<Session>,
    number: Number,
    generation: Generation,
    after: u64,
}

impl Reader {
    pub(super) fn new(
        session: Arc<Session>,
        number: Number,
        generation: Generation,
        after: u64,
    ) -> Self {
        Self {
            session,
            number,
            generation,
            after,
        }
    }

    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(super) fn number(&self) -> Number {
        self.number
    }

    /// Waits until there is something to read, or nothing more to come.
    pub(super) async fn ready(&self) {
        std::future::poll_fn(|cx| self.session.streams().poll_ready(self.number, cx)).await;
    }

    /// What is read of it from now on.
    pub(super) fn events(self, ping: Duration) -> Events {
        let primer = (self.after == 0).then(|| self.session.streams().primer(self.number));
        Events {
            reader: Some(self),
            primer,
            ping,
            silence: Box::pin(sleep(ping)),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        Session::left(&self.session, self.number, self.generation);
    }
}

/// The body of an answer that is a stream.
pub(super) struct Events {
    /// Nothing for one that has nothing.
    reader: Option<Reader>,
    primer: Option<Bytes>,
    ping: Duration,
    silence: Pin<Box<Sleep>>,
}

impl Events {
    /// A stream with nothing on it.
    pub(super) fn none() -> Self {
        Self {
            reader: None,
            primer: None,
            ping: Duration::MAX,
            silence: Box::pin(sleep(Duration::ZERO)),
        }
    }

    /// The next piece; nothing at the end.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(primer) = self.primer.take() {
            return Poll::Ready(Some(primer));
        }
        let Some(reader) = &mut self.reader else {
            return Poll::Ready(None);
        };
        let mut streams = reader.session.streams();
        let next = streams.poll(reader.number, reader.generation, &mut reader.after, cx);
        drop(streams);
        if next.is_ready() {
            self.silence.as_mut().reset(Instant::now() + self.ping);
            return next;
        }
        // A client that is gone is noticed when something is written to it.
        if self.silence.as_mut().poll(cx).is_ready() {
            self.silence.as_mut().reset(Instant::now() + self.ping);
            let _ = self.silence.as_mut().poll(cx);
            return Poll::Ready(Some(Bytes::from_static(b": \n\n")));
        }
        Poll::Pending
    }
}
