//! Builds HTTP responses.

use super::events::Events;
use crate::transport::decode::ErrorReply;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of a response.
pub(super) enum Payload {
    /// A complete body.
    Complete(Bytes),
    /// A stream of events.
    Events(Box<Events>),
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = match self.get_mut() {
            Self::Complete(bytes) if bytes.is_empty() => None,
            Self::Complete(bytes) => Some(std::mem::take(bytes)),
            Self::Events(events) => std::task::ready!(events.poll_next(cx)),
        };
        Poll::Ready(frame.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Complete(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Complete(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Events(_) => SizeHint::new(),
        }
    }
}

fn complete(status: StatusCode, kind: Option<&'static str>, bytes: Bytes) -> Response<Payload> {
    let mut response = Response::new(Payload::Complete(bytes));
    *response.status_mut() = status;
    if let Some(kind) = kind {
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// Builds a response with one line of text.
pub(super) fn plain_text(status: StatusCode, text: &str) -> Response<Payload> {
    let line = Bytes::from(format!("{text}\n"));
    complete(status, Some("text/plain; charset=utf-8"), line)
}

/// Builds a response without a body.
pub(super) fn status_only(status: StatusCode) -> Response<Payload> {
    complete(status, None, Bytes::new())
}

/// Builds a response that asks the client to retry in a second.
pub(super) fn retry_later(status: StatusCode, text: &str) -> Response<Payload> {
    let mut response = plain_text(status, text);
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Builds the response to an unsupported method.
pub(super) fn method_not_allowed(allowed: &'static str) -> Response<Payload> {
    let mut response = plain_text(
        StatusCode::METHOD_NOT_ALLOWED,
        &format!("method not allowed: use {allowed}"),
    );
    let allowed = HeaderValue::from_static(allowed);
    response.headers_mut().insert(http::header::ALLOW, allowed);
    response
}

/// Builds a JSON response.
pub(super) fn json(status: StatusCode, json: impl Into<Bytes>) -> Response<Payload> {
    complete(status, Some("application/json"), json.into())
}

/// Builds the response to an invalid request, with a protocol error as its body.
pub(super) fn bad_request(reply: &ErrorReply) -> Response<Payload> {
    json(StatusCode::BAD_REQUEST, reply.to_bytes())
}

/// Builds a response that streams events.
pub(super) fn stream(events: Events) -> Response<Payload> {
    let mut response = Response::new(Payload::Events(Box::new(events)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies must not buffer the stream.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
