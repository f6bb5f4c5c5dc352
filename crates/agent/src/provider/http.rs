//! Sends requests. All models of a process share connections: there is one client for each
//! runtime and scheme, created when it is first needed. Certificates are only read for https.

use super::Provider;
use super::address::Endpoint;
use super::failure::{Peer, cut};
use crate::{ModelError, ModelErrorKind};
use ::http::{StatusCode, header};
use haft::sse;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::Verifier;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Handle, Id};
use tokio::time::timeout;

const CONNECT: Duration = Duration::from_secs(10);
/// Idle connections are closed before most servers close them, since a request sent at that
/// moment may be lost.
const KEEP: Duration = Duration::from_secs(50);
/// Maximum number of bytes read from an error.
const MAX_REFUSAL: usize = 64 * 1024;
/// Maximum size of an answer.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
/// Time to wait for the last bytes of a complete answer, so that its connection can be
/// reused.
const DRAIN: Duration = Duration::from_secs(2);
/// The part of it that delays the answer.
const SOON: Duration = Duration::from_millis(5);

/// Timeouts of a request: for the first byte, and between chunks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    pub(super) first_byte: Duration,
    pub(super) idle: Duration,
}

/// A client for one runtime, since another runtime cannot use its connections.
struct SharedClient {
    runtime: Id,
    is_secure: bool,
    client: reqwest::Client,
}

static CLIENTS: Mutex<Vec<SharedClient>> = Mutex::new(Vec::new());

fn client(is_secure: bool) -> Result<reqwest::Client, String> {
    let runtime = Handle::current().id();
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = |one: &&SharedClient| one.runtime == runtime && one.is_secure == is_secure;
    if let Some(shared) = clients.iter().find(known) {
        return Ok(shared.client.clone());
    }
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(encryption(is_secure)?)
        .http1_only()
        .tcp_nodelay(true)
        // A proxy from the environment would see the key.
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .pool_idle_timeout(KEEP)
        .build()
        .map_err(|error| format!("cannot set up HTTP: {error}"))?;
    // Runtimes that have ended, as in tests, leave their clients behind.
    if clients.len() >= 8 {
        clients.remove(0);
    }
    clients.push(SharedClient {
        runtime,
        is_secure,
        client: client.clone(),
    });
    Ok(client)
}

/// Configures TLS. Without https no certificates are loaded, since that takes a while.
fn encryption(is_secure: bool) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let failed = |error: rustls::Error| format!("cannot set up TLS: {error}");
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    if !is_secure {
        let none = rustls::RootCertStore::empty();
        return Ok(config.with_root_certificates(none).with_no_client_auth());
    }
    let verifier = Verifier::new(provider).map_err(failed)?;
    Ok(config
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

/// Splits an answer into messages.
enum Frames {
    /// Data of server-sent events.
    Events(sse::Events),
    /// A line of JSON each.
    Lines(sse::Lines),
}

impl Frames {
    fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Events(events) => events.push(bytes),
            Self::Lines(lines) => lines.push(bytes),
        }
    }

    fn next(&mut self) -> Result<Option<String>, sse::TooLarge> {
        loop {
            let frame = match self {
                Self::Events(events) => events.next()?.map(|event| event.data.unwrap_or_default()),
                Self::Lines(lines) => lines.next()?,
            };
            if frame.as_ref().is_none_or(|frame| !frame.trim().is_empty()) {
                return Ok(frame);
            }
        }
    }

    /// Returns the rest at the end: the last line may lack a line feed, an event may not.
    fn finish(&mut self) -> Option<String> {
        match self {
            Self::Events(_) => None,
            Self::Lines(lines) => Some(lines.finish()).filter(|line| !line.trim().is_empty()),
        }
    }
}

/// An answer while it arrives.
pub(super) struct Incoming {
    response: reqwest::Response,
    frames: Frames,
    peer: Peer,
    timeouts: Timeouts,
    received: usize,
    is_over: bool,
}

