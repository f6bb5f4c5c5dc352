//! Serves over streamable HTTP: many clients, each with its own session.
//!
//! ```text
//! stdio  lines ─▶ transport.rs ──┐                                        ┌─▶ call.rs ─▶ Runtime::run
//! HTTP   accept.rs ─▶ guard.rs   ├─▶ connection.rs: rmcp's loop, gate.rs ─┤
//!        ─▶ post.rs, get.rs ─▶ session.rs, streams.rs                     └─▶ elicit.rs: asks the user
//! ```
//!
//! Both transports decode each message with `transport/decode.rs`, count it in the `Link` of
//! its connection and handle it with the same loop. Over HTTP a client has a `Session`:
//! requests arrive as POSTs, and messages to the client wait in `Streams` until it has had
//! time to reconnect. A request of the protocol version without sessions becomes a session of
//! one request, over tools that all such requests share. `Runtime::sibling` creates the tools
//! of a session: programs, rules and folders are shared; memory, processes and the record are
//! not.
//!
//! The HTTP part is built on hyper because rmcp's own service forgets a stream once its
//! response is sent, so that a client could not reconnect for it, and limits little of what
//! many clients can do. Access is decided before a body is read, everything is bounded, and a
//! client that disconnects may come back for the result of a call before the call is ended.

mod accept;
mod body;
mod events;
mod get;
mod guard;
mod limits;
mod post;
mod rate_limit;
mod reply;
mod session;
mod sessions;
mod standard_headers;
mod streams;

pub use limits::HttpLimits;

use crate::elicit::PendingCalls;
use crate::random;
use crate::server::{ServeError, ServerName, ToolsChanged};
use guard::Guard;
use haft::{AnyTool, Runtime};
use rate_limit::RateLimit;
use session::{Lifetime, Session, SessionParts};
use sessions::Sessions;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Time in which all sessions must end; each normally takes less than one second.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(1500);
/// Time that replies in transmission have after that.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(200);
/// Interval between searches for unused sessions and streams.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Bearer token that clients must send. `Debug` does not show it.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Creates a token from an agreed text.
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    /// Creates a token of 256 random bits.
    ///
    /// # Errors
    /// When the system's random number generator fails.
    pub fn random() -> io::Result<Self> {
        random::id().map(Self)
    }

    /// Returns the token itself, to pass it on to a client.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token(…)")
    }
}

/// Access rules and limits of an HTTP server.
#[derive(Debug, Clone, Default)]
pub struct HttpSettings {
    /// Token that clients must send. `None` serves every client that can connect, and is
    /// allowed on loopback only.
    pub token: Option<Token>,
    /// Names that clients may use for the server in `Host`, in addition to `localhost` and
    /// addresses.
    pub hosts: Vec<String>,
    /// Limits on connections, sessions and requests.
    pub limits: HttpLimits,
}

/// Reason why a server cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The address is reachable from other machines, but no token is set.
    #[error("{0} can be reached from other machines: a token is required")]
    NoToken(SocketAddr),
    /// The address is in use, or is not one of this machine.
    #[error("cannot listen on {0}: {1}")]
    Address(SocketAddr, #[source] io::Error),
}

/// Creates the tool session for a new client.
type Factory = Box<dyn Fn() -> Result<Runtime, String> + Send + Sync>;

/// Offers tools to MCP clients over streamable HTTP.
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    settings: HttpSettings,
    name: ServerName,
    changed: ToolsChanged,
    factory: Factory,
}

