//! A server of a session, with its connection, restarts and cached tool list.

use super::call::{Call, Outcome};
use super::connect::{ConnectError, Connection, Connector, ConversationStart};
use super::content;
use super::remote::{Endpoint, Remote, SetupError};
use super::sign_in::SignIn;
use super::tool::RemoteTool;
use super::tool_list::{self, ListedTool, ToolList};
use futures::future::BoxFuture;
use haft::{AnyTool, Context, Error, Installer, Programs, Recheck, Reply, Source, SourceTools};
use haft_web::Client;
use rmcp::model::{ClientRequest, PingRequest};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

/// Time that a server has for the handshake, and again for listing its tools.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of crashes in a row after which a program is disabled.
const MAX_CRASHES: u32 = 5;

/// Delay of the first restart; it doubles with each crash.
const BACKOFF: Duration = Duration::from_millis(100);

/// Maximum delay before reconnecting.
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// Time that a server has to answer a ping after it did not answer a call.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Minimum interval between refreshes of a list that keeps changing.
const REFRESH_INTERVAL: Duration = Duration::from_millis(500);

/// Time for which a cached tool list is valid.
const CACHE_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Version of the cache format; other versions are ignored.
const CACHE_VERSION: u64 = 1;

/// An MCP server as a source of tools.
pub struct RemoteServer {
    pub(super) remote: Remote,
    pub(super) client: Client,
    pub(super) sign_in: Option<Arc<SignIn>>,
    weak: Weak<Self>,
    programs: OnceLock<Option<Programs>>,
    state: Mutex<ConnectionState>,
    /// The last tool list.
    cached: StdMutex<Option<Arc<CachedTools>>>,
    /// Whether the server has reported that its tools changed.
    is_stale: AtomicBool,
    refreshed: StdMutex<Option<Instant>>,
    changes: watch::Sender<u64>,
}

/// A tool list, as JSON and parsed.
struct CachedTools {
    raw: Vec<Value>,
    list: ToolList,
}

struct ConnectionState {
    connection: Option<Arc<Connection>>,
    start_mode: ConversationStart,
    crashes: u32,
    crashed: Option<Instant>,
}

