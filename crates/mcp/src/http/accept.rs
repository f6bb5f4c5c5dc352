//! Connections: so many, and none for ever.

use super::reply::{Payload, later, no_method};
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

/// How long is waited when the machine has no more connections to give.
const BREATH: Duration = Duration::from_millis(50);
/// How often in a row that may happen before it is said.
const PATIENCE: u32 = 20;
/// The longest head of a request.
const HEAD: usize = 32 << 10;

/// What a connection gets that is one too many.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n\
    content-length: 0\r\nconnection: close\r\n\r\n";

/// Accepts connections until it is told to stop.
pub(super) async fn accept(
    listener: TcpListener,
    shared: Arc<Shared>,
    connections: &TaskTracker,
    shutdown: &CancellationToken,
) {
    let places = Arc::new(Semaphore::new(shared.limits.connections));
    let mut failures = 0;
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // One that was gone before it was accepted is nobody's fault.
                failures += 1;
                if failures % PATIENCE == 0 {
                    tracing::warn!(%error, "connections cannot be accepted");
                }
                tokio::time::sleep(BREATH).await;
                continue;
            }
        };
        failures = 0;
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            let _ = stream.try_write(FULL);
            continue;
        };
        // Small messages go out at once.
        let _ = stream.set_nodelay(true);
        let shared = Arc::clone(&shared);
        let shutdown = shutdown.clone();
        connections.spawn(async move {
            serve(stream, shared, shutdown).await;
            drop(place);
        });
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>, shutdown: CancellationToken) {
    let stream = Patient::new(stream, shared.limits.stalled);
    let head = shared.limits.head;
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(answer(&shared, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_buf_size(HEAD)
        .max_header_size(HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let served = tokio::select! {
        served = &mut connection => served,
        () = shutdown.cancelled() => {
            // What is being answered is answered; the sessions end their streams.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// One request.
async fn answer(shared: &Arc<Shared>, request: Request<Incoming>) -> Response<Payload> {
    let (parts, body) = request.into_parts();
    if let Some(refusal) = shared.guard.refuses(&parts) {
        return refusal;
    }
    // After that, so that strangers do not use up what others are allowed.
    if !shared.pace.admits() {
        return later(
            StatusCode::TOO_MANY_REQUESTS,
            "too many requests: try again in a second",
        );
    }
    match parts.method {
        Method::POST => post::post(shared, parts, body).await,
        Method::GET => get::get(shared, &parts),
        Method::DELETE => get::delete(shared, &parts).await,
        _ => no_method("GET, POST, DELETE"),
    }
}

/// A connection that does not wait for ever for a client that does not read.
struct Patient {
    stream: TcpStream,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn new(stream: TcpStream, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            waiting: None,
        }
    }

    fn written<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let patience = self.patience;
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.written(cx, flushed)
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
        self.written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
