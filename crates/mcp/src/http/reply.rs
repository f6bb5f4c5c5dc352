//! What is answered over HTTP.

use super::events::Events;
use crate::transport::decode::Refusal;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of an answer.
pub(super) enum Payload {
    /// All of it.
    Whole(Bytes),
    /// What comes, when it comes.
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
            Self::Whole(bytes) if bytes.is_empty() => None,
            Self::Whole(bytes) => Some(std::mem::take(bytes)),
            Self::Events(events) => std::task::ready!(events.poll_next(cx)),
        };
        Poll::Ready(frame.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Events(_) => SizeHint::new(),
        }
    }
}

fn whole(status: StatusCode, kind: Option<&'static str>, bytes: Bytes) -> Response<Payload> {
    let mut response = Response::new(Payload::Whole(bytes));
    *response.status_mut() = status;
    if let Some(kind) = kind {
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// A status with a line of text.
pub(super) fn said(status: StatusCode, text: &str) -> Response<Payload> {
    let line = Bytes::from(format!("{text}\n"));
    whole(status, Some("text/plain; charset=utf-8"), line)
}

/// A status alone.
pub(super) fn bare(status: StatusCode) -> Response<Payload> {
    whole(status, None, Bytes::new())
}

/// Too much for now; later it may be otherwise.
pub(super) fn later(status: StatusCode, text: &str) -> Response<Payload> {
    let mut response = said(status, text);
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// A method that is none here.
pub(super) fn no_method(allowed: &'static str) -> Response<Payload> {
    let mut response = said(
        StatusCode::METHOD_NOT_ALLOWED,
        &format!("method not allowed: use {allowed}"),
    );
    let allowed = HeaderValue::from_static(allowed);
    response.headers_mut().insert(http::header::ALLOW, allowed);
    response
}

/// JSON as it is.
pub(super) fn json(status: StatusCode, json: impl Into<Bytes>) -> Response<Payload> {
    whole(status, Some("application/json"), json.into())
}

/// An error of the protocol, for a request that is wrong.
pub(super) fn refused(refusal: &Refusal) -> Response<Payload> {
    json(StatusCode::BAD_REQUEST, refusal.to_bytes())
}

/// A stream of events.
pub(super) fn stream(events: Events) -> Response<Payload> {
    let mut response = Response::new(Payload::Events(Box::new(events)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A proxy must not collect what is meant to arrive at once.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
