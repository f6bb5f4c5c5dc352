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
mod pace;
mod post;
mod reply;
mod session;
mod sessions;
mod standard;
mod streams;

pub use limits::HttpLimits;

use crate::elicit::Waiting;
use crate::random;
use crate::server::{ServeError, ServerName, ToolsChanged};
use guard::Guard;
use haft::{AnyTool, Runtime};
use pace::Pace;
use session::{Made, Session, Span};
use sessions::Sessions;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long everything may take to end: sessions do it within one second.
const ENDING: Duration = Duration::from_millis(1500);
/// Then, how long answers that are on their way may take.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How often is looked for what nobody uses any more.
const SWEEP: Duration = Duration::from_secs(1);

/// What a client has to know. It is never shown.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A token that was agreed on.
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    /// A new one, of 256 random bits.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn random() -> io::Result<Self> {
        random::name().map(Self)
    }

    /// The token itself, for who hands it on.
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

/// Who is served, and how much.
#[derive(Debug, Clone, Default)]
pub struct HttpSettings {
    /// What clients have to bring. Without one, whoever reaches the server is served,
    /// which is allowed on loopback only.
    pub token: Option<Token>,
    /// Names by which clients may call the server, beyond `localhost` and addresses.
    pub hosts: Vec<String>,
    /// The bounds.
    pub limits: HttpLimits,
}

/// Why a server cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Everybody could reach it, and nobody would be asked who they are.
    #[error("{0} can be reached from other machines, so a token is needed")]
    NoToken(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {0}: {1}")]
    Address(SocketAddr, #[source] io::Error),
}

/// Makes the session of tools of a client that comes.
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
    /// Listens on an address; a port of 0 is any that is free. `sessions` makes the tools
    /// of each client: [`Runtime::sibling`] is made for that. Clients of versions without
    /// sessions share one.
    ///
    /// # Errors
    /// When the address cannot be had, or is not on loopback and there is no token.
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

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same for a client.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, guard::PATH)
    }

    /// With which to say to all clients that the tools were changed.
    #[must_use]
    pub fn tools_changed(&self) -> ToolsChanged {
        self.changed.clone()
    }

    /// Serves until `shutdown` is cancelled. Then calls are cancelled, sessions end with
    /// what they started, and all of that within two seconds.
    ///
    /// # Errors
    /// None so far: whatever goes wrong with one client is no reason to leave the others.
    pub async fn serve(self, shutdown: CancellationToken) -> Result<(), ServeError> {
        let limits = self.settings.limits;
        // Whoever drops this future ends the sessions.
        let stop = shutdown.child_token();
        let _stopping = stop.clone().drop_guard();
        let shared = Arc::new(Shared {
            guard: Guard {
                token: self.settings.token,
                hosts: self.settings.hosts,
                is_local: self.address.ip().is_loopback(),
            },
            pace: Pace::new(limits.rate),
            bodies: Arc::new(Semaphore::new(limits.bodies >> 10)),
            sessions: Sessions::new(limits.sessions),
            limits,
            name: self.name,
            changed: self.changed,
            factory: self.factory,
            together: OnceLock::new(),
            waiting: Arc::new(Waiting::default()),
            work: TaskTracker::new(),
            shutdown: stop.clone(),
        });
        let connections = TaskTracker::new();
        let sweep = async {
            loop {
                tokio::time::sleep(SWEEP).await;
                let limits = &shared.limits;
                shared.sessions.sweep(limits.idle, limits.resume);
            }
        };
        tokio::select! {
            () = accept::accept(self.listener, Arc::clone(&shared), &connections, &stop) => {}
            () = sweep => {}
        }
        shared.work.close();
        if tokio::time::timeout(ENDING, shared.work.wait())
            .await
            .is_err()
        {
            tracing::warn!("some sessions did not end in time");
        }
        connections.close();
        // A client that does not read cannot keep us.
        let _ = tokio::time::timeout(LAST_WORDS, connections.wait()).await;
        Ok(())
    }
}

/// What all connections share.
struct Shared {
    guard: Guard,
    limits: HttpLimits,
    pace: Pace,
    /// Room for the bodies of requests, in KiB.
    bodies: Arc<Semaphore>,
    sessions: Sessions,
    name: ServerName,
    changed: ToolsChanged,
    factory: Factory,
    /// The tools of those who have no session, once somebody came.
    together: OnceLock<Runtime>,
    waiting: Arc<Waiting>,
    /// The sessions that have not ended.
    work: TaskTracker,
    shutdown: CancellationToken,
}

impl Shared {
    fn begin(
        &self,
        span: Span,
        runtime: Runtime,
        waiting: Arc<Waiting>,
    ) -> Result<Arc<Session>, String> {
        let id = match span {
            Span::Many => random::name().map_err(|error| error.to_string())?,
            Span::One => String::new(),
        };
        let (session, work) = Session::begin(Made {
            id,
            span,
            runtime,
            name: &self.name,
            changed: self.changed.clone(),
            waiting,
            resume: self.limits.resume,
            shutdown: &self.shutdown,
        });
        self.work.spawn(work);
        Ok(session)
    }

    /// A session for a client.
    fn session(self: &Arc<Self>) -> Result<Arc<Session>, String> {
        let runtime = (self.factory)()?;
        let session = self.begin(Span::Many, runtime, Arc::new(Waiting::default()))?;
        let (shared, ended) = (Arc::clone(self), Arc::clone(&session));
        self.work.spawn(async move {
            ended.ended().await;
            shared.sessions.remove(&ended.id);
        });
        Ok(session)
    }

    /// A session for one request.
    fn session_of_one(&self) -> Result<Arc<Session>, String> {
        let runtime = self.together()?;
        self.begin(Span::One, runtime, Arc::clone(&self.waiting))
    }

    fn together(&self) -> Result<Runtime, String> {
        if let Some(runtime) = self.together.get() {
            return Ok(runtime.clone());
        }
        let runtime = (self.factory)()?;
        // Two may come first; then one of the two is for nothing.
        Ok(self.together.get_or_init(|| runtime).clone())
    }

    /// A tool of those who have no session.
    fn tool(&self, name: &str) -> Option<Arc<dyn AnyTool>> {
        self.together().ok()?.tools().get(name)
    }
}
