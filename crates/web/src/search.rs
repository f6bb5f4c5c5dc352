//! Searching the web: engines are asked in order, and the first that answers is the
//! answer. A page that keeps programs out is a failure, never an empty result.

mod brave;
mod duckduckgo;
mod engine;
mod searxng;
mod tavily;

pub use engine::{Engine, Kind};

use crate::client::{Client, HttpError, words};
use crate::html::Tree;
use std::collections::BTreeSet;
use std::fmt;
use std::time::{Duration, Instant};
use url::Url;

/// How long all engines together may take.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// How long one of them may take.
const ONE: Duration = Duration::from_secs(15);
/// The longest title, in characters.
const LONGEST_TITLE: usize = 200;
/// The longest snippet, in characters.
const LONGEST_SNIPPET: usize = 400;

/// One result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// What the page is called.
    pub title: String,
    /// Where it is.
    pub url: Url,
    /// A piece of it.
    pub snippet: String,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// By whom.
    pub engine: &'static str,
    /// What, the best first.
    pub hits: Vec<Hit>,
    /// Who was asked before and did not answer.
    pub failed: Vec<Failed>,
}

/// An engine that did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Which.
    pub engine: &'static str,
    /// Why.
    pub why: Why,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.engine, self.why)
    }
}

/// Why an engine did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Why {
    /// It keeps programs out.
    #[error("blocked: it answered HTTP {status} with a captcha")]
    Blocked {
        /// The status.
        status: u16,
    },
    /// It has had too many requests.
    #[error("it has had too many requests{}", wait.map(|wait| format!(" and asks to be left alone for {}", words(wait))).unwrap_or_default())]
    Busy {
        /// How long it wants to be left alone.
        wait: Option<Duration>,
    },
    /// Its key is not accepted.
    #[error("it refused the key (HTTP {status})")]
    Key {
        /// The status.
        status: u16,
    },
    /// It answered with an error.
    #[error("it answered HTTP {line}{hint}")]
    Status {
        /// The status with its usual words.
        line: String,
        /// What that may mean.
        hint: &'static str,
    },
    /// It answered with something that is not known.
    #[error("it answered with a page that is not known")]
    Unknown,
    /// It did not answer.
    #[error("{0}")]
    NoAnswer(HttpError),
}

/// Who searches.
#[derive(Clone)]
pub struct Searcher {
    client: Client,
    engines: Vec<Engine>,
}

impl Searcher {
    /// Asks these engines, in this order.
    #[must_use]
    pub fn new(client: Client, engines: Vec<Engine>) -> Self {
        Self { client, engines }
    }

    /// The engines, in order.
    #[must_use]
    pub fn engines(&self) -> &[Engine] {
        &self.engines
    }

    /// Searches: `most` results, within this time.
    ///
    /// # Errors
    /// Why none of the engines answered, each.
    pub async fn search(
        &self,
        query: &str,
        most: usize,
        time: Duration,
    ) -> Result<Found, Vec<Failed>> {
        let deadline = Instant::now() + time;
        let mut failed = Vec::new();
        let mut empty = None;
        for engine in &self.engines {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.ask(engine, query, most, left.min(ONE)).await {
                // Another one may know more.
                Ok(hits) if hits.is_empty() => empty = empty.or(Some(engine.name())),
                Ok(hits) => {
                    return Ok(Found {
                        engine: engine.name(),
                        hits,
                        failed,
                    });
                }
                Err(why) => failed.push(Failed {
                    engine: engine.name(),
                    why,
                }),
            }
        }
        match empty {
            Some(engine) => Ok(Found {
                engine,
                hits: Vec::new(),
                failed,
            }),
            None => Err(failed),
        }
    }

    /// Asks one engine.
    ///
    /// # Errors
    /// Why it does not answer.
    pub async fn ask(
        &self,
        engine: &Engine,
        query: &str,
        most: usize,
        time: Duration,
    ) -> Result<Vec<Hit>, Why> {
        let found = engine.ask(&self.client, query, most, time).await?;
        let mut seen = BTreeSet::new();
        let hits = found.into_iter().filter(|hit| seen.insert(same(&hit.url)));
        Ok(hits.take(most).collect())
    }
}

/// What two addresses of one page have in common.
fn same(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_prefix("www.").unwrap_or(host);
    let query = url.query().map(|query| format!("?{query}"));
    format!(
        "{host}{}{}",
        url.path().trim_end_matches('/'),
        query.unwrap_or_default()
    )
}

/// A result from what an engine says of it; nothing if that is none.
fn hit(title: &str, url: &str, snippet: &str) -> Option<Hit> {
    let url = Url::parse(url.trim()).ok()?;
    let title = plain(title, LONGEST_TITLE);
    let is_web = matches!(url.scheme(), "http" | "https");
    (is_web && !title.is_empty()).then(|| Hit {
        title,
        url,
        snippet: plain(snippet, LONGEST_SNIPPET),
    })
}

/// A text on one line, no longer than that.
fn plain(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text: String = words
        .join(" ")
        .chars()
        .filter(|c| !crate::html::is_unseen(*c))
        .collect();
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most).chain(['…']).collect()
}

/// What a piece of markup says.
fn without_markup(text: &str) -> String {
    Tree::parse(text).plain_text(0)
}
