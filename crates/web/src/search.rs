//! Searches the web. Engines are tried in order until one returns results. A page that blocks
//! bots is a failure, never an empty result.

mod brave;
mod duckduckgo;
mod engine;
mod searxng;
mod tavily;

pub use engine::{Engine, EngineKind};

use crate::client::{Client, HttpError, format_seconds};
use crate::html::Tree;
use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};
use url::Url;

/// Time limit for all engines together.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for one engine.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum length of a title in characters.
const MAX_TITLE: usize = 200;
/// Maximum length of a snippet in characters.
const MAX_SNIPPET: usize = 400;

/// One search result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Title of the page, on one line.
    pub title: String,
    /// Address of the page.
    pub url: Url,
    /// Excerpt of the page, on one line; may be empty.
    pub snippet: String,
}

/// The results of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchResults {
    /// Name of the engine that returned them.
    pub engine: &'static str,
    /// Results, best first.
    pub hits: Vec<Hit>,
    /// Engines that failed before.
    pub failed: Vec<EngineFailure>,
}

/// An engine that failed, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineFailure {
    /// Name of the engine.
    pub engine: &'static str,
    /// Cause of the failure.
    pub error: EngineError,
}

impl fmt::Display for EngineFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.engine, self.error)
    }
}

/// A failed query to one engine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// It blocks bots.
    #[error("blocked: it answered HTTP {status} with a captcha")]
    Blocked {
        /// HTTP status code.
        status: u16,
    },
    /// It received too many requests.
    #[error("too many requests{}", wait.map(|wait| format!(": it asks to wait {}", format_seconds(wait))).unwrap_or_default())]
    Busy {
        /// Value of `Retry-After`.
        wait: Option<Duration>,
    },
    /// It rejected the API key.
    #[error("it rejected the API key (HTTP {status})")]
    Key {
        /// HTTP status code.
        status: u16,
    },
    /// It returned an error status.
    #[error("it answered HTTP {line}{hint}")]
    Status {
        /// The status with its usual phrase: `404 Not Found`.
        line: String,
        /// Possible cause, in parentheses; may be empty.
        hint: &'static str,
    },
    /// Its response could not be parsed.
    #[error("its response has an unknown format")]
    Unknown,
    /// No response arrived.
    #[error("{0}")]
    NoAnswer(HttpError),
}

/// Searches the web with the configured engines.
#[derive(Clone)]
pub struct Searcher {
    client: Client,
    engines: Vec<Engine>,
}

impl Searcher {
    /// Creates a searcher that tries these engines in order.
    #[must_use]
    pub fn new(client: Client, engines: Vec<Engine>) -> Self {
        Self { client, engines }
    }

    /// Returns the engines in the order in which they are tried.
    #[must_use]
    pub fn engines(&self) -> &[Engine] {
        &self.engines
    }

    /// Returns up to `max` results within this time.
    ///
    /// # Errors
    /// Returns why each engine failed, if all did.
    pub async fn search(
        &self,
        query: &str,
        max: usize,
        time: Duration,
    ) -> Result<SearchResults, Vec<EngineFailure>> {
        let deadline = Instant::now() + time;
        let mut failed = Vec::new();
        let mut empty = None;
        for engine in &self.engines {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.ask(engine, query, max, left.min(ENGINE_TIMEOUT)).await {
                // The next engine may find something.
                Ok(hits) if hits.is_empty() => empty = empty.or(Some(engine.name())),
                Ok(hits) => {
                    return Ok(SearchResults {
                        engine: engine.name(),
                        hits,
                        failed,
                    });
                }
                Err(error) => failed.push(EngineFailure {
                    engine: engine.name(),
                    error,
                }),
            }
        }
        match empty {
            Some(engine) => Ok(SearchResults {
                engine,
                hits: Vec::new(),
                failed,
            }),
            None => Err(failed),
        }
    }

    /// Queries one engine.
    ///
    /// # Errors
    /// Returns why it failed.
    pub async fn ask(
        &self,
        engine: &Engine,
        query: &str,
        max: usize,
        time: Duration,
    ) -> Result<Vec<Hit>, EngineError> {
        let found = engine.ask(&self.client, query, max, time).await?;
        let mut seen = BTreeSet::new();
        let hits = found
            .into_iter()
            .filter(|hit| seen.insert(dedup_key(&hit.url)));
        Ok(hits.take(max).collect())
    }
}

/// Returns a key that is the same for different URLs of one page.
fn dedup_key(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_prefix("www.").unwrap_or(host);
    let query = url.query().map(|query| format!("?{query}"));
    format!(
        "{host}{}{}",
        url.path().trim_end_matches('/'),
        query.unwrap_or_default()
    )
}

/// Creates a result, unless it has no title or is not on the web.
fn hit(title: &str, url: &str, snippet: &str) -> Option<Hit> {
    let url = Url::parse(url.trim()).ok()?;
    let title = one_line(title, MAX_TITLE);
    let is_web = matches!(url.scheme(), "http" | "https");
    (is_web && !title.is_empty()).then(|| Hit {
        title,
        url,
        snippet: one_line(snippet, MAX_SNIPPET),
    })
}

/// Puts a text on one line and truncates it to `max` characters.
fn one_line(text: &str, max: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text: String = words
        .join(" ")
        .chars()
        .filter(|c| !crate::html::is_invisible(*c))
        .collect();
    if text.chars().count() <= max {
        return text;
    }
    text.chars().take(max).chain(['…']).collect()
}

/// Returns the text of an HTML fragment.
fn without_markup(text: &str) -> String {
    Tree::parse(text).plain_text(0)
}
