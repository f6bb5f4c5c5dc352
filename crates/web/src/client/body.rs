//! A body that tells when it is asked for.

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// The bytes of a request, and a mark that is set once a connection stands and
/// the request begins to leave. Until then nothing of it can have arrived.
pub(super) struct Watched {
    bytes: Option<Bytes>,
    begun: Arc<AtomicBool>,
}

impl Watched {
    pub(super) fn body(bytes: Bytes, begun: Arc<AtomicBool>) -> reqwest::Body {
        reqwest::Body::wrap(Self {
            bytes: Some(bytes).filter(|bytes| !bytes.is_empty()),
            begun,
        })
    }
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.begun.store(true, Ordering::Release);
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }
}
