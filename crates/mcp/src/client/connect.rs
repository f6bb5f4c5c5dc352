//! Connects to a configured server.

use super::dispatcher::{Dispatcher, StreamEnd};
use super::handler::Handler;
use super::http::{Http, HttpFailure};
use super::remote::{Endpoint, HttpTransport, Remote};
use super::sign_in::SignIn;
use super::sse::Sse;
use super::stdio::Stdio;
use super::tool_list::{MAX_BYTES, MAX_TOOLS};
use haft::ops::executor::{Exit, Running, Stream};
use haft::{Cache, Programs, Start};
use haft_web::Client;
use rmcp::model::{
    ClientRequest, ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerPeerInfo,
    ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, Peer, RoleClient, RunningService, ServiceError,
    serve_client_with_lifecycle,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Time between asking a program to end and killing it.
const GRACE: Duration = Duration::from_millis(300);

/// Time that a program has to exit after it closed its output.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum number of bytes of a program's log that an error quotes.
const MAX_LOG: usize = 2_000;

/// Maximum number of pages of a tool list.
const MAX_PAGES: usize = 200;

/// Start of a conversation with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConversationStart {
    /// Not known yet: tries the newest way, then the older one.
    Unknown,
    /// Without a handshake: each request is independent.
    Stateless,
    /// With `initialize`.
    Handshake,
}

/// A connection to a server. Dropping it ends the conversation, and the program with all
/// its children.
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) dispatcher: Arc<Dispatcher>,
    _service: RunningService<RoleClient, Handler>,
    running: Option<Running>,
    stream_end: Arc<OnceLock<StreamEnd>>,
    _subscription: Option<Subscription>,
}

/// Reason why no connection was established.
pub(super) enum ConnectError {
    /// The user has to sign in first; with the server's challenge.
    SignIn(Option<String>),
    /// Any other reason.
    Failed(String),
}

impl From<String> for ConnectError {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

/// Everything needed to connect to a server.
pub(super) struct Connector<'a> {
    pub(super) remote: &'a Remote,
    pub(super) programs: Option<&'a Programs>,
    pub(super) client: &'a Client,
    pub(super) sign_in: Option<&'a Arc<SignIn>>,
    pub(super) start_mode: ConversationStart,
    pub(super) changed: Arc<dyn Fn() + Send + Sync>,
}

