//! A server of a session, with its connection, restarts and cached tool list.

use super::connect::{ConnectError, Connector, ConversationStart};
use super::connection::Connection;
use super::remote::{Endpoint, Remote, SetupError};
use super::sign_in::SignIn;
use super::tool::RemoteTool;
use super::tool_list::{self, ToolList};
use futures::future::BoxFuture;
use haft::{AnyTool, Error, Installer, Programs, Recheck, Source, SourceTools};
use haft_web::Client;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

/// Time that a server has to start if a program downloads it. Ending a download early may
/// damage what is already there.
const FETCH_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Time after which a download is shown to the user, and shown again.
const FETCH_NOTICE: Duration = Duration::from_secs(2);
const FETCH_NOTICE_AGAIN: Duration = Duration::from_secs(20);

/// Number of crashes in a row after which a program is disabled.
const MAX_CRASHES: u32 = 5;

/// Delay of the first restart; it doubles with each crash.
const BACKOFF: Duration = Duration::from_millis(100);

/// Maximum delay before reconnecting.
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// Minimum interval between refreshes of a list that keeps changing.
const REFRESH_INTERVAL: Duration = Duration::from_millis(500);

/// An MCP server as a source of tools.
pub struct RemoteServer {
    pub(super) remote: Remote,
    pub(super) client: Client,
    pub(super) sign_in: Option<Arc<SignIn>>,
    pub(super) weak: Weak<Self>,
    pub(super) programs: OnceLock<Option<Programs>>,
    pub(super) state: Mutex<ConnectionState>,
    /// The last tool list.
    pub(super) cached: StdMutex<Option<Arc<CachedTools>>>,
    /// Whether the server has reported that its tools changed.
    is_stale: AtomicBool,
    refreshed: StdMutex<Option<Instant>>,
    changes: watch::Sender<u64>,
}

/// A tool list, as JSON and parsed.
pub(super) struct CachedTools {
    raw: Vec<Value>,
    pub(super) list: ToolList,
}

pub(super) struct ConnectionState {
    pub(super) connection: Option<Arc<Connection>>,
    /// How to start; `None` if that is not known yet in this session.
    start_mode: Option<ConversationStart>,
    pub(super) crashes: u32,
    pub(super) crashed: Option<Instant>,
}

