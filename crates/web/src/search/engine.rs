//! A configured search engine, and how it is queried.

use super::{EngineError, Hit, brave, duckduckgo, searxng, tavily};
use crate::Secret;
use crate::client::{
    ACCEPT_ENCODING, Client, Header, Method, Origin, Redirects, Request, Response, retry_after,
};
use std::time::{Duration, Instant};
use url::Url;

/// Maximum number of bytes read from a response.
const MAX_BYTES: usize = 2 << 20;
/// Wait before retrying a busy engine, unless it sends `Retry-After`.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// If a busy engine asks for a longer wait than this, the query is not retried.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(3);

/// The supported search engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// DuckDuckGo Lite, an HTML page that needs no key.
    DuckDuckGo,
    /// Brave's API.
    Brave,
    /// A SearXNG instance with JSON output enabled.
    Searxng,
    /// Tavily's API.
    Tavily,
}

impl EngineKind {
    /// All supported engines.
    pub const ALL: [Self; 4] = [Self::DuckDuckGo, Self::Brave, Self::Searxng, Self::Tavily];

    /// Name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DuckDuckGo => "duckduckgo",
            Self::Brave => "brave",
            Self::Searxng => "searxng",
            Self::Tavily => "tavily",
        }
    }

    /// Looks up a name from the configuration.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether the engine requires an API key.
    #[must_use]
    pub fn needs_key(self) -> bool {
        matches!(self, Self::Brave | Self::Tavily)
    }

    /// Default address; SearXNG has none because every instance has its own.
    fn default_url(self) -> Option<&'static str> {
        match self {
            Self::DuckDuckGo => Some("https://lite.duckduckgo.com"),
            Self::Brave => Some("https://api.search.brave.com"),
            Self::Tavily => Some("https://api.tavily.com"),
            Self::Searxng => None,
        }
    }
}

/// A configured search engine.
#[derive(Debug, Clone)]
pub struct Engine {
    kind: EngineKind,
    base: Url,
    key: Option<Secret>,
}

/// The request that queries an engine.
pub(super) struct EngineRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: Vec<Header>,
    pub(super) body: Option<Vec<u8>>,
}

/// A successful response of an engine.
pub(super) struct EngineResponse {
    pub(super) status: u16,
    pub(super) url: Url,
    pub(super) text: String,
}

impl Engine {
    /// Creates an engine from its configuration.
    ///
    /// # Errors
    /// Returns what is missing or wrong.
    pub fn new(
        kind: EngineKind,
        base_url: Option<&str>,
        key: Option<Secret>,
    ) -> Result<Self, String> {
        let name = kind.name();
        let base = base_url
            .or(kind.default_url())
            .ok_or_else(|| format!("{name} needs a base_url: the URL of an instance"))?;
        let base = Url::parse(base.trim())
            .ok()
            .filter(|url| {
                matches!(url.scheme(), "http" | "https")
                    && url.host_str().is_some_and(|host| !host.is_empty())
                    && url.username().is_empty()
                    && url.password().is_none()
                    && url.query().is_none()
            })
            .ok_or_else(|| {
                format!("the base_url of {name} must be an http or https URL without a user name")
            })?;
        let key = key.filter(|key| !key.expose().is_empty());
        if kind.needs_key() && key.is_none() {
            return Err(format!("{name} needs a key"));
        }
        let sendable = |key: &Secret| key.expose().bytes().all(|byte| byte.is_ascii_graphic());
        if !key.as_ref().is_none_or(sendable) {
            return Err(format!(
                "the key of {name} contains a character that is not allowed in a key"
            ));
        }
        Ok(Self { kind, base, key })
    }

    /// Name in the configuration.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// The host that receives the queries.
    #[must_use]
    pub fn host(&self) -> String {
        self.base.host_str().unwrap_or_default().to_owned()
    }

