//! Reads the body of a request within limits.

use super::reply::{Payload, plain_text, retry_later};
use bytes::{Buf, Bytes, BytesMut};
use http::{Response, StatusCode};
use http_body::Body;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Time to keep reading a refused body, so that the error reaches a client that is still
/// sending.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A body, and the memory reserved for it.
pub(super) struct Read {
    pub(super) bytes: Bytes,
    pub(super) room: Room,
}

/// Reservation, in KiB, for the body of an unanswered request. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Room(#[expect(dead_code, reason = "held, not used")] Arc<OwnedSemaphorePermit>);

/// Limits for reading a body.
pub(super) struct Bounds<'a> {
    pub(super) max_bytes: usize,
    pub(super) timeout: Duration,
    pub(super) room: &'a Arc<Semaphore>,
}

/// Reads a complete body.
///
/// # Errors
/// With the response to a body that is too long or too slow, or for which there is no
/// memory left.
pub(super) async fn read<B>(body: B, bounds: Bounds<'_>) -> Result<Read, Response<Payload>>
where
    B: Body,
    B::Data: Buf,
{
    let mut body = pin!(body);
    let too_long = || {
        plain_text(
            StatusCode::PAYLOAD_TOO_LARGE,
            &format!(
                "too large: a message may have at most {} bytes",
                bounds.max_bytes
            ),
        )
    };
    let refusal = 'refused: {
        if body.size_hint().lower() > bounds.max_bytes as u64 {
            break 'refused too_long();
        }
        let Some(mut room) = take(bounds.room, 1) else {
            return Err(no_room());
        };
        let mut reserved = 1 << 10;
        let mut bytes = BytesMut::new();
        let read = async {
            loop {
                let frame = poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
                let mut data = match frame {
                    None => return Ok(()),
                    // A client that disconnects gets no response anyway.
                    Some(Err(_)) => {
                        return Err(plain_text(
                            StatusCode::BAD_REQUEST,
                            "the body is incomplete",
                        ));
                    }
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(data) => data,
                        Err(_) => continue,
                    },
                };
                let length = bytes.len() + data.remaining();
                if length > bounds.max_bytes {
                    return Err(too_long());
                }
                if length > reserved {
                    let more = (length - reserved).div_ceil(1 << 10);
                    let Some(more_room) = take(bounds.room, more) else {
                        return Err(no_room());
                    };
                    room.merge(more_room);
                    reserved += more << 10;
                }
                while data.has_remaining() {
                    let chunk = data.chunk();
                    let used = chunk.len();
                    bytes.extend_from_slice(chunk);
                    data.advance(used);
                }
            }
        };
        match tokio::time::timeout(bounds.timeout, read).await {
            Ok(Ok(())) => {
                return Ok(Read {
                    bytes: bytes.freeze(),
                    room: Room(Arc::new(room)),
                });
            }
            Ok(Err(refusal)) => refusal,
            Err(_) => {
                return Err(plain_text(
                    StatusCode::REQUEST_TIMEOUT,
                    "too slow: the body did not arrive in time",
                ));
            }
        }
    };
    let drain =
        async { while let Some(Ok(_)) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {} };
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, drain).await;
    Err(refusal)
}

fn take(room: &Arc<Semaphore>, kib: usize) -> Option<OwnedSemaphorePermit> {
    let kib = u32::try_from(kib).ok()?;
    Arc::clone(room).try_acquire_many_owned(kib).ok()
}

fn no_room() -> Response<Payload> {
    retry_later(
        StatusCode::SERVICE_UNAVAILABLE,
        "out of memory for requests: too many are in progress",
    )
}