impl Connector<'_> {
    /// Connects within the time limit.
    pub(super) async fn connect(&self, timeout: Duration) -> Result<Connection, ConnectError> {
        match &self.remote.endpoint {
            Endpoint::Program {
                program,
                shown,
                arguments,
                environment,
                dir,
                log,
            } => {
                let start = Start {
                    name: format!("MCP server {}", self.remote.name),
                    program: program.clone(),
                    shown: shown.clone(),
                    arguments: arguments.clone(),
                    environment: environment.clone(),
                    cache: self.cache(program, arguments),
                    dir: dir.clone(),
                    log: log.clone(),
                    installer: self.remote.installer,
                };
                self.start(start, timeout).await
            }
            Endpoint::Address {
                url,
                headers,
                transport,
            } => {
                let http = Http::new(
                    self.client.clone(),
                    url.clone(),
                    headers.clone(),
                    self.sign_in.map(Arc::clone),
                );
                let late = || {
                    ConnectError::Failed(format!(
                        "did not answer within {} seconds",
                        timeout.as_secs()
                    ))
                };
                let going = self.connect_http(http, *transport);
                tokio::time::timeout(timeout, going)
                    .await
                    .unwrap_or_else(|_| Err(late()))
            }
        }
    }

    fn cache(&self, program: &Path, arguments: &[OsString]) -> Option<Cache> {
        // Another program may start the real one, as in `env npx` or `timeout 5 npx`.
        let message = arguments.iter().flat_map(|word| word.to_str());
        let message = message.flat_map(str::split_whitespace).map(Path::new);
        let programs = std::iter::once(program).chain(message);
        let mut variables: Vec<&'static str> = programs.flat_map(cache_variables).collect();
        variables.sort_unstable();
        variables.dedup();
        let folder = self.remote.cache.clone()?;
        (!variables.is_empty()).then_some(Cache { folder, variables })
    }

    async fn start(&self, start: Start, timeout: Duration) -> Result<Connection, ConnectError> {
        let Some(programs) = self.programs else {
            let message = "cannot be started: this session cannot run programs";
            return Err(message.to_owned().into());
        };
        let talk = programs
            .converse(start)
            .await
            .map_err(|error| format!("did not start: {error}"))?;
        let stream_end = Arc::new(OnceLock::new());
        let transport = Stdio::new(talk.input, talk.output, Arc::clone(&stream_end));
        let served = tokio::time::timeout(timeout, self.serve(transport)).await;
        let is_broken = matches!(
            served,
            Ok(Err(ClientInitializeError::TransportError { .. }))
        );
        let how = match &served {
            Ok(Ok(_)) => String::new(),
            Ok(Err(error)) => format!("failed the handshake: {}", describe_handshake_error(error)),
            Err(_) => format!("did not answer within {} seconds", timeout.as_secs()),
        };
        if let Ok(Ok((dispatcher, service))) = served {
            return Ok(Connection::new(
                dispatcher,
                service,
                Some(talk.running),
                stream_end,
            ));
        }
        // A broken pipe on our side may be the first sign that the program has exited.
        let stream_end = stream_end.get().copied();
        let seen = stream_end.or_else(|| is_broken.then_some(StreamEnd::Ended));
        let (status, mut last) = exit_and_log(&talk.running, seen).await;
        if let Some(advice) = programs.advice(self.remote.installer, &last) {
            last.push_str(&format!("\n[{advice}]"));
        }
        let how = match (stream_end, status) {
            (Some(StreamEnd::Garbage), _) => {
                "wrote too much that is not a valid message".to_owned()
            }
            (_, Some(exit)) => format!("exited at its start ({})", describe_exit(exit)),
            (Some(StreamEnd::Ended), None) => "closed its output at its start".to_owned(),
            (None, None) => how,
        };
        Err(format!("{how}{last}").into())
    }

    async fn connect_http(
        &self,
        http: Http,
        transport: HttpTransport,
    ) -> Result<Connection, ConnectError> {
        let first = match transport {
            HttpTransport::Events => None,
            HttpTransport::Streamable | HttpTransport::Either => {
                Some(self.connect_streamable(http.clone()).await)
            }
        };
        match first {
            Some(Ok(connection)) => return Ok(connection),
            Some(Err(connect_error @ ConnectError::SignIn(_))) => return Err(connect_error),
            Some(Err(ConnectError::Failed(message))) if transport == HttpTransport::Streamable => {
                return Err(ConnectError::Failed(with_hint(message)));
            }
            _ => {}
        }
        let stream_end = Arc::new(OnceLock::new());
        let opened = Sse::open(http, Arc::clone(&stream_end)).await;
        let transport = opened.map_err(|error| match (&error, first) {
            // If neither way works, the error of the newer one matters more.
            (HttpFailure::Status(status), Some(Err(ConnectError::Failed(newer)))) => {
                format!("{newer}; as an event stream it answered {status}")
            }
            (error, _) => format!("cannot be used: {error}"),
        })?;
        let (dispatcher, service) = self
            .serve(transport)
            .await
            .map_err(|error| connect_error(&error))?;
        Ok(Connection::new(dispatcher, service, None, stream_end))
    }

    async fn connect_streamable(&self, http: Http) -> Result<Connection, ConnectError> {
        let config = StreamableHttpClientTransportConfig::with_uri(http.url().as_str());
        let transport = StreamableHttpClientTransport::with_client(http, config);
        let (dispatcher, service) = self
            .serve(transport)
            .await
            .map_err(|error| connect_error(&error))?;
        Ok(Connection::new(
            dispatcher,
            service,
            None,
            Arc::new(OnceLock::new()),
        ))
    }

    async fn serve<T>(
        &self,
        transport: T,
    ) -> Result<(Arc<Dispatcher>, RunningService<RoleClient, Handler>), ClientInitializeError>
    where
        T: rmcp::transport::Transport<RoleClient> + 'static,
    {
        let dispatcher = Arc::new(Dispatcher::default());
        let dir = self.programs.map(Programs::dir);
        let handler = Handler::new(Arc::clone(&dispatcher), dir, Arc::clone(&self.changed));
        let stateless = || vec![ProtocolVersion::LATEST];
        let lifecycle = match self.start_mode {
            ConversationStart::Handshake => ClientLifecycleMode::Initialize,
            ConversationStart::Stateless => ClientLifecycleMode::Discover {
                preferred_versions: stateless(),
            },
            ConversationStart::Unknown => ClientLifecycleMode::Auto {
                preferred_versions: stateless(),
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
        };
        let service = serve_client_with_lifecycle(handler, transport, lifecycle).await?;
        Ok((dispatcher, service))
    }
}

