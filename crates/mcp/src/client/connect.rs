//! From a configured server to one that answers.

use super::desk::{Desk, Over};
use super::handler::Handler;
use super::http::{Failure, Http};
use super::listed::{MOST, MOST_BYTES};
use super::remote::{Reach, Remote, Wire};
use super::sign_in::SignIn;
use super::sse::Sse;
use super::stdio::Stdio;
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

/// How long a program has between the request to end and its death.
const GRACE: Duration = Duration::from_millis(300);

/// How long one that has closed its output has to end by itself.
const BY_ITSELF: Duration = Duration::from_millis(500);

/// How much of the last words of a program is told.
const LAST_WORDS: usize = 2_000;

/// How many pages a list has at most.
const MOST_PAGES: usize = 200;

/// How a conversation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// Not known: the newest way, and then the other.
    Unknown,
    /// Every request for itself.
    Stateless,
    /// With a handshake.
    Handshake,
}

/// A server that answers. Dropping it ends the conversation, and the program with all
/// that it started.
pub(super) struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) desk: Arc<Desk>,
    _service: RunningService<RoleClient, Handler>,
    running: Option<Running>,
    over: Arc<OnceLock<Over>>,
    _listening: Option<Listening>,
}

/// Why there is none.
pub(super) enum Refused {
    /// The person has to sign in first. What the server said about that.
    SignIn(Option<String>),
    /// Anything else.
    Failed(String),
}

impl From<String> for Refused {
    fn from(words: String) -> Self {
        Self::Failed(words)
    }
}

/// What it takes to reach a server.
pub(super) struct Way<'a> {
    pub(super) remote: &'a Remote,
    pub(super) programs: Option<&'a Programs>,
    pub(super) client: &'a Client,
    pub(super) sign_in: Option<&'a Arc<SignIn>>,
    pub(super) opening: Opening,
    pub(super) changed: Arc<dyn Fn() + Send + Sync>,
}