fn lock<T>(mutex: &StdMutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RemoteServer {
    /// Creates a server. It is not connected before it is needed.
    ///
    /// # Errors
    /// When an HTTP client cannot be created.
    pub fn new(remote: Remote) -> Result<Arc<Self>, SetupError> {
        let client = Client::new(haft_web::Settings::default())
            .map_err(|error| SetupError(error.to_string()))?;
        let sign_in = match (&remote.endpoint, &remote.tokens) {
            (Endpoint::Address { url, .. }, Some(tokens)) => {
                let sign_in = SignIn::new(
                    url.clone(),
                    client.clone(),
                    remote.identity.clone(),
                    Arc::clone(tokens),
                );
                Some(Arc::new(sign_in))
            }
            _ => None,
        };
        Ok(Arc::new_cyclic(|weak| Self {
            remote,
            client,
            sign_in,
            weak: Weak::clone(weak),
            programs: OnceLock::new(),
            state: Mutex::new(ConnectionState {
                connection: None,
                start_mode: ConversationStart::Unknown,
                crashes: 0,
                crashed: None,
            }),
            cached: StdMutex::default(),
            is_stale: AtomicBool::new(false),
            refreshed: StdMutex::default(),
            changes: watch::Sender::new(0),
        }))
    }

    /// Returns the configured name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.remote.name
    }

    /// Returns the remote host, or `None` for a program on this machine.
    pub(super) fn host(&self) -> Option<String> {
        match &self.remote.endpoint {
            Endpoint::Program { .. } => None,
            Endpoint::Address { url, .. } => url.host_str().map(str::to_owned),
        }
    }

    /// Returns the trust level of the server's program, if it is one.
    pub(super) fn installer(&self) -> Option<Installer> {
        match &self.remote.endpoint {
            Endpoint::Program { .. } => Some(self.remote.installer),
            Endpoint::Address { .. } => None,
        }
    }

    pub(super) fn failed(&self, what: impl std::fmt::Display) -> Error {
        Error::failed(format!("{} {what}", self.label()))
    }

    fn describe(&self, what: impl std::fmt::Display) -> String {
        format!("{} {what}", self.label())
    }

    /// Returns a connector to the server.
    pub(super) fn connector(&self, start_mode: ConversationStart) -> Connector<'_> {
        let weak = Weak::clone(&self.weak);
        Connector {
            remote: &self.remote,
            programs: self.programs.get().and_then(Option::as_ref),
            client: &self.client,
            sign_in: self.sign_in.as_ref(),
            start_mode,
            changed: Arc::new(move || {
                if let Some(server) = weak.upgrade() {
                    server.is_stale.store(true, Ordering::SeqCst);
                    server.changes.send_modify(|changes| *changes += 1);
                }
            }),
        }
    }

    pub(super) fn run_with(&self, programs: Option<&Programs>) {
        let _ = self.programs.set(programs.cloned());
    }

    /// Whether the server may run now. Returns a function that repeats the check later.
    pub(super) fn may_run(&self) -> Result<Option<Recheck>, Error> {
        match &self.remote.check {
            Some(check) => check().map(Some).map_err(Error::failed),
            None => Ok(None),
        }
    }

    /// Repeats the check now that the server has loaded its code: if that is no longer the
    /// trusted code, it gets no call.
    pub(super) async fn recheck(
        &self,
        recheck: Option<Recheck>,
        connection: &Connection,
    ) -> Result<(), Error> {
        let Some(Err(reason)) = recheck.map(|recheck| recheck()) else {
            return Ok(());
        };
        connection.end().await;
        Err(self.failed(format!("was stopped before it got a call: {reason}")))
    }

    fn connect_error(&self, error: ConnectError) -> Error {
        match error {
            ConnectError::Failed(text) => self.failed(text),
            ConnectError::SignIn(_) => self.failed(format!(
                "wants you to sign in: `haft mcp test {}`",
                self.remote.name
            )),
        }
    }

    /// Connects and lists the tools.
    async fn connect_and_list(
        &self,
        start_mode: ConversationStart,
    ) -> Result<(Arc<Connection>, Vec<Value>), Error> {
        let recheck = self.may_run()?;
        let connection = self.connector(start_mode).connect(START_TIMEOUT).await;
        let connection = connection.map_err(|error| self.connect_error(error))?;
        let raw = match tokio::time::timeout(START_TIMEOUT, connection.list()).await {
            Ok(Ok(raw)) => raw,
            Ok(Err(_)) if connection.has_ended() => {
                return Err(self.failed(connection.describe_loss().await));
            }
            Ok(Err(text)) => return Err(self.failed(text)),
            Err(_) => {
                connection.end().await;
                return Err(self.failed(format!(
                    "did not list its tools within {} seconds",
                    START_TIMEOUT.as_secs()
                )));
            }
        };
        self.recheck(recheck, &connection).await?;
        self.store_cache(&connection, &raw);
        Ok((Arc::new(connection), raw))
    }

    /// Returns the connection for calls; connects first if needed.
    async fn connection(&self) -> Result<Arc<Connection>, Error> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection
            && !connection.has_ended()
        {
            return Ok(Arc::clone(connection));
        }
        // A server that ended since its last call has crashed too.
        if state.connection.take().is_some() {
            state.record_crash();
        }
        let is_program = matches!(self.remote.endpoint, Endpoint::Program { .. });
        if is_program && state.crashes >= MAX_CRASHES {
            return Err(self.failed(format!(
                "is disabled: it ended {MAX_CRASHES} times in a row; `haft mcp test {}` shows what is wrong",
                self.remote.name
            )));
        }
        if let Some(crashed) = state.crashed {
            let wait = BACKOFF * 2_u32.saturating_pow(state.crashes.saturating_sub(1));
            tokio::time::sleep_until(crashed + wait.min(MAX_BACKOFF)).await;
        }
        match self.connect_and_list(state.start_mode).await {
            Ok((connection, raw)) => {
                state.start_mode = connection.start_mode();
                state.connection = Some(Arc::clone(&connection));
                drop(state);
                self.update_tools(raw);
                Ok(connection)
            }
            Err(error) => {
                state.start_mode = ConversationStart::Unknown;
                state.record_crash();
                Err(error)
            }
        }
    }

    /// Updates the tool list, and notifies the session if it has changed.
    fn update_tools(&self, raw: Vec<Value>) {
        let before = lock(&self.cached).clone();
        if before.as_ref().is_some_and(|before| before.raw == raw) {
            return;
        }
        self.store_tools(raw);
        if before.is_some() {
            self.changes.send_modify(|changes| *changes += 1);
        }
    }

    fn store_tools(&self, raw: Vec<Value>) -> Arc<CachedTools> {
        let list = tool_list::parse(&self.remote, &raw);
        let cached = Arc::new(CachedTools { raw, list });
        *lock(&self.cached) = Some(Arc::clone(&cached));
        cached
    }

    /// Removes tools that have changed since they were first seen.
    pub(super) fn check_pins(&self, mut list: ToolList) -> ToolList {
        if let Some(pins) = &self.remote.pins {
            list.check_pins(&**pins);
        }
        list
    }

    /// Asks the server for its current tools.
    async fn refresh(&self) -> Result<(), Error> {
        let connection = self.connection().await?;
        let raw = tokio::time::timeout(START_TIMEOUT, connection.list()).await;
        if let Ok(Ok(raw)) = raw {
            self.store_cache(&connection, &raw);
            self.store_tools(raw);
        }
        Ok(())
    }

    /// Returns the tool list, without connecting if it is cached.
    async fn current_tools(&self) -> Result<Arc<CachedTools>, Error> {
        if self.is_stale.swap(false, Ordering::SeqCst) {
            let last = *lock(&self.refreshed);
            if let Some(last) = last {
                // A list that changes all the time is refreshed at most twice a second.
                tokio::time::sleep_until(last + REFRESH_INTERVAL).await;
            }
            *lock(&self.refreshed) = Some(Instant::now());
            if let Err(error) = self.refresh().await {
                // The old tools are still offered: a call reconnects, or reports why it
                // cannot.
                if lock(&self.cached).is_none() {
                    return Err(error);
                }
                self.is_stale.store(true, Ordering::SeqCst);
                tracing::warn!(%error, "cannot refresh the tools of an MCP server");
            }
        }
        if let Some(cached) = lock(&self.cached).clone() {
            return Ok(cached);
        }
        if let Some((start_mode, raw)) = self.load_cache() {
            self.state.lock().await.start_mode = start_mode;
            return Ok(self.store_tools(raw));
        }
        self.connection().await?;
        let cached = lock(&self.cached).clone();
        Ok(cached.unwrap_or_else(|| self.store_tools(Vec::new())))
    }

    pub(super) fn store_cache(&self, connection: &Connection, raw: &[Value]) {
        if let Some(memory) = &self.remote.memory {
            let handshake = connection.start_mode() == ConversationStart::Handshake;
            memory.store(&json!({
                "form": CACHE_VERSION, "at": now(), "handshake": handshake, "tools": raw,
            }));
        }
    }

    pub(super) fn load_cache(&self) -> Option<(ConversationStart, Vec<Value>)> {
        let cache = self.remote.memory.as_ref()?.load()?;
        let is_fresh = |at: u64| {
            now()
                .checked_sub(at)
                .is_some_and(|age| age < CACHE_TIME.as_secs())
        };
        if cache["form"] != CACHE_VERSION || !cache["at"].as_u64().is_some_and(is_fresh) {
            return None;
        }
        let start_mode = match cache["handshake"].as_bool()? {
            true => ConversationStart::Handshake,
            false => ConversationStart::Stateless,
        };
        Some((start_mode, cache["tools"].as_array()?.clone()))
    }

    /// Calls one of the server's tools.
    pub(super) async fn call(
        &self,
        tool: &ListedTool,
        arguments: Value,
        cx: &Context,
    ) -> Result<Reply, Error> {
        let connection = tokio::select! {
            connection = cx.off_the_clock(self.connection()) => connection?,
            () = cx.cancel().cancelled() => return Err(Error::Cancelled),
        };
        // The tool may have changed since it was offered.
        let cached = lock(&self.cached).clone();
        let now =
            cached.and_then(|cached| cached.list.tools.iter().find(|one| *one == tool).cloned());
        let Some(now) = now else {
            return Err(self.failed(format!(
                "has changed or removed its tool {}, so it was not called; `haft mcp test {}` shows the change",
                tool_list::shown(&tool.own_name),
                self.remote.name
            )));
        };
        let call = Call {
            server: &self.remote.name,
            tool: &tool.own_name,
            arguments: match arguments {
                Value::Object(fields) => fields,
                _ => serde_json::Map::new(),
            },
            timeout: self.remote.timeout,
            cx,
        };
        let outcome = tokio::select! {
            biased;
            outcome = call.make(&connection) => outcome,
            () = cx.time_is_up() => Outcome::OverLimit,
        };
        match outcome {
            Outcome::Answered(result) => {
                let mut state = self.state.lock().await;
                state.crashes = 0;
                state.crashed = None;
                drop(state);
                match content::schema_violation(&result, now.output.as_deref()) {
                    None => Ok(content::reply(&result)),
                    Some(reason) => Err(self.failed(format!(
                        "returned a result of {} that does not match its output schema: {reason}",
                        tool_list::shown(&tool.own_name)
                    ))),
                }
            }
            Outcome::Refused(text) => Err(self.failed(format!("refused the call: {text}"))),
            Outcome::SignIn(challenge) => {
                if let Some(sign_in) = &self.sign_in {
                    sign_in.store_challenge(&challenge);
                }
                Err(self.connect_error(ConnectError::SignIn(Some(challenge))))
            }
            Outcome::NotSent(text) => {
                self.drop_connection(&connection).await;
                Err(self.failed(format!(
                    "is not reachable: {text}; the next call reconnects"
                )))
            }
            Outcome::ConnectionLost => Err(self.connection_lost(&connection).await),
            Outcome::TimedOut => {
                self.check_alive(&connection);
                Err(self.timeout_error(cx.limit()))
            }
            Outcome::OverLimit => {
                self.check_alive(&connection);
                Err(Error::session_limit(cx.limit().unwrap_or_default()))
            }
            Outcome::Cancelled => {
                self.check_alive(&connection);
                Err(Error::Cancelled)
            }
        }
    }

    /// Returns the error for a call without a sign of life, considering the session's own
    /// time limit.
    fn timeout_error(&self, session: Option<Duration>) -> Error {
        let after = self.remote.timeout;
        match session.filter(|limit| *limit <= after) {
            Some(limit) => Error::session_limit(limit),
            None => Error::Failed {
                text: Error::TimedOut { after }.to_string(),
                hint: Some(format!(
                    "to allow more time without a reply or progress, set `timeout` (in seconds) in the entry of the MCP server {}",
                    self.remote.name
                )),
            },
        }
    }

    /// Drops a connection; the next call reconnects.
    async fn drop_connection(&self, connection: &Arc<Connection>) {
        let mut state = self.state.lock().await;
        if state.is_current(connection) {
            state.connection = None;
            state.record_crash();
        }
        drop(state);
        connection.end().await;
    }

    /// Returns the error for a connection that was lost during a call.
    async fn connection_lost(&self, connection: &Arc<Connection>) -> Error {
        let how = connection.describe_loss().await;
        let mut state = self.state.lock().await;
        // Several calls may lose the same connection; only the first counts it as a crash.
        if state.is_current(connection) {
            state.connection = None;
            state.record_crash();
        }
        drop(state);
        self.failed(how)
    }

    /// Pings a server that did not answer a call. If it does not respond, ends it, and the
    /// next call starts a new one.
    fn check_alive(&self, connection: &Arc<Connection>) {
        let (Some(server), connection) = (self.weak.upgrade(), Arc::clone(connection)) else {
            return;
        };
        tokio::spawn(async move {
            let ping = ClientRequest::PingRequest(PingRequest::default());
            let answer =
                tokio::time::timeout(PING_TIMEOUT, connection.peer.send_request(ping)).await;
            if answer.is_ok() && !connection.has_ended() {
                return;
            }
            let mut state = server.state.lock().await;
            if state.is_current(&connection) {
                state.connection = None;
            }
            drop(state);
            connection.end().await;
        });
    }
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