/// Returns the variables that tell a package runner where its cache is.
fn cache_variables(program: &Path) -> Vec<&'static str> {
    match program.file_name().and_then(|name| name.to_str()) {
        Some("npx" | "npm" | "pnpm" | "pnpx" | "yarn") => vec!["npm_config_cache"],
        Some("bunx" | "bun") => vec!["BUN_INSTALL_CACHE_DIR"],
        Some("uvx" | "uv") => vec!["UV_CACHE_DIR", "UV_TOOL_DIR", "UV_PYTHON_INSTALL_DIR"],
        Some("pipx") => vec!["PIPX_HOME", "PIP_CACHE_DIR"],
        Some("deno") => vec!["DENO_DIR"],
        _ => Vec::new(),
    }
}

/// Adds a hint for addresses of servers that use the older transport.
fn with_hint(message: String) -> String {
    if message.contains(" 404 ") || message.contains(" 405 ") {
        format!("{message}; for a server of 2024 use `uri`, or add `type: sse`")
    } else {
        message
    }
}

/// Converts the error of a server at an address.
fn connect_error(error: &ClientInitializeError) -> ConnectError {
    if error.is_authorization_required() {
        return ConnectError::SignIn(error.auth_challenge().map(str::to_owned));
    }
    ConnectError::Failed(format!(
        "cannot be used: {}",
        describe_handshake_error(error)
    ))
}

/// Describes why the handshake failed, without rmcp's context.
fn describe_handshake_error(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            describe_handshake_error(fallback)
        }
        ClientInitializeError::TransportError { error, .. } => innermost_message(&*error.error),
        ClientInitializeError::JsonRpcError(error) => plain(&error.message),
        error => innermost_message(error),
    }
}

/// Returns the innermost message of an error; the outer ones only describe rmcp's steps.
fn innermost_message(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    let text = last.to_string();
    plain(text.strip_prefix("Client error: ").unwrap_or(&text))
}

fn plain(text: &str) -> String {
    let shown = haft::ops::text::decode::visible(text);
    shown.chars().take(500).collect()
}

fn describe_exit(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        _ => "unknown status".to_owned(),
    }
}

/// Returns how a program exited, if it exited on its own, and the end of its log. Kills it
/// and all its children in any case.
async fn exit_and_log(running: &Running, stream_end: Option<StreamEnd>) -> (Option<Exit>, String) {
    let mut status = None;
    if stream_end == Some(StreamEnd::Ended) {
        let mut end = running.end();
        let ended = tokio::time::timeout(EXIT_TIMEOUT, end.wait_for(Option::is_some)).await;
        if let Ok(Ok(ended)) = ended {
            let ended = ended
                .as_ref()
                .and_then(|ended| ended.as_ref().as_ref().ok());
            status = ended.map(|finished| finished.status);
        }
    }
    running.kill(GRACE).await;
    let log = running.log(Stream::Error);
    let message = log
        .and_then(|log| log.tail(MAX_LOG).ok())
        .unwrap_or_default();
    let message = String::from_utf8_lossy(&message).into_owned();
    let plain = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let message: String = message.chars().filter(plain).collect();
    let message = message.trim();
    let told = if message.is_empty() {
        String::new()
    } else {
        format!("; the end of its stderr:\n{message}")
    };
    (status, told)
}

