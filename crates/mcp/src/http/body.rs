//! The body of a request, read within its bounds.

use super::reply::{Payload, later, said};
use bytes::{Buf, Bytes, BytesMut};
use http::{Response, StatusCode};
use http_body::Body;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long is read what nobody wants, so that the refusal reaches a client that still
/// sends.
const DRAIN: Duration = Duration::from_secs(1);

/// A body, and its room among all of them.
pub(super) struct Read {
    pub(super) bytes: Bytes,
    pub(super) room: Room,
}

/// The room that the bodies of unanswered requests take, in KiB. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Room(#[expect(dead_code, reason = "held, not used")] Arc<OwnedSemaphorePermit>);

/// The bounds of a body.
pub(super) struct Bounds<'a> {
    pub(super) longest: usize,
    pub(super) time: Duration,
    pub(super) room: &'a Arc<Semaphore>,
}

/// Reads a body whole.
///
/// # Errors
/// With the answer to one that is too long or too slow, or does not fit.
pub(super) async fn read<B>(body: B, bounds: Bounds<'_>) -> Result<Read, Response<Payload>>
where
    B: Body,
    B::Data: Buf,
{
    let mut body = pin!(body);
    let too_long = || {
        said(
            StatusCode::PAYLOAD_TOO_LARGE,
            &format!("too large: a message has at most {} bytes", bounds.longest),
        )
    };
    let refusal = 'whole: {
        if body.size_hint().lower() > bounds.longest as u64 {
            break 'whole too_long();
        }
        let Some(mut room) = take(bounds.room, 1) else {
            return Err(full());
        };
        let mut kept = 1 << 10;
        let mut bytes = BytesMut::new();
        let read = async {
            loop {
                let frame = poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
                let mut data = match frame {
                    None => return Ok(()),
                    // A client that breaks off gets no answer anyway.
                    Some(Err(_)) => {
                        return Err(said(StatusCode::BAD_REQUEST, "the body broke off"));
                    }
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(data) => data,
                        Err(_) => continue,
                    },
                };
                let length = bytes.len() + data.remaining();
                if length > bounds.longest {
                    return Err(too_long());
                }
                if length > kept {
                    let more = (length - kept).div_ceil(1 << 10);
                    let Some(more_room) = take(bounds.room, more) else {
                        return Err(full());
                    };
                    room.merge(more_room);
                    kept += more << 10;
                }
                while data.has_remaining() {
                    let chunk = data.chunk();
                    let used = chunk.len();
                    bytes.extend_from_slice(chunk);
                    data.advance(used);
                }
            }
        };
        match tokio::time::timeout(bounds.time, read).await {
            Ok(Ok(())) => {
                return Ok(Read {
                    bytes: bytes.freeze(),
                    room: Room(Arc::new(room)),
                });
            }
            Ok(Err(refusal)) => refusal,
            Err(_) => {
                return Err(said(
                    StatusCode::REQUEST_TIMEOUT,
                    "too slow: the body did not come in time",
                ));
            }
        }
    };
    let drain =
        async { while let Some(Ok(_)) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {} };
    let _ = tokio::time::timeout(DRAIN, drain).await;
    Err(refusal)
}

fn take(room: &Arc<Semaphore>, kib: usize) -> Option<OwnedSemaphorePermit> {
    let kib = u32::try_from(kib).ok()?;
    Arc::clone(room).try_acquire_many_owned(kib).ok()
}

fn full() -> Response<Payload> {
    later(
        StatusCode::SERVICE_UNAVAILABLE,
        "too much at once: the requests under way take all the room there is",
    )
}