    /// Returns the base URL with these path segments appended, unless it already ends in them.
    pub(super) fn url_for(&self, parts: &[&str]) -> Url {
        let mut url = self.base.clone();
        let segments: Vec<String> = url
            .path_segments()
            .map(|segments| segments.map(str::to_owned).collect())
            .unwrap_or_default();
        let segments: Vec<&str> = segments
            .iter()
            .map(String::as_str)
            .filter(|part| !part.is_empty())
            .collect();
        let parts = if segments.ends_with(parts) {
            &[]
        } else {
            parts
        };
        if let Ok(mut path) = url.path_segments_mut() {
            path.clear().extend(segments.iter().chain(parts));
        }
        url
    }

    pub(super) fn key(&self) -> &str {
        self.key.as_ref().map_or("", Secret::expose)
    }

    pub(super) async fn ask(
        &self,
        client: &Client,
        query: &str,
        max: usize,
        time: Duration,
    ) -> Result<Vec<Hit>, EngineError> {
        let request = || match self.kind {
            EngineKind::DuckDuckGo => duckduckgo::request(self, query),
            EngineKind::Brave => brave::request(self, query, max),
            EngineKind::Searxng => searxng::request(self, query),
            EngineKind::Tavily => tavily::request(self, query, max),
        };
        let deadline = Instant::now() + time;
        let mut response = send(client, request(), time).await?;
        if let Some(wait) = retry_delay(&response, deadline) {
            tokio::time::sleep(wait).await;
            let left = deadline.saturating_duration_since(Instant::now());
            response = send(client, request(), left).await?;
        }
        let response = take(response).await?;
        match self.kind {
            EngineKind::DuckDuckGo => duckduckgo::read(&response),
            EngineKind::Brave => brave::read(&response),
            EngineKind::Searxng => searxng::read(&response),
            EngineKind::Tavily => tavily::read(&response),
        }
    }
}

async fn send(
    client: &Client,
    request: EngineRequest,
    time: Duration,
) -> Result<Response, EngineError> {
    let mut headers = request.headers;
    headers.push(Header::Plain("accept-encoding", ACCEPT_ENCODING.to_owned()));
    headers.push(Header::Plain("accept-language", "en, *;q=0.5".to_owned()));
    let request = Request {
        method: request.method,
        url: request.url,
        // The user configured the engine and its address.
        origin: Origin::Configuration,
        headers,
        body: request.body,
        timeout: time,
        limit: MAX_BYTES,
        // The policy allowed only this host.
        redirects: Redirects::SameHost,
    };
    client.send(request).await.map_err(EngineError::NoAnswer)
}

fn retry_delay(response: &Response, deadline: Instant) -> Option<Duration> {
    if !matches!(response.status, 429 | 503) {
        return None;
    }
    let requested = response.header("retry-after").and_then(retry_after);
    let wait = requested.unwrap_or(RETRY_DELAY);
    let left = deadline.saturating_duration_since(Instant::now());
    (wait <= MAX_RETRY_DELAY && wait < left / 2).then_some(wait)
}

/// Reads a response. A captcha can come with any status, so it is checked first.
async fn take(response: Response) -> Result<EngineResponse, EngineError> {
    let (status, line) = (response.status, response.status_line());
    let wait = response.header("retry-after").and_then(retry_after);
    let url = response.url.clone();
    let body = response.body().await.map_err(EngineError::NoAnswer)?;
    let text = String::from_utf8_lossy(&body.bytes).into_owned();
    if duckduckgo::is_blocked(&text) {
        return Err(EngineError::Blocked { status });
    }
    match status {
        200..=299 => Ok(EngineResponse { status, url, text }),
        429 | 503 => Err(EngineError::Busy { wait }),
        401 => Err(EngineError::Key { status }),
        _ => Err(EngineError::Status {
            line,
            hint: match status {
                403 => {
                    " (SearXNG: JSON output may be disabled; an API: the key may be invalid; otherwise it may block bots)"
                }
                422 => " (the key may be invalid)",
                _ => "",
            },
        }),
    }
}