impl Connection {
    fn new(
        dispatcher: Arc<Dispatcher>,
        service: RunningService<RoleClient, Handler>,
        running: Option<Running>,
        stream_end: Arc<OnceLock<StreamEnd>>,
    ) -> Self {
        let peer = service.peer().clone();
        let subscription = Subscription::begin(&peer, &service.service().changed);
        Self {
            peer,
            dispatcher,
            _service: service,
            running,
            stream_end,
            _subscription: subscription,
        }
    }

    /// Whether the connection has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.stream_end.get().is_some() || self.peer.is_transport_closed()
    }

    /// Returns the server's description of itself.
    pub(super) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// Returns how the conversation was started.
    pub(super) fn start_mode(&self) -> ConversationStart {
        match self.info() {
            Some(info) if info.protocol_version.has_initialize() => ConversationStart::Handshake,
            Some(_) => ConversationStart::Stateless,
            None => ConversationStart::Unknown,
        }
    }

    /// Kills the program, and describes how the connection was lost.
    pub(super) async fn describe_loss(&self) -> String {
        let Some(running) = &self.running else {
            return "closed the connection".to_owned();
        };
        let stream_end = self.stream_end.get().copied().unwrap_or(StreamEnd::Ended);
        let (status, last) = exit_and_log(running, Some(stream_end)).await;
        let how = match (stream_end, status) {
            (StreamEnd::Garbage, _) => {
                "was stopped: it wrote more than 16 MB or 10,000 lines that are not a valid message"
                    .to_owned()
            }
            (StreamEnd::Ended, Some(exit)) => format!("exited ({})", describe_exit(exit)),
            (StreamEnd::Ended, None) => "closed its output".to_owned(),
        };
        format!("{how}{last}")
    }

    /// Kills the program and all its children.
    pub(super) async fn end(&self) {
        if let Some(running) = &self.running {
            running.kill(GRACE).await;
        }
    }

    /// Lists the tools, up to the limit.
    pub(super) async fn list(&self) -> Result<Vec<Value>, String> {
        let mut all = Vec::new();
        let mut bytes = 0;
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
            let result = match self.peer.send_request(request).await {
                Ok(ServerResult::ListToolsResult(list)) => serde_json::to_value(list),
                // rmcp cannot parse the list if one tool is invalid; the others are still
                // usable.
                Ok(ServerResult::CustomResult(result)) => Ok(result.0),
                Ok(_) => return Err("did not return a valid list of tools".to_owned()),
                Err(error) => {
                    return Err(format!("cannot list its tools: {}", describe_error(&error)));
                }
            };
            let result = result.unwrap_or_default();
            let Some(tools) = result["tools"].as_array() else {
                return Err("did not return a valid list of tools".to_owned());
            };
            for tool in tools {
                bytes += tool.to_string().len();
                all.push(tool.clone());
            }
            let next = result["nextCursor"].as_str().map(str::to_owned);
            // One tool beyond the limit, so that the excess is reported.
            if all.len() > MAX_TOOLS || bytes > MAX_BYTES || next.is_none() {
                break;
            }
            cursor = next;
        }
        Ok(all)
    }
}

/// Describes why a request failed.
pub(super) fn describe_error(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => {
            let text = haft::ops::text::decode::visible(&error.message);
            text.chars().take(2_000).collect()
        }
        // The transport's context is a detail of rmcp.
        ServiceError::TransportSend(sent) => innermost_message(sent.error.as_ref()),
        error => innermost_message(error),
    }
}

/// Subscribes to changes, in protocol versions that require it.
struct Subscription(tokio::task::JoinHandle<()>);

impl Subscription {
    fn begin(peer: &Peer<RoleClient>, changed: &Arc<dyn Fn() + Send + Sync>) -> Option<Self> {
        let info = peer.peer_info()?;
        let has_notifications = info
            .capabilities
            .tools
            .as_ref()
            .is_some_and(|tools| tools.list_changed == Some(true));
        if info.protocol_version.has_initialize() || !has_notifications {
            return None;
        }
        let (peer, changed) = (peer.clone(), Arc::clone(changed));
        Some(Self(tokio::spawn(async move {
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            let Ok(mut news) = peer.listen(filter).await else {
                return;
            };
            while let Ok(Some(_)) = news.next().await {
                changed();
            }
        })))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.abort();
    }
}
