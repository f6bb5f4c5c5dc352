//! Serving: one runtime, one pair of streams, from the first line to the last.

use crate::connection::Connection;
use crate::elicit::Waiting;
use crate::link::Link;
use crate::ready::Ready;
use crate::stdio;
use crate::transport::{Outbox, Queue, Transport, pump};
use haft::Runtime;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What the server calls itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerName {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl ServerName {
    /// A name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
        }
    }
}

/// Why serving ended other than by the end of input, a shutdown or a client
/// that went away.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The input could not be read.
    #[error("the client's messages cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The output could not be written, although the client is still there.
    #[error("the answers cannot be written: {0}")]
    Write(#[source] io::Error),
    /// A thread for the standard streams could not be started.
    #[error("the standard streams cannot be served: {0}")]
    Thread(#[source] io::Error),
    /// The protocol loop died.
    #[error("the protocol loop ended early: {0}")]
    Loop(String),
}

/// Says to a client that the tools are others now. Cheap to clone; it may
/// outlive the server.
#[derive(Debug, Clone)]
pub struct ToolsChanged(watch::Sender<()>);

impl ToolsChanged {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    /// Tells every client that wants to know. Several calls in a row may become
    /// one notification.
    pub fn notify(&self) {
        self.0.send_replace(());
    }

    pub(crate) fn watch(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }
}

/// Offers the tools of a runtime to MCP clients.
pub struct Server {
    runtime: Runtime,
    name: ServerName,
    changed: ToolsChanged,
}

/// Serves a runtime over standard input and output. See [`Server::serve_stdio`].
///
/// # Errors
/// As [`Server::serve_stdio`].
pub async fn serve_stdio(
    runtime: Runtime,
    name: ServerName,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    Server::new(runtime, name).serve_stdio(shutdown).await
}

impl Server {
    /// A server for this runtime.
    #[must_use]
    pub fn new(runtime: Runtime, name: ServerName) -> Self {
        Self {
            runtime,
            name,
            changed: ToolsChanged::new(),
        }
    }

    /// With which to say that the runtime's tools were changed.
    #[must_use]
    pub fn tools_changed(&self) -> ToolsChanged {
        self.changed.clone()
    }

    /// Serves standard input and output until the input ends, the output is
    /// closed or `shutdown` is cancelled. Calls that run then get a moment to
    /// finish, are cancelled and at last dropped, all within one second.
    ///
    /// Nothing else may write to standard output meanwhile.
    ///
    /// # Errors
    /// When the streams fail in another way than by being closed.
    pub async fn serve_stdio(&self, shutdown: CancellationToken) -> Result<(), ServeError> {
        // Pipes, sockets and terminals say when they are ready; files do not.
        if let (Ok(reader), Ok(writer)) = (Ready::stdin(), Ready::stdout()) {
            return self.serve(reader, writer, shutdown).await;
        }
        let input = stdio::input().map_err(ServeError::Thread)?;
        let link = Arc::new(Link::new());
        let (outbox, queue) = Outbox::new();
        stdio::output(queue, Arc::clone(&link)).map_err(ServeError::Thread)?;
        self.run(input, outbox, link, shutdown).await
    }

    /// Serves any pair of streams, as [`Server::serve_stdio`] does.
    ///
    /// # Errors
    /// When the streams fail in another way than by being closed.
    pub async fn serve<R, W>(
        &self,
        reader: R,
        writer: W,
        shutdown: CancellationToken,
    ) -> Result<(), ServeError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let link = Arc::new(Link::new());
        let (outbox, queue) = Outbox::new();
        let _writing = Writing::spawn(queue, writer, Arc::clone(&link));
        self.run(reader, outbox, link, shutdown).await
    }

    async fn run<R>(
        &self,
        reader: R,
        outbox: Outbox,
        link: Arc<Link>,
        shutdown: CancellationToken,
    ) -> Result<(), ServeError>
    where
        R: AsyncRead + Send + Unpin + 'static,
    {
        let transport = Transport::new(reader, outbox, Arc::clone(&link));
        Connection {
            runtime: self.runtime.clone(),
            name: &self.name,
            changed: self.changed.clone(),
            link,
            waiting: Arc::new(Waiting::default()),
        }
        .run(transport, &shutdown)
        .await
    }
}

/// The task that writes; it does not outlive the serving.
struct Writing(tokio::task::JoinHandle<()>);

impl Writing {
    fn spawn<W>(queue: Queue, writer: W, link: Arc<Link>) -> Self
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        Self(tokio::spawn(pump(queue, writer, link)))
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.abort();
    }
}
