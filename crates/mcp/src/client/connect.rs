//! Connects to a configured server.

use super::connection::{Connection, describe_exit, exit_and_log};
use super::dispatcher::{Dispatcher, StreamEnd};
use super::fetcher::{Fetcher, NotedStart};
use super::handler::Handler;
use super::http::{Http, HttpFailure};
use super::remote::{Endpoint, HttpTransport, Remote};
use super::sign_in::SignIn;
use super::sse::Sse;
use super::stdio::Stdio;
use haft::{Programs, Start};
use haft_web::Client;
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, RoleClient, RunningService,
    serve_client_with_lifecycle,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;

/// Time for the second handshake of a program, in addition to that of the first one.
const SECOND_HANDSHAKE: Duration = Duration::from_secs(5);

/// Returns the name under which the program of a server is started and its changes are
/// recorded.
pub(super) fn program_name(server: &str) -> String {
    format!("MCP server {server}")
}

/// Start of a conversation with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConversationStart {
    /// Not known yet. A program gets `initialize`, because some end at an unknown request
    /// and slow ones answer it too late; an address is asked for its versions.
    Unknown,
    /// Without a handshake: each request is independent.
    Stateless,
    /// With `initialize`.
    Handshake,
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

/// Reason why a program did not become a connection.
struct FailedStart {
    message: String,
    /// Whether the program answered, so that another handshake may work.
    has_answered: bool,
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
            Endpoint::Program { .. } => self.connect_program(timeout).await,
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
                let late = || ConnectError::Failed(no_answer(timeout));
                let going = self.connect_http(http, *transport);
                tokio::time::timeout(timeout, going)
                    .await
                    .unwrap_or_else(|_| Err(late()))
            }
        }
    }

    /// Returns the program that downloads the server, if one does.
    pub(super) fn fetcher(&self) -> Option<Fetcher> {
        match &self.remote.endpoint {
            Endpoint::Program {
                program, arguments, ..
            } => Fetcher::of(program, arguments),
            Endpoint::Address { .. } => None,
        }
    }

    /// Starts a program. If its answer to the first handshake is of no use, starts it again
    /// with the other one.
    async fn connect_program(&self, timeout: Duration) -> Result<Connection, ConnectError> {
        let Some(programs) = self.programs else {
            let message = "cannot be started: this session cannot run programs";
            return Err(message.to_owned().into());
        };
        let fetcher = self.fetcher();
        let folder = self.remote.cache.as_deref();
        let cache = fetcher.as_ref().and_then(|fetcher| fetcher.cache(folder));
        let noted = match &cache {
            Some(cache) => {
                let folder = cache.folder.clone();
                let begin = tokio::task::spawn_blocking(move || NotedStart::begin(&folder));
                begin.await.ok().flatten()
            }
            None => None,
        };
        let start = || self.start_of(cache.clone());
        let is_remembered = self.start_mode == ConversationStart::Stateless;
        let (first, second) = match is_remembered {
            true => (ConversationStart::Stateless, ConversationStart::Handshake),
            false => (ConversationStart::Handshake, ConversationStart::Stateless),
        };
        let began = Instant::now();
        let mut result = self.attempt(programs, start(), first, timeout).await;
        if let Err(failed) = &result
            && (failed.has_answered || is_remembered && began.elapsed() < timeout)
        {
            let rest = (began.elapsed() * 2 + SECOND_HANDSHAKE).min(timeout);
            if let Ok(connection) = self.attempt(programs, start(), second, rest).await {
                result = Ok(connection);
            }
        }
        if let Some(noted) = noted {
            let is_connected = result.is_ok();
            let end = tokio::task::spawn_blocking(move || match is_connected {
                true => noted.succeeded(),
                false => noted.failed(),
            });
            let _ = end.await;
        }
        result.map_err(|failed| ConnectError::Failed(failed.message))
    }

    fn start_of(&self, cache: Option<haft::Cache>) -> Option<Start> {
        let Endpoint::Program {
            program,
            shown,
            arguments,
            environment,
            dir,
            log,
        } = &self.remote.endpoint
        else {
            return None;
        };
        Some(Start {
            name: program_name(&self.remote.name),
            program: program.clone(),
            shown: shown.clone(),
            arguments: arguments.clone(),
            environment: environment.clone(),
            cache,
            dir: dir.clone(),
            log: log.clone(),
            installer: self.remote.installer,
        })
    }

    /// Starts a program and talks to it in one way.
    async fn attempt(
        &self,
        programs: &Programs,
        start: Option<Start>,
        mode: ConversationStart,
        timeout: Duration,
    ) -> Result<Connection, FailedStart> {
        let failed = |message| FailedStart {
            message,
            has_answered: false,
        };
        let start = start.ok_or_else(|| failed("is not a program".to_owned()))?;
        let talk = programs
            .converse(start)
            .await
            .map_err(|error| failed(format!("did not start: {error}")))?;
        let stream_end = Arc::new(OnceLock::new());
        let transport = Stdio::new(talk.input, talk.output, Arc::clone(&stream_end));
        let served = tokio::time::timeout(timeout, self.serve(transport, mode)).await;
        let error = match served {
            Ok(Ok((dispatcher, service))) => {
                let running = Some(talk.running);
                return Ok(Connection::new(dispatcher, service, running, stream_end));
            }
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        // A broken pipe on our side may be the first sign that the program has exited.
        let is_broken = matches!(error, Some(ClientInitializeError::TransportError { .. }));
        let stream_end = stream_end.get().copied();
        let seen = stream_end.or_else(|| is_broken.then_some(StreamEnd::Ended));
        let (status, mut last) = exit_and_log(&talk.running, seen).await;
        if let Some(advice) = programs.advice(self.remote.installer, &last) {
            last.push_str(&format!("\n[{advice}]"));
        }
        let has_answered = error.as_ref().is_some_and(is_answer);
        let how = match (stream_end, status, error) {
            (Some(StreamEnd::Garbage), ..) => {
                "wrote too much that is not a valid message".to_owned()
            }
            (_, _, Some(error)) if has_answered => {
                format!("failed the handshake: {}", describe_handshake_error(&error))
            }
            (_, Some(exit), _) => format!("exited at its start ({})", describe_exit(exit)),
            (Some(StreamEnd::Ended), None, _) => "closed its output at its start".to_owned(),
            (None, None, Some(error)) => {
                format!("failed the handshake: {}", describe_handshake_error(&error))
            }
            (None, None, None) => no_answer(timeout),
        };
        Err(FailedStart {
            message: format!("{how}{last}"),
            has_answered,
        })
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
        // This transport is older than any other way to start.
        let (dispatcher, service) = self
            .serve(transport, ConversationStart::Handshake)
            .await
            .map_err(|error| connect_error(&error))?;
        Ok(Connection::new(dispatcher, service, None, stream_end))
    }

    /// Connects in the way that worked before, and if the answer is of no use, in the other
    /// one.
    async fn connect_streamable(&self, http: Http) -> Result<Connection, ConnectError> {
        let second = match self.start_mode {
            ConversationStart::Handshake => ConversationStart::Stateless,
            ConversationStart::Unknown | ConversationStart::Stateless => {
                ConversationStart::Handshake
            }
        };
        let error = match self.talk_http(http.clone(), self.start_mode).await {
            Ok(connection) => return Ok(connection),
            Err(error) => error,
        };
        if is_answer(&error)
            && let Ok(connection) = self.talk_http(http, second).await
        {
            return Ok(connection);
        }
        Err(connect_error(&error))
    }

    async fn talk_http(
        &self,
        http: Http,
        mode: ConversationStart,
    ) -> Result<Connection, ClientInitializeError> {
        let config = StreamableHttpClientTransportConfig::with_uri(http.url().as_str());
        let transport = StreamableHttpClientTransport::with_client(http, config);
        let (dispatcher, service) = self.serve(transport, mode).await?;
        let stream_end = Arc::new(OnceLock::new());
        Ok(Connection::new(dispatcher, service, None, stream_end))
    }

    async fn serve<T>(
        &self,
        transport: T,
        mode: ConversationStart,
    ) -> Result<(Arc<Dispatcher>, RunningService<RoleClient, Handler>), ClientInitializeError>
    where
        T: rmcp::transport::Transport<RoleClient> + 'static,
    {
        let dispatcher = Arc::new(Dispatcher::default());
        let dir = self.programs.map(Programs::dir);
        let handler = Handler::new(Arc::clone(&dispatcher), dir, Arc::clone(&self.changed));
        let stateless = || vec![ProtocolVersion::LATEST];
        let lifecycle = match mode {
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

/// Whether the server answered the handshake, but with something that is of no use.
fn is_answer(error: &ClientInitializeError) -> bool {
    !matches!(
        error,
        ClientInitializeError::TransportError { .. }
            | ClientInitializeError::ConnectionClosed(_)
            | ClientInitializeError::Cancelled
    )
}

fn no_answer(timeout: Duration) -> String {
    format!(
        "did not answer within {} seconds (`start_timeout` allows more)",
        timeout.as_secs_f64()
    )
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
pub(super) fn innermost_message(error: &dyn std::error::Error) -> String {
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