impl ConnectionState {
    fn is_current(&self, connection: &Arc<Connection>) -> bool {
        let current = self.connection.as_ref();
        current.is_some_and(|current| Arc::ptr_eq(current, connection))
    }

    fn record_crash(&mut self) {
        self.crashes += 1;
        self.crashed = Some(Instant::now());
    }
}

impl Source for RemoteServer {
    fn label(&self) -> String {
        format!("MCP server {}", self.remote.name)
    }

    fn tools<'a>(
        &'a self,
        programs: Option<&'a Programs>,
    ) -> BoxFuture<'a, Result<SourceTools, Error>> {
        Box::pin(async move {
            self.run_with(programs);
            let Some(server) = self.weak.upgrade() else {
                return Ok(SourceTools::default());
            };
            let list = self.check_pins(self.current_tools().await?.list.clone());
            let mut problems: Vec<String> = list
                .problems
                .iter()
                .map(|problem| self.describe(problem))
                .collect();
            if !list.changed.is_empty() {
                let names: Vec<String> = list
                    .changed
                    .iter()
                    .map(|(name, ..)| tool_list::shown(name))
                    .collect();
                problems.push(self.describe(format!(
                    "has changed the definition of {} since it was first seen, so it is not offered; `haft mcp test {}` shows the change and accepts it",
                    names.join(", "),
                    self.remote.name
                )));
            }
            if list.tools.is_empty() && problems.is_empty() {
                problems.push(self.describe("has no tools"));
            }
            let tool = |listed| -> Arc<dyn AnyTool> {
                Arc::new(RemoteTool {
                    listed,
                    server: Arc::clone(&server),
                })
            };
            Ok(SourceTools {
                tools: list.tools.into_iter().map(tool).collect(),
                problems,
            })
        })
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changes.subscribe())
    }
}