pub(super) fn lock<T>(mutex: &StdMutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the HTTP client of all servers. Creating one takes milliseconds.
fn shared_client() -> Result<Client, SetupError> {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    if let Some(client) = CLIENT.get() {
        return Ok(client.clone());
    }
    let client = Client::new(haft_web::Settings::default())
        .map_err(|error| SetupError(error.to_string()))?;
    Ok(CLIENT.get_or_init(|| client).clone())
}

impl RemoteServer {
    /// Creates a server. It is not connected before it is needed.
    ///
    /// # Errors
    /// When an HTTP client cannot be created.
    pub fn new(remote: Remote) -> Result<Arc<Self>, SetupError> {
        let client = shared_client()?;
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
                start_mode: None,
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

    pub(super) fn connect_error(&self, error: ConnectError) -> Error {
        match error {
            ConnectError::Failed(text) => self.failed(text),
            ConnectError::SignIn(_) => self.failed(format!(
                "wants you to sign in: `haft mcp test {}`",
                self.remote.name
            )),
        }
    }

    /// Connects within a time limit, by default the configured one. Tells the user about a
    /// download, which is not ended by the configured limit.
    pub(super) async fn connect(
        &self,
        start_mode: ConversationStart,
        limit: Option<Duration>,
    ) -> Result<Connection, ConnectError> {
        let connector = self.connector(start_mode);
        let fetcher = connector.fetcher();
        let limit = limit.unwrap_or(match &fetcher {
            Some(_) => FETCH_TIMEOUT.max(self.remote.start_timeout),
            None => self.remote.start_timeout,
        });
        let notices = async {
            let (Some(fetcher), Some(progress)) = (&fetcher, &self.remote.progress) else {
                return std::future::pending().await;
            };
            let begun = Instant::now();
            tokio::time::sleep(FETCH_NOTICE).await;
            loop {
                let waited = begun.elapsed().as_secs();
                progress(self.describe(format!("is {} ({waited} s)", fetcher.describe())));
                tokio::time::sleep(FETCH_NOTICE_AGAIN).await;
            }
        };
        tokio::select! {
            connected = connector.connect(limit) => connected,
            () = notices => Err("was not connected".to_owned().into()),
        }
    }

    /// Connects and lists the tools. A program that ends because it was asked whether it
    /// offers more than `initialize` is started again and not asked.
    pub(super) async fn explored(
        &self,
        start_mode: ConversationStart,
        limit: Option<Duration>,
    ) -> Result<(Connection, Vec<Value>, ConversationStart), ConnectError> {
        let timeout = limit.unwrap_or(self.remote.start_timeout);
        // An address was already asked.
        let is_program = matches!(self.remote.endpoint, Endpoint::Program { .. });
        let mut is_asked = is_program && start_mode == ConversationStart::Unknown;
        loop {
            let connection = self.connect(start_mode, limit).await?;
            let exploring = connection.explore(is_asked);
            let text = match tokio::time::timeout(timeout, exploring).await {
                Ok(Ok((raw, next_start))) => return Ok((connection, raw, next_start)),
                Ok(Err(_)) if connection.has_ended() && is_asked => {
                    connection.end().await;
                    is_asked = false;
                    continue;
                }
                Ok(Err(_)) if connection.has_ended() => connection.describe_loss().await,
                Ok(Err(text)) => text,
                Err(_) => format!(
                    "did not list its tools within {} seconds (`start_timeout` allows more)",
                    timeout.as_secs_f64()
                ),
            };
            connection.end().await;
            return Err(text.into());
        }
    }

    /// Connects and lists the tools for this session.
    async fn connect_and_list(
        &self,
        start_mode: ConversationStart,
    ) -> Result<(Arc<Connection>, Vec<Value>), Error> {
        let recheck = self.may_run()?;
        let explored = self.explored(start_mode, None).await;
        let (connection, raw, next_start) = explored.map_err(|error| self.connect_error(error))?;
        self.recheck(recheck, &connection).await?;
        self.store_known(next_start, &raw);
        Ok((Arc::new(connection), raw))
    }

    /// Returns the connection for calls; connects first if needed.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, Error> {
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
        let start_mode = state.start_mode.unwrap_or_else(|| self.known_start());
        match self.connect_and_list(start_mode).await {
            Ok((connection, raw)) => {
                state.start_mode = Some(connection.start_mode());
                state.connection = Some(Arc::clone(&connection));
                drop(state);
                self.update_tools(raw);
                Ok(connection)
            }
            Err(error) => {
                state.start_mode = Some(ConversationStart::Unknown);
                state.record_crash();
                Err(error)
            }
        }
    }

    /// Connects in a task of its own. If a download takes longer than a start may, it goes
    /// on after this has failed, and the session is notified of the tools when it is done.
    async fn connect_in_background(&self) -> Result<(), Error> {
        let Some(server) = self.weak.upgrade() else {
            return Ok(());
        };
        let is_late = Arc::new(AtomicBool::new(false));
        let late = Arc::clone(&is_late);
        let connecting = tokio::spawn(async move {
            let connected = server.connection().await;
            if late.load(Ordering::SeqCst) {
                match &connected {
                    Ok(_) => server.changes.send_modify(|changes| *changes += 1),
                    // This may be the end of the session.
                    Err(error) => tracing::info!("{error}"),
                }
            }
            connected.map(|_| ())
        });
        let connecting = AbortUnlessFetching {
            task: connecting,
            is_fetched: self
                .connector(ConversationStart::Unknown)
                .fetcher()
                .is_some(),
        };
        // The task has its own limit, which comes first unless a download goes on.
        let limit = self.remote.start_timeout * 3 + Duration::from_secs(10);
        let limit = match connecting.is_fetched {
            true => self.remote.start_timeout,
            false => limit,
        };
        connecting.wait(limit, &is_late).await.unwrap_or_else(|| {
            Err(self.failed(format!(
                "is not ready after {} seconds and is still starting; its tools appear when it is (`start_timeout` waits longer)",
                limit.as_secs_f64()
            )))
        })
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
        let raw = tokio::time::timeout(self.remote.start_timeout, connection.list()).await;
        if let Ok(Ok(raw)) = raw {
            self.store_known(self.known_start(), &raw);
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
        if let Some(raw) = self.known_tools() {
            return Ok(self.store_tools(raw));
        }
        self.connect_in_background().await?;
        let cached = lock(&self.cached).clone();
        Ok(cached.unwrap_or_else(|| self.store_tools(Vec::new())))
    }
}

/// A task that connects. Dropping it cancels the task, unless a download would be ended.
struct AbortUnlessFetching {
    task: tokio::task::JoinHandle<Result<(), Error>>,
    is_fetched: bool,
}

impl AbortUnlessFetching {
    /// Waits for the task within the limit; `None` if it goes on.
    async fn wait(mut self, limit: Duration, is_late: &AtomicBool) -> Option<Result<(), Error>> {
        let ended = tokio::time::timeout(limit, &mut self.task).await;
        if let Ok(ended) = ended {
            return Some(ended.unwrap_or(Err(Error::Cancelled)));
        }
        is_late.store(true, Ordering::SeqCst);
        // It may have ended in the meantime.
        match self.task.is_finished() {
            true => Some((&mut self.task).await.unwrap_or(Err(Error::Cancelled))),
            false => None,
        }
    }
}

impl Drop for AbortUnlessFetching {
    fn drop(&mut self) {
        if !self.is_fetched {
            self.task.abort();
        }
    }
}

impl ConnectionState {
    pub(super) fn is_current(&self, connection: &Arc<Connection>) -> bool {
        let current = self.connection.as_ref();
        current.is_some_and(|current| Arc::ptr_eq(current, connection))
    }

    pub(super) fn record_crash(&mut self) {
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
