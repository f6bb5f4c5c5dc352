//! Sending. One client for each runtime and kind of address, so that all models of a
//! process share connections; made when it is first needed, and without certificates
//! where nothing is encrypted.

use super::address::Endpoint;
use super::failure::{Blamed, cut};
use super::frames::{Frames, Framing};
use crate::{ModelError, Trouble};
use ::http::{HeaderMap, HeaderValue, header};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls_platform_verifier::Verifier;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::{Handle, Id};
use tokio::time::timeout;

const CONNECT: Duration = Duration::from_secs(10);
/// An idle connection is closed before most servers would, since nobody could say
/// whether a request that meets that moment arrived.
const KEEP: Duration = Duration::from_secs(50);
/// How much of a refusal is read.
const MAX_REFUSAL: usize = 64 * 1024;
/// How long an answer may be.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
/// How long the last bytes of an answer that is complete are waited for, so that its
/// connection can be used again.
const DRAIN: Duration = Duration::from_secs(2);
/// How long they are waited for before the answer is handed on.
const SOON: Duration = Duration::from_millis(5);

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) first_byte: Duration,
    pub(super) idle: Duration,
}

/// A client of this process, as another runtime cannot use its connections.
struct Made {
    runtime: Id,
    is_secure: bool,
    client: reqwest::Client,
}

static CLIENTS: Mutex<Vec<Made>> = Mutex::new(Vec::new());

fn client(is_secure: bool) -> Result<reqwest::Client, String> {
    let runtime = Handle::current().id();
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = |made: &&Made| made.runtime == runtime && made.is_secure == is_secure;
    if let Some(made) = clients.iter().find(known) {
        return Ok(made.client.clone());
    }
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(encryption(is_secure)?)
        .http1_only()
        .tcp_nodelay(true)
        // A proxy of the environment would see the key.
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .pool_idle_timeout(KEEP)
        .build()
        .map_err(|error| format!("cannot set up HTTP: {error}"))?;
    // Runtimes that are gone, as in tests, leave theirs behind; a few are kept.
    if clients.len() >= 8 {
        clients.remove(0);
    }
    clients.push(Made {
        runtime,
        is_secure,
        client: client.clone(),
    });
    Ok(client)
}

/// What a connection is held to. One that is not encrypted is held to nothing, and
/// reading the system's certificates takes a while.
fn encryption(is_secure: bool) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let failed = |error: rustls::Error| format!("cannot set up TLS: {error}");
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    if !is_secure {
        let nobody = rustls::RootCertStore::empty();
        return Ok(config.with_root_certificates(nobody).with_no_client_auth());
    }
    let verifier = Verifier::new(provider).map_err(failed)?;
    Ok(config
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}

/// A body whose bytes others hold too.
pub(super) struct Chain {
    parts: std::vec::IntoIter<Bytes>,
    left: u64,
}

impl Chain {
    pub(super) fn new(parts: Vec<Bytes>) -> Self {
        let left = parts.iter().map(|part| part.len() as u64).sum();
        Self {
            parts: parts.into_iter(),
            left,
        }
    }
}

