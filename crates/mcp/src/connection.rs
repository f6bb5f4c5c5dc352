//! The protocol loop of one client's connection, whatever carries its messages.

use crate::elicit::PendingCalls;
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

/// Time that the last replies may take to reach a client that reads slowly.
const FLUSH: Duration = Duration::from_millis(100);

/// Everything that a connection is built from.
pub(crate) struct Connection<'a> {
    pub(crate) runtime: Runtime,
    pub(crate) name: &'a ServerName,
    pub(crate) changed: ToolsChanged,
    pub(crate) link: Arc<Link>,
    pub(crate) pending: Arc<PendingCalls>,
}

impl Connection<'_> {
    /// Serves until the input ends, the output is closed or `shutdown` is cancelled.
    pub(crate) async fn run<T>(
        self,
        transport: T,
        shutdown: &CancellationToken,
    ) -> Result<(), ServeError>
    where
        T: Transport<RoleServer, Error = Infallible> + 'static,
    {
        let link = self.link;
        // Dropping this future drops the running calls with it.
        let _stop = link.drop_calls.clone().drop_guard();
        // One per connection, so that each client hears of a change once, whatever reported
        // it.
        let changed = ToolsChanged::new();
        let changes = changed.watch();
        let notifier = changed.clone();
        let mut external = self.changed.watch();
        let mut tools = self.runtime.tools().changes();
        let is_ready = load_tools(self.runtime.clone());
        let handler = Handler::new(
            self.runtime,
            self.name,
            is_ready,
            changed,
            Arc::clone(&link),
            self.pending,
        );
        // Tools that appear or disappear on their own are reported too.
        let follow = async move {
            loop {
                tokio::select! {
                    Ok(()) = tools.changed() => notifier.notify(),
                    Ok(()) = external.changed() => notifier.notify(),
                    else => std::future::pending().await,
                }
            }
        };
        // rmcp's own handshake would end at the first stray notification, and fixes one
        // life cycle for the whole connection; `Gate` checks each request instead.
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
        // A client that does not read must not delay the shutdown.
        let _ = tokio::time::timeout(FLUSH, link.flushed.cancelled()).await;
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

/// Loads the tools of plugins and other servers. The client is answered in the meantime,
/// and hears of tools that arrive later. The task goes on if the connection ends, because
/// other connections may use the same tools.
fn load_tools(runtime: Runtime) -> watch::Receiver<bool> {
    let (sender, is_ready) = watch::channel(false);
    tokio::spawn(async move {
        runtime.ready().await;
        let _ = sender.send(true);
    });
    is_ready
}

/// Notifies clients that completed a handshake; the others subscribe themselves.
async fn announce(mut changes: watch::Receiver<()>, peer: Peer<RoleServer>) {
    while changes.changed().await.is_ok() {
        if peer.peer_info().is_some() && peer.notify_tool_list_changed().await.is_err() {
            tracing::debug!("cannot notify the client of changed tools");
        }
    }
    // The server owns the sender, so this is unreachable while it serves.
    std::future::pending().await
}