/// Sends a body to an endpoint. `headers` are added to those of every request.
pub(super) async fn send(
    endpoint: &Endpoint,
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
    timeouts: Timeouts,
    peer: &Peer,
) -> Result<Incoming, ModelError> {
    let client = client(endpoint.url.scheme() == "https")
        .map_err(|reason| peer.error(ModelErrorKind::Permanent, &reason))?;
    // Ollama streams lines of JSON, the others server-sent events.
    let has_lines = peer.provider == Provider::Ollama;
    let mut request = client
        .post(endpoint.url.clone())
        .header(header::CONTENT_TYPE, "application/json")
        .body(body);
    if !has_lines {
        request = request.header(header::ACCEPT, "text/event-stream");
    }
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if let Some((name, value)) = &endpoint.credential {
        request = request.header(*name, value.clone());
    }
    let response = match timeout(timeouts.first_byte, request.send()).await {
        Ok(response) => response.map_err(|error| peer.network(&error))?,
        Err(_) => return Err(silent(peer, timeouts.first_byte)),
    };
    let status = response.status();
    if status != StatusCode::OK {
        let headers = response.headers().clone();
        let body = refusal(response, timeouts.idle).await;
        return Err(peer.status(status, &headers, &body));
    }
    let kind = response.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !has_lines && (kind.contains("json") || kind.contains("html")) {
        let kind = kind.to_owned();
        let body = refusal(response, timeouts.idle).await;
        return Err(no_stream(peer, &kind, &body));
    }
    Ok(Incoming {
        response,
        frames: match has_lines {
            true => Frames::Lines(sse::Lines::default()),
            false => Frames::Events(sse::Events::default()),
        },
        peer: peer.clone(),
        timeouts,
        received: 0,
        is_over: false,
    })
}

/// Reads the beginning of a body that is not a stream.
async fn refusal(mut response: reqwest::Response, idle: Duration) -> String {
    let mut body = Vec::new();
    while let Ok(Ok(Some(chunk))) = timeout(idle, response.chunk()).await {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_REFUSAL {
            body.truncate(MAX_REFUSAL);
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}

/// Describes a body with status OK that is not a stream: an error, or not a model server.
fn no_stream(peer: &Peer, kind: &str, body: &str) -> ModelError {
    let parsed: Option<serde_json::Value> = serde_json::from_str(body).ok();
    if let Some(parsed) = parsed.filter(|parsed| !parsed["error"].is_null()) {
        return peer.failed(&parsed);
    }
    let what = format!(
        "answered with {}, not with a stream of events; check `base_url`. It starts with: {}",
        cut(kind),
        cut(&body.chars().take(100).collect::<String>()),
    );
    peer.error(ModelErrorKind::Malformed, &what)
}

fn silent(peer: &Peer, after: Duration) -> ModelError {
    let what = format!("sent nothing for {}", humantime::format_duration(after));
    peer.error(ModelErrorKind::Network, &what)
}

impl Incoming {
    /// Returns the next message, or `None` at the end.
    pub(super) async fn frame(&mut self) -> Result<Option<String>, ModelError> {
        loop {
            let next = self.frames.next().map_err(|_| {
                let what = "sent a line that is longer than 16 MiB";
                self.peer.error(ModelErrorKind::Malformed, what)
            })?;
            if next.is_some() || self.is_over {
                return Ok(next);
            }
            let wait = match self.received {
                0 => self.timeouts.first_byte,
                _ => self.timeouts.idle,
            };
            let chunk = match timeout(wait, self.response.chunk()).await {
                Ok(chunk) => chunk.map_err(|error| self.broken(&error))?,
                Err(_) => return Err(silent(&self.peer, wait)),
            };
            let Some(chunk) = chunk else {
                self.is_over = true;
                return Ok(self.frames.finish());
            };
            self.received += chunk.len();
            if self.received > MAX_ANSWER {
                let what = "sent more than 64 MiB in one answer";
                return Err(self.peer.error(ModelErrorKind::Malformed, what));
            }
            self.frames.push(&chunk);
        }
    }

    /// Describes a connection that broke in the middle of an answer.
    fn broken(&self, error: &reqwest::Error) -> ModelError {
        ModelError {
            kind: ModelErrorKind::Truncated,
            ..self.peer.network(error)
        }
    }

    /// Reads the last bytes of a complete answer, so that its connection can be reused. If
    /// they are late, a task waits for them.
    pub(super) async fn drain(mut self) {
        if !self.is_over && timeout(SOON, self.rest()).await.is_err() {
            tokio::spawn(async move { timeout(DRAIN, self.rest()).await });
            return;
        }
        // Another task returns the connection to the pool.
        tokio::task::yield_now().await;
    }

    async fn rest(&mut self) {
        while let Ok(Some(_)) = self.response.chunk().await {}
    }
}
