//! One client's connection, whatever carries its messages: the protocol loop, from the
//! first message to the last.

use crate::elicit::Waiting;
use crate::gate::Gate;
use crate::handler::Handler;
use crate::link::Link;
use crate::server::{ServeError, ServerName, ToolsChanged};
use haft::Runtime;
use rmcp::service::{Peer, QuitReason, RoleServer, serve_directly_with_ct};
use rmcp::transport::Transport;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How long the last answers may take to reach a client that reads slowly.
const FLUSH: Duration = Duration::from_millis(100);

/// What a connection is made from.
pub(crate) struct Connection<'a> {
    pub(crate) runtime: Runtime,
    pub(crate) name: &'a ServerName,
    pub(crate) changed: ToolsChanged,
    pub(crate) link: Arc<Link>,
    pub(crate) waiting: Arc<Waiting>,
}

impl Connection<'_> {
    /// Serves until the input ends, nobody reads the answers or `shutdown` is cancelled.
    pub(crate) async fn run<T>(
        self,
        transport: T,
        shutdown: &CancellationToken,
    ) -> Result<(), ServeError>
    where
        T: Transport<RoleServer, Error = Infallible> + 'static,
    {
        let link = self.link;
        // Whoever drops this future drops the calls with it.
        let _stop = link.stop.clone().drop_guard();
        // Of its own, so that a change that many see is told to each once.
        let changed = ToolsChanged::new();
        let changes = changed.watch();
        let told = changed.clone();
        let mut said = self.changed.watch();
        let mut tools = self.runtime.tools().changes();
        let handler = Handler::new(
            self.runtime,
            self.name,
            changed,
            Arc::clone(&link),
            self.waiting,
        );
        // What comes and goes by itself is told as well.
        let follow = async move {
            loop {
                tokio::select! {
                    Ok(()) = tools.changed() => told.notify(),
                    Ok(()) = said.changed() => told.notify(),
                    else => std::future::pending().await,
                }
            }
        };
        // rmcp's own opening would end at the first stray notification, and
        // fixes one life cycle for the connection; the gate checks each request.
        let service = serve_directly_with_ct(
            Gate::new(handler),
            transport,
            None,
            CancellationToken::new(),
        );
        let peer = service.peer().clone();
        let mut ended = pin!(service.waiting());
        let quit = tokio::select! {
            quit = &mut ended => quit,
            () = announce(changes, peer) => ended.await,
            () = follow => ended.await,
            () = link.wind_down(shutdown) => ended.await,
        };
        // A client that does not read cannot keep us.
        let _ = tokio::time::timeout(FLUSH, link.written.cancelled()).await;
        if let Some(fault) = link.fault() {
            return Err(fault);
        }
        match quit {
            Ok(QuitReason::JoinError(error)) | Err(error) => {
                Err(ServeError::Loop(error.to_string()))
            }
            Ok(_) => Ok(()),
        }
    }
}

/// Tells clients that had a handshake; the others subscribe for themselves.
async fn announce(mut changes: watch::Receiver<()>, peer: Peer<RoleServer>) {
    while changes.changed().await.is_ok() {
        if peer.peer_info().is_some() && peer.notify_tool_list_changed().await.is_err() {
            tracing::debug!("the client could not be told that the tools changed");
        }
    }
    // The server holds the sender, so this is not reached while it serves.
    std::future::pending().await
}