impl Way<'_> {
    /// Reaches it, within so much time.
    pub(super) async fn go(&self, patience: Duration) -> Result<Connection, Refused> {
        match &self.remote.reach {
            Reach::Program {
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
                    standing: self.remote.standing,
                };
                self.start(start, patience).await
            }
            Reach::Address { url, headers, wire } => {
                let http = Http::new(
                    self.client.clone(),
                    url.clone(),
                    headers.clone(),
                    self.sign_in.map(Arc::clone),
                );
                let late = || {
                    Refused::Failed(format!(
                        "did not answer within {} seconds",
                        patience.as_secs()
                    ))
                };
                let going = self.dial(http, *wire);
                tokio::time::timeout(patience, going)
                    .await
                    .unwrap_or_else(|_| Err(late()))
            }
        }
    }

    fn cache(&self, program: &Path, arguments: &[OsString]) -> Option<Cache> {
        // It may be run by another one, as in `env npx` or `timeout 5 npx`.
        let words = arguments.iter().flat_map(|word| word.to_str());
        let words = words.flat_map(str::split_whitespace).map(Path::new);
        let programs = std::iter::once(program).chain(words);
        let mut variables: Vec<&'static str> = programs.flat_map(cache_variables).collect();
        variables.sort_unstable();
        variables.dedup();
        let folder = self.remote.cache.clone()?;
        (!variables.is_empty()).then_some(Cache { folder, variables })
    }

    async fn start(&self, start: Start, patience: Duration) -> Result<Connection, Refused> {
        let Some(programs) = self.programs else {
            let words = "cannot be started: nobody has said how programs are run";
            return Err(words.to_owned().into());
        };
        let talk = programs
            .converse(start)
            .await
            .map_err(|error| format!("did not start: {error}"))?;
        let over = Arc::new(OnceLock::new());
        let transport = Stdio::new(talk.input, talk.output, Arc::clone(&over));
        let served = tokio::time::timeout(patience, self.serve(transport)).await;
        let is_broken = matches!(
            served,
            Ok(Err(ClientInitializeError::TransportError { .. }))
        );
        let how = match &served {
            Ok(Ok(_)) => String::new(),
            Ok(Err(error)) => format!("did not begin as a server does: {}", begun(error)),
            Err(_) => format!("did not answer within {} seconds", patience.as_secs()),
        };
        if let Ok(Ok((desk, service))) = served {
            return Ok(Connection::new(desk, service, Some(talk.running), over));
        }
        // One that has ended may be noticed by what it did not read.
        let over = over.get().copied();
        let seen = over.or_else(|| is_broken.then_some(Over::Ended));
        let (status, mut last) = last_words(&talk.running, seen).await;
        if let Some(advice) = programs.advice(self.remote.standing, &last) {
            last.push_str(&format!("\n[{advice}]"));
        }
        let how = match (over, status) {
            (Some(Over::Babbling), _) => "wrote no message, but a great deal else".to_owned(),
            (_, Some(exit)) => format!("exited at its start ({})", said(exit)),
            (Some(Over::Ended), None) => "closed its output at its start".to_owned(),
            (None, None) => how,
        };
        Err(format!("{how}{last}").into())
    }

    async fn dial(&self, http: Http, wire: Wire) -> Result<Connection, Refused> {
        let first = match wire {
            Wire::Events => None,
            Wire::Streamable | Wire::Either => Some(self.stream(http.clone()).await),
        };
        match first {
            Some(Ok(connection)) => return Ok(connection),
            Some(Err(refused @ Refused::SignIn(_))) => return Err(refused),
            Some(Err(Refused::Failed(words))) if wire == Wire::Streamable => {
                return Err(Refused::Failed(hinted(words)));
            }
            _ => {}
        }
        let over = Arc::new(OnceLock::new());
        let opened = Sse::open(http, Arc::clone(&over)).await;
        let transport = opened.map_err(|error| match (&error, first) {
            // What the newer way said is what matters where neither works.
            (Failure::Status(status), Some(Err(Refused::Failed(newer)))) => {
                format!("{newer}; and as a stream of events it answered {status}")
            }
            (error, _) => format!("cannot be used: {error}"),
        })?;
        let (desk, service) = self
            .serve(transport)
            .await
            .map_err(|error| refused(&error))?;
        Ok(Connection::new(desk, service, None, over))
    }

    async fn stream(&self, http: Http) -> Result<Connection, Refused> {
        let config = StreamableHttpClientTransportConfig::with_uri(http.url().as_str());
        let transport = StreamableHttpClientTransport::with_client(http, config);
        let (desk, service) = self
            .serve(transport)
            .await
            .map_err(|error| refused(&error))?;
        Ok(Connection::new(
            desk,
            service,
            None,
            Arc::new(OnceLock::new()),
        ))
    }

    async fn serve<T>(
        &self,
        transport: T,
    ) -> Result<(Arc<Desk>, RunningService<RoleClient, Handler>), ClientInitializeError>
    where
        T: rmcp::transport::Transport<RoleClient> + 'static,
    {
        let desk = Arc::new(Desk::default());
        let dir = self.programs.map(Programs::dir);
        let handler = Handler::new(Arc::clone(&desk), dir, Arc::clone(&self.changed));
        let stateless = || vec![ProtocolVersion::LATEST];
        let lifecycle = match self.opening {
            Opening::Handshake => ClientLifecycleMode::Initialize,
            Opening::Stateless => ClientLifecycleMode::Discover {
                preferred_versions: stateless(),
            },
            Opening::Unknown => ClientLifecycleMode::Auto {
                preferred_versions: stateless(),
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
        };
        let service = serve_client_with_lifecycle(handler, transport, lifecycle).await?;
        Ok((desk, service))
    }
}

/// What tells a program that fetches a server where to keep it.
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

/// With what to try where an address is one of the older kind.
fn hinted(words: String) -> String {
    if words.contains(" 404 ") || words.contains(" 405 ") {
        format!("{words}; a server of 2024 is reached by `uri`, or with `type: sse`")
    } else {
        words
    }
}

/// What kept a server at an address from answering.
fn refused(error: &ClientInitializeError) -> Refused {
    if error.is_authorization_required() {
        return Refused::SignIn(error.auth_challenge().map(str::to_owned));
    }
    Refused::Failed(format!("cannot be used: {}", begun(error)))
}

/// Why a conversation did not begin, without how rmcp came there.
fn begun(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => begun(fallback),
        ClientInitializeError::TransportError { error, .. } => words(&*error.error),
        ClientInitializeError::JsonRpcError(error) => plain(&error.message),
        error => words(error),
    }
}

/// The innermost words of an error: those around it say how rmcp came there.
fn words(error: &dyn std::error::Error) -> String {
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

fn said(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
        _ => "unknown how".to_owned(),
    }
}

