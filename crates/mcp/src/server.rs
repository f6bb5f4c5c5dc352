//! Serves one runtime over a pair of streams until the connection ends.

use crate::connection::Connection;
use crate::elicit::PendingCalls;
use crate::link::Link;
use crate::polled_fd::PolledFd;
use crate::stdio;
use crate::transport::{Outbox, Queue, Transport, pump};
use haft::Runtime;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Name and version that the server reports to clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerName {
    /// Shown by clients, such as `haft`.
    pub name: String,
    /// In any format; clients only show it.
    pub version: String,
}

impl ServerName {
    /// Creates the identification from a name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
        }
    }
}

/// Reason why serving failed. The end of input, a shutdown and a client that disconnects
/// are not failures.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The client's messages could not be read.
    #[error("cannot read the client's messages: {0}")]
    Read(#[source] io::Error),
    /// Writing failed although the client is still connected.
    #[error("cannot write replies: {0}")]
    Write(#[source] io::Error),
    /// A thread for standard input or output could not be started.
    #[error("cannot serve standard input and output: {0}")]
    Thread(#[source] io::Error),
    /// The protocol loop panicked or was aborted.
    #[error("the protocol loop ended early: {0}")]
    Loop(String),
}

/// Notifies clients that the list of tools changed. Cheap to clone, and may outlive the
/// server.
#[derive(Debug, Clone)]
pub struct ToolsChanged(watch::Sender<()>);

impl ToolsChanged {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    /// Notifies every client that is interested. Several calls in a row may become one
    /// notification.
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
/// Same as [`Server::serve_stdio`].
pub async fn serve_stdio(
    runtime: Runtime,
    name: ServerName,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    Server::new(runtime, name).serve_stdio(shutdown).await
}

impl Server {
    /// Creates a server for this runtime.
    #[must_use]
    pub fn new(runtime: Runtime, name: ServerName) -> Self {
        Self {
            runtime,
            name,
            changed: ToolsChanged::new(),
        }
    }

    /// Returns the handle that tells clients about changed tools.
    #[must_use]
    pub fn tools_changed(&self) -> ToolsChanged {
        self.changed.clone()
    }

    /// Serves standard input and output until the input ends, the output is closed or
    /// `shutdown` is cancelled. Running calls then get a moment to finish, are cancelled,
    /// and are finally dropped, all within one second.
    ///
    /// Nothing else may write to standard output in the meantime.
    ///
    /// # Errors
    /// When a stream fails in any way other than being closed.
    pub async fn serve_stdio(&self, shutdown: CancellationToken) -> Result<(), ServeError> {
        // Pipes, sockets and terminals report when they are ready; files do not.
        if let (Ok(reader), Ok(writer)) = (PolledFd::stdin(), PolledFd::stdout()) {
            return self.serve(reader, writer, shutdown).await;
        }
        let input = stdio::input().map_err(ServeError::Thread)?;
        let link = Arc::new(Link::new());
        let (outbox, queue) = Outbox::new();
        stdio::output(queue, Arc::clone(&link)).map_err(ServeError::Thread)?;
        self.run(input, outbox, link, shutdown).await
    }

    /// Serves any pair of streams, like [`Server::serve_stdio`].
    ///
    /// # Errors
    /// When a stream fails in any way other than being closed.
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
        let _writer_task = WriterTask::spawn(queue, writer, Arc::clone(&link));
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
            pending: Arc::new(PendingCalls::default()),
        }
        .run(transport, &shutdown)
        .await
    }
}

/// The task that writes replies. Dropping it stops the task.
struct WriterTask(tokio::task::JoinHandle<()>);

impl WriterTask {
    fn spawn<W>(queue: Queue, writer: W, link: Arc<Link>) -> Self
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        Self(tokio::spawn(pump(queue, writer, link)))
    }
}

impl Drop for WriterTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
