//! Accepts connections, limited in number and in the time that they may be idle.

use super::reply::{Payload, method_not_allowed, retry_later};
use super::{Shared, get, post};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Pause after a failure to accept, such as too many open files.
const RETRY_DELAY: Duration = Duration::from_millis(50);
/// Number of failures in a row after which a warning is logged.
const WARN_AFTER: u32 = 20;
/// Maximum size of a request's head in bytes.
const MAX_HEAD: usize = 32 << 10;

/// Response for connections beyond the limit.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n\
    content-length: 0\r\nconnection: close\r\n\r\n";

/// Accepts connections until `shutdown` is cancelled.
pub(super) async fn accept(
    listener: TcpListener,
    shared: Arc<Shared>,
    connections: &TaskTracker,
    shutdown: &CancellationToken,
) {
    let slots = Arc::new(Semaphore::new(shared.limits.connections));
    let mut failures = 0;
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // A client that disconnects before it is accepted causes an error too,
                // which is harmless.
                failures += 1;
                if failures % WARN_AFTER == 0 {
                    tracing::warn!(%error, "cannot accept connections");
                }
                tokio::time::sleep(RETRY_DELAY).await;
                continue;
            }
        };
        failures = 0;
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            let _ = stream.try_write(FULL);
            continue;
        };
        // Small messages are sent immediately.
        let _ = stream.set_nodelay(true);
        let shared = Arc::clone(&shared);
        let shutdown = shutdown.clone();
        connections.spawn(async move {
            serve(stream, shared, shutdown).await;
            drop(slot);
        });
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>, shutdown: CancellationToken) {
    let stream = WriteTimeout::new(stream, shared.limits.stalled);
    let head = shared.limits.head;
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(answer(&shared, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_buf_size(MAX_HEAD)
        .max_header_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let served = tokio::select! {
        served = &mut connection => served,
        () = shutdown.cancelled() => {
            // Requests in progress are answered; the sessions end their streams.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Handles one request.
async fn answer(shared: &Arc<Shared>, request: Request<Incoming>) -> Response<Payload> {
    let (parts, body) = request.into_parts();
    if let Some(refusal) = shared.guard.check(&parts) {
        return refusal;
    }
    // After the guard, so that unauthorized clients cannot use up the request rate of
    // others.
    if !shared.rate_limit.admits() {
        return retry_later(
            StatusCode::TOO_MANY_REQUESTS,
            "too many requests: try again in a second",
        );
    }
    match parts.method {
        Method::POST => post::post(shared, parts, body).await,
        Method::GET => get::get(shared, &parts),
        Method::DELETE => get::delete(shared, &parts).await,
        _ => method_not_allowed("GET, POST, DELETE"),
    }
}

/// A connection with a time limit for clients that do not read.
struct WriteTimeout {
    stream: TcpStream,
    timeout: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeout {
    fn new(stream: TcpStream, timeout: Duration) -> Self {
        Self {
            stream,
            timeout,
            deadline: None,
        }
    }

    fn check_timeout<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let timeout = self.timeout;
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for WriteTimeout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for WriteTimeout {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check_timeout(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.check_timeout(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.check_timeout(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