impl HttpServer {
    /// Listens on an address; port 0 selects any free port. `sessions` creates the tools of
    /// each client, usually with [`Runtime::sibling`]. Clients of protocol versions without
    /// sessions share one.
    ///
    /// # Errors
    /// When the address is not available, or when it is not on loopback and there is no
    /// token.
    pub async fn bind(
        address: SocketAddr,
        settings: HttpSettings,
        name: ServerName,
        sessions: impl Fn() -> Result<Runtime, String> + Send + Sync + 'static,
    ) -> Result<Self, BindError> {
        if settings.token.is_none() && !address.ip().is_loopback() {
            return Err(BindError::NoToken(address));
        }
        let failed = |error| BindError::Address(address, error);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            address,
            settings,
            name,
            changed: ToolsChanged::new(),
            factory: Box::new(sessions),
        })
    }

    /// Returns the address that the server listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, guard::PATH)
    }

    /// Returns the handle that tells all clients about changed tools.
    #[must_use]
    pub fn tools_changed(&self) -> ToolsChanged {
        self.changed.clone()
    }

    /// Serves until `shutdown` is cancelled. Then calls are cancelled and sessions end with
    /// all processes they started, within two seconds.
    ///
    /// # Errors
    /// Never, so far: a problem with one client is not a reason to leave the others.
    pub async fn serve(self, shutdown: CancellationToken) -> Result<(), ServeError> {
        let limits = self.settings.limits;
        // Dropping this future ends the sessions.
        let stop = shutdown.child_token();
        let _stopping = stop.clone().drop_guard();
        let shared = Arc::new(Shared {
            guard: Guard {
                token: self.settings.token,
                hosts: self.settings.hosts,
                is_local: self.address.ip().is_loopback(),
            },
            rate_limit: RateLimit::new(limits.rate),
            bodies: Arc::new(Semaphore::new(limits.bodies >> 10)),
            sessions: Sessions::new(limits.sessions),
            limits,
            name: self.name,
            changed: self.changed,
            factory: self.factory,
            sessionless: OnceLock::new(),
            pending: Arc::new(PendingCalls::default()),
            tasks: TaskTracker::new(),
            shutdown: stop.clone(),
        });
        let connections = TaskTracker::new();
        let sweep = async {
            loop {
                tokio::time::sleep(SWEEP_INTERVAL).await;
                let limits = &shared.limits;
                shared.sessions.sweep(limits.idle, limits.resume);
            }
        };
        tokio::select! {
            () = accept::accept(self.listener, Arc::clone(&shared), &connections, &stop) => {}
            () = sweep => {}
        }
        shared.tasks.close();
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, shared.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("some sessions did not end in time");
        }
        connections.close();
        // A client that does not read must not delay the shutdown.
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, connections.wait()).await;
        Ok(())
    }
}

/// State that all connections share.
struct Shared {
    guard: Guard,
    limits: HttpLimits,
    rate_limit: RateLimit,
    /// Memory for request bodies, in KiB.
    bodies: Arc<Semaphore>,
    sessions: Sessions,
    name: ServerName,
    changed: ToolsChanged,
    factory: Factory,
    /// Tools for requests without a session, created when the first one arrives.
    sessionless: OnceLock<Runtime>,
    pending: Arc<PendingCalls>,
    /// Sessions that have not ended.
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl Shared {
    fn start(
        &self,
        lifetime: Lifetime,
        runtime: Runtime,
        pending: Arc<PendingCalls>,
    ) -> Result<Arc<Session>, String> {
        let id = match lifetime {
            Lifetime::UntilEnded => random::id().map_err(|error| error.to_string())?,
            Lifetime::OneRequest => String::new(),
        };
        let (session, run) = Session::start(SessionParts {
            id,
            lifetime,
            runtime,
            name: &self.name,
            changed: self.changed.clone(),
            pending,
            resume: self.limits.resume,
            shutdown: &self.shutdown,
        });
        self.tasks.spawn(run);
        Ok(session)
    }

    /// Creates a session for a client.
    fn session(self: &Arc<Self>) -> Result<Arc<Session>, String> {
        let runtime = (self.factory)()?;
        let session = self.start(
            Lifetime::UntilEnded,
            runtime,
            Arc::new(PendingCalls::default()),
        )?;
        let (shared, ended) = (Arc::clone(self), Arc::clone(&session));
        self.tasks.spawn(async move {
            ended.ended().await;
            shared.sessions.remove(&ended.id);
        });
        Ok(session)
    }

    /// Creates a session for one request.
    fn session_of_one(&self) -> Result<Arc<Session>, String> {
        let runtime = self.sessionless()?;
        self.start(Lifetime::OneRequest, runtime, Arc::clone(&self.pending))
    }

    fn sessionless(&self) -> Result<Runtime, String> {
        if let Some(runtime) = self.sessionless.get() {
            return Ok(runtime.clone());
        }
        let runtime = (self.factory)()?;
        // Two first requests may race; then one of the two runtimes is dropped.
        Ok(self.sessionless.get_or_init(|| runtime).clone())
    }

    /// Returns a tool for requests without a session.
    fn tool(&self, name: &str) -> Option<Arc<dyn AnyTool>> {
        self.sessionless().ok()?.tools().get(name)
    }
}
