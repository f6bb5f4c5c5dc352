//! An engine: where it is, and how it is asked.

use super::{Hit, Why, brave, duckduckgo, searxng, tavily};
use crate::Secret;
use crate::client::{
    ACCEPTED, Client, Header, Method, Origin, Redirects, Request, Response, retry_after,
};
use std::time::{Duration, Instant};
use url::Url;

/// The most that is read of an answer.
const MOST_BYTES: usize = 2 << 20;
/// An engine that is busy is asked again after that, unless it says when.
const AGAIN: Duration = Duration::from_secs(1);
/// One that wants to be left alone for longer is not.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// The engines there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// DuckDuckGo's page for small devices. It needs no key.
    DuckDuckGo,
    /// Brave's API.
    Brave,
    /// An instance of SearXNG that answers in JSON.
    Searxng,
    /// Tavily's API.
    Tavily,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::DuckDuckGo, Self::Brave, Self::Searxng, Self::Tavily];

    /// Its name, as a configuration has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DuckDuckGo => "duckduckgo",
            Self::Brave => "brave",
            Self::Searxng => "searxng",
            Self::Tavily => "tavily",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it answers nobody without a key.
    #[must_use]
    pub fn needs_key(self) -> bool {
        matches!(self, Self::Brave | Self::Tavily)
    }

    /// Where it is, if that is one place.
    fn usual(self) -> Option<&'static str> {
        match self {
            Self::DuckDuckGo => Some("https://lite.duckduckgo.com"),
            Self::Brave => Some("https://api.search.brave.com"),
            Self::Tavily => Some("https://api.tavily.com"),
            Self::Searxng => None,
        }
    }
}

/// An engine that can be asked.
#[derive(Debug, Clone)]
pub struct Engine {
    kind: Kind,
    base: Url,
    key: Option<Secret>,
}

/// What an engine is asked by.
pub(super) struct Question {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: Vec<Header>,
    pub(super) body: Option<Vec<u8>>,
}

/// What it answers.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) url: Url,
    pub(super) text: String,
}

impl Engine {
    /// An engine as a configuration has it.
    ///
    /// # Errors
    /// What is missing or wrong, in words.
    pub fn new(kind: Kind, base_url: Option<&str>, key: Option<Secret>) -> Result<Self, String> {
        let name = kind.name();
        let base = base_url
            .or(kind.usual())
            .ok_or_else(|| format!("{name} needs a base_url: the address of an instance"))?;
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
                format!(
                    "the base_url of {name} is not an http or https address without a user name"
                )
            })?;
        let key = key.filter(|key| !key.expose().is_empty());
        if kind.needs_key() && key.is_none() {
            return Err(format!("{name} needs a key"));
        }
        let sendable = |key: &Secret| key.expose().bytes().all(|byte| byte.is_ascii_graphic());
        if !key.as_ref().is_none_or(sendable) {
            return Err(format!(
                "the key of {name} has a character in it that no key has"
            ));
        }
        Ok(Self { kind, base, key })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// The host that is asked.
    #[must_use]
    pub fn host(&self) -> String {
        self.base.host_str().unwrap_or_default().to_owned()
    }

    /// An address of the engine: its base and these parts, unless it ends in them.
    pub(super) fn at(&self, parts: &[&str]) -> Url {
        let mut url = self.base.clone();
        let own: Vec<String> = url
            .path_segments()
            .map(|own| own.map(str::to_owned).collect())
            .unwrap_or_default();
        let own: Vec<&str> = own
            .iter()
            .map(String::as_str)
            .filter(|part| !part.is_empty())
            .collect();
        let parts = if own.ends_with(parts) { &[] } else { parts };
        if let Ok(mut path) = url.path_segments_mut() {
            path.clear().extend(own.iter().chain(parts));
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
        most: usize,
        time: Duration,
    ) -> Result<Vec<Hit>, Why> {
        let question = || match self.kind {
            Kind::DuckDuckGo => duckduckgo::question(self, query),
            Kind::Brave => brave::question(self, query, most),
            Kind::Searxng => searxng::question(self, query),
            Kind::Tavily => tavily::question(self, query, most),
        };
        let deadline = Instant::now() + time;
        let mut response = send(client, question(), time).await?;
        if let Some(wait) = again_after(&response, deadline) {
            tokio::time::sleep(wait).await;
            let left = deadline.saturating_duration_since(Instant::now());
            response = send(client, question(), left).await?;
        }
        let answer = take(response).await?;
        match self.kind {
            Kind::DuckDuckGo => duckduckgo::read(&answer),
            Kind::Brave => brave::read(&answer),
            Kind::Searxng => searxng::read(&answer),
            Kind::Tavily => tavily::read(&answer),
        }
    }
}

async fn send(client: &Client, question: Question, time: Duration) -> Result<Response, Why> {
    let mut headers = question.headers;
    headers.push(Header::Plain("accept-encoding", ACCEPTED.to_owned()));
    headers.push(Header::Plain("accept-language", "en, *;q=0.5".to_owned()));
    let request = Request {
        method: question.method,
        url: question.url,
        // Engines come from the person's configuration, addresses too.
        origin: Origin::Configuration,
        headers,
        body: question.body,
        timeout: time,
        limit: MOST_BYTES,
        // The rules were asked about this host alone.
        redirects: Redirects::SameHost,
    };
    client.send(request).await.map_err(Why::NoAnswer)
}

fn again_after(response: &Response, deadline: Instant) -> Option<Duration> {
    if !matches!(response.status, 429 | 503) {
        return None;
    }
    let asked = response.header("retry-after").and_then(retry_after);
    let wait = asked.unwrap_or(AGAIN);
    let left = deadline.saturating_duration_since(Instant::now());
    (wait <= LONGEST_WAIT && wait < left / 2).then_some(wait)
}

/// Takes what an answer holds. A page for people may be a captcha with any status, so
/// only what says enough by itself is judged here.
async fn take(response: Response) -> Result<Answer, Why> {
    let (status, line) = (response.status, response.status_line());
    let wait = response.header("retry-after").and_then(retry_after);
    let url = response.url.clone();
    let body = response.body().await.map_err(Why::NoAnswer)?;
    let text = String::from_utf8_lossy(&body.bytes).into_owned();
    if duckduckgo::keeps_out(&text) {
        return Err(Why::Blocked { status });
    }
    match status {
        200..=299 => Ok(Answer { status, url, text }),
        429 | 503 => Err(Why::Busy { wait }),
        401 => Err(Why::Key { status }),
        _ => Err(Why::Status {
            line,
            hint: match status {
                403 => {
                    " (an instance of SearXNG may not give JSON; an API may not know the key; others keep programs out)"
                }
                422 => " (the key may not be one of this service)",
                _ => "",
            },
        }),
    }
}
