//! The reader of one stream, and the response body it produces.

use super::session::Session;
use super::streams::{Generation, Number};
use bytes::Bytes;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// Reads a stream of a session. Dropping it tells the session that the client has
/// disconnected or has read everything.
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

    /// Waits until there is something to read or the stream has ended.
    pub(super) async fn ready(&self) {
        std::future::poll_fn(|cx| self.session.streams().poll_ready(self.number, cx)).await;
    }

    /// Turns the reader into a response body.
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
        Session::reader_left(&self.session, self.number, self.generation);
    }
}

/// Response body with the events of a stream.
pub(super) struct Events {
    /// `None` for an empty stream.
    reader: Option<Reader>,
    primer: Option<Bytes>,
    ping: Duration,
    silence: Pin<Box<Sleep>>,
}

impl Events {
    /// Creates a stream without events.
    pub(super) fn empty() -> Self {
        Self {
            reader: None,
            primer: None,
            ping: Duration::MAX,
            silence: Box::pin(sleep(Duration::ZERO)),
        }
    }

    /// Returns the next bytes, or `None` at the end.
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