/// How a program ended, if it did so by itself, and the last it said to its log. After
/// that it and all it started are ended in any case.
async fn last_words(running: &Running, over: Option<Over>) -> (Option<Exit>, String) {
    let mut status = None;
    if over == Some(Over::Ended) {
        let mut end = running.end();
        let ended = tokio::time::timeout(BY_ITSELF, end.wait_for(Option::is_some)).await;
        if let Ok(Ok(ended)) = ended {
            let ended = ended
                .as_ref()
                .and_then(|ended| ended.as_ref().as_ref().ok());
            status = ended.map(|finished| finished.status);
        }
    }
    running.kill(GRACE).await;
    let log = running.log(Stream::Error);
    let words = log
        .and_then(|log| log.tail(LAST_WORDS).ok())
        .unwrap_or_default();
    let words = String::from_utf8_lossy(&words).into_owned();
    let plain = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let words: String = words.chars().filter(plain).collect();
    let words = words.trim();
    let told = if words.is_empty() {
        String::new()
    } else {
        format!("; its last words:\n{words}")
    };
    (status, told)
}

impl Connection {
    fn new(
        desk: Arc<Desk>,
        service: RunningService<RoleClient, Handler>,
        running: Option<Running>,
        over: Arc<OnceLock<Over>>,
    ) -> Self {
        let peer = service.peer().clone();
        let listening = Listening::begin(&peer, &service.service().changed);
        Self {
            peer,
            desk,
            _service: service,
            running,
            over,
            _listening: listening,
        }
    }

    /// Whether nothing more will come of it.
    pub(super) fn is_over(&self) -> bool {
        self.over.get().is_some() || self.peer.is_transport_closed()
    }

    /// What the server said of itself.
    pub(super) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// How it was opened.
    pub(super) fn opening(&self) -> Opening {
        match self.info() {
            Some(info) if info.protocol_version.has_initialize() => Opening::Handshake,
            Some(_) => Opening::Stateless,
            None => Opening::Unknown,
        }
    }

    /// How its program broke, in words. Ends it.
    pub(super) async fn broke(&self) -> String {
        let Some(running) = &self.running else {
            return "closed the connection".to_owned();
        };
        let over = self.over.get().copied().unwrap_or(Over::Ended);
        let (status, last) = last_words(running, Some(over)).await;
        let how = match (over, status) {
            (Over::Babbling, _) => {
                "wrote more than 16MB, or 10,000 lines, that are no message, and was ended"
                    .to_owned()
            }
            (Over::Ended, Some(exit)) => format!("exited ({})", said(exit)),
            (Over::Ended, None) => "closed its output".to_owned(),
        };
        format!("{how}{last}")
    }

    /// Ends it and all it started.
    pub(super) async fn end(&self) {
        if let Some(running) = &self.running {
            running.kill(GRACE).await;
        }
    }

    /// Its tools, as it lists them: as many as can be taken.
    pub(super) async fn list(&self) -> Result<Vec<Value>, String> {
        let mut all = Vec::new();
        let mut bytes = 0;
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
            let result = match self.peer.send_request(request).await {
                Ok(ServerResult::ListToolsResult(list)) => serde_json::to_value(list),
                // One tool that is not as it should be does not spoil the others.
                Ok(ServerResult::CustomResult(result)) => Ok(result.0),
                Ok(_) => return Err("does not list its tools as a server does".to_owned()),
                Err(error) => return Err(format!("does not list its tools: {}", said_of(&error))),
            };
            let result = result.unwrap_or_default();
            let Some(tools) = result["tools"].as_array() else {
                return Err("does not list its tools as a server does".to_owned());
            };
            for tool in tools {
                bytes += tool.to_string().len();
                all.push(tool.clone());
            }
            let next = result["nextCursor"].as_str().map(str::to_owned);
            // One more than can be taken, so that it is told.
            if all.len() > MOST || bytes > MOST_BYTES || next.is_none() {
                break;
            }
            cursor = next;
        }
        Ok(all)
    }
}

/// What went wrong with a request, in words.
pub(super) fn said_of(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => {
            let text = haft::ops::text::decode::visible(&error.message);
            text.chars().take(2_000).collect()
        }
        // How it was sent is rmcp's matter.
        ServiceError::TransportSend(sent) => words(sent.error.as_ref()),
        error => words(error),
    }
}

/// Hears of changes where the protocol has to be asked for them.
struct Listening(tokio::task::JoinHandle<()>);

impl Listening {
    fn begin(peer: &Peer<RoleClient>, changed: &Arc<dyn Fn() + Send + Sync>) -> Option<Self> {
        let info = peer.peer_info()?;
        let tells = info
            .capabilities
            .tools
            .as_ref()
            .is_some_and(|tools| tools.list_changed == Some(true));
        if info.protocol_version.has_initialize() || !tells {
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

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}
