//! A request body that records when it is first read.

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// The bytes of a request, and a flag that is set once the connection is established and sending
/// starts. Before that, the request cannot have arrived.
pub(super) struct TrackedBody {
    bytes: Option<Bytes>,
    started: Arc<AtomicBool>,
}

impl TrackedBody {
    pub(super) fn body(bytes: Bytes, started: Arc<AtomicBool>) -> reqwest::Body {
        reqwest::Body::wrap(Self {
            bytes: Some(bytes).filter(|bytes| !bytes.is_empty()),
            started,
        })
    }
}

impl http_body::Body for TrackedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.started.store(true, Ordering::Release);
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }
}