impl http_body::Body for Chain {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.parts.next();
        self.left -= next.as_ref().map_or(0, |part| part.len() as u64);
        Poll::Ready(next.map(|part| Ok(Frame::data(part))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }
}

/// An answer on its way.
pub(super) struct Incoming {
    response: reqwest::Response,
    frames: Frames,
    blamed: Blamed,
    patience: Patience,
    came: usize,
    is_over: bool,
}

/// Sends a body to an endpoint, with headers beside those every request has.
pub(super) async fn send(
    endpoint: &Endpoint,
    mut headers: HeaderMap,
    body: Chain,
    framing: Framing,
    patience: Patience,
    blamed: &Blamed,
) -> Result<Incoming, ModelError> {
    let client = client(endpoint.url.scheme() == "https")
        .map_err(|reason| blamed.error(Trouble::Hopeless, &reason))?;
    if framing == Framing::Events {
        let events = HeaderValue::from_static("text/event-stream");
        headers.insert(header::ACCEPT, events);
    }
    if let Some((name, value)) = &endpoint.credential {
        headers.insert(*name, value.clone());
    }
    let request = client
        .post(endpoint.url.clone())
        .headers(headers)
        .body(reqwest::Body::wrap(body));
    let response = match timeout(patience.first_byte, request.send()).await {
        Ok(response) => response.map_err(|error| blamed.network(&error))?,
        Err(_) => return Err(silent(blamed, patience.first_byte)),
    };
    let status = response.status();
    if status != ::http::StatusCode::OK {
        let headers = response.headers().clone();
        let body = refusal(response, patience.idle).await;
        return Err(blamed.status(status, &headers, &body));
    }
    let kind = response.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if framing == Framing::Events && (kind.contains("json") || kind.contains("html")) {
        let kind = kind.to_owned();
        let body = refusal(response, patience.idle).await;
        return Err(no_stream(blamed, &kind, &body));
    }
    Ok(Incoming {
        response,
        frames: Frames::new(framing),
        blamed: blamed.clone(),
        patience,
        came: 0,
        is_over: false,
    })
}

/// The beginning of a body that is no stream.
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

/// Something that says OK and is no answer: an error, or another kind of server.
fn no_stream(blamed: &Blamed, kind: &str, body: &str) -> ModelError {
    let parsed: Option<serde_json::Value> = serde_json::from_str(body).ok();
    if parsed.is_some_and(|parsed| parsed.get("error").is_some_and(|error| !error.is_null())) {
        return blamed.event(body);
    }
    let what = format!(
        "answered with {}, not with a stream of events; is `base_url` right? It began: {}",
        cut(kind),
        cut(&body.chars().take(100).collect::<String>()),
    );
    blamed.error(Trouble::Malformed, &what)
}

fn silent(blamed: &Blamed, after: Duration) -> ModelError {
    let what = format!("sent nothing for {}", humantime::format_duration(after));
    blamed.error(Trouble::Network, &what)
}

impl Incoming {
    /// The next frame; `None` when the answer's bytes are over.
    pub(super) async fn frame(&mut self) -> Result<Option<String>, ModelError> {
        loop {
            let next = self.frames.next().map_err(|_| {
                let what = "sent a line that is longer than 16 MiB";
                self.blamed.error(Trouble::Malformed, what)
            })?;
            if next.is_some() || self.is_over {
                return Ok(next);
            }
            let wait = match self.came {
                0 => self.patience.first_byte,
                _ => self.patience.idle,
            };
            let chunk = match timeout(wait, self.response.chunk()).await {
                Ok(chunk) => chunk.map_err(|error| self.broken(&error))?,
                Err(_) => return Err(silent(&self.blamed, wait)),
            };
            let Some(chunk) = chunk else {
                self.is_over = true;
                return Ok(self.frames.finish());
            };
            self.came += chunk.len();
            if self.came > MAX_ANSWER {
                let what = "sent more than 64 MiB in one answer";
                return Err(self.blamed.error(Trouble::Malformed, what));
            }
            self.frames.push(&chunk);
        }
    }

    /// A connection that ends in the middle of an answer cuts it.
    fn broken(&self, error: &reqwest::Error) -> ModelError {
        ModelError {
            trouble: Trouble::Cut,
            ..self.blamed.network(error)
        }
    }

    /// Lets the connection of an answer that is complete be used again. Its last
    /// bytes are mostly there already; who is late is waited for elsewhere.
    pub(super) async fn drain(mut self) {
        if !self.is_over && timeout(SOON, self.rest()).await.is_err() {
            tokio::spawn(async move { timeout(DRAIN, self.rest()).await });
            return;
        }
        // The connection is told by a task of its own that it is free.
        tokio::task::yield_now().await;
    }

    async fn rest(&mut self) {
        while let Ok(Some(_)) = self.response.chunk().await {}
    }
}
