//! Fetches pages. Every redirect is checked, and everything that comes back is bounded. A
//! response that is not a readable page becomes an error that says what it is.

mod address;
mod cache;
mod charset;
mod error;
mod json;
mod media;
mod page;

pub use address::parse_url;
pub(crate) use address::shorten;
pub use cache::Cache;
pub use error::FetchError;

use crate::client::{
    ACCEPT_ENCODING, Client, Endpoint, Header, HttpError, MAX_REDIRECTS, Method, Origin, Redirects,
    Request, Response, Url, retry_after,
};
use address::display_url;
use cache::{CacheHeaders, CachedPage};
use page::{PageText, RawPage};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of bytes read from a page, before and after decompression.
pub const MAX_BYTES: usize = 5 << 20;
/// Time limit for one page.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit until the first byte of a response.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(20);
/// Wait before retrying a busy server, unless it sends `Retry-After`.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// If a busy server asks for a longer wait than this, the request is not retried.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(8);

/// Prefers text formats, but accepts everything.
const ACCEPT: &str =
    "text/html,application/xhtml+xml,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.5";

/// Fetches pages through the guarded client, with an optional cache.
#[derive(Clone)]
pub struct Fetcher {
    client: Client,
    cache: Option<Cache>,
}

/// Options of one fetch.
pub struct FetchOptions<'a> {
    /// Time limit, including redirects and one retry.
    pub time: Duration,
    /// Whether a page is continued at an offset; then a recently cached copy is used, so that the
    /// text is the same.
    pub continues: bool,
    /// Whether a redirect to this other host may be followed.
    pub may_redirect_to: &'a (dyn Fn(&str) -> bool + Send + Sync),
}

/// Origin of a page: the network or the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageSource {
    /// Fetched from the server.
    Server,
    /// Cached, and the server confirmed that it has not changed.
    Unchanged,
    /// Cached, without asking the server.
    Disk,
}

impl PageSource {
    /// Name in the JSON details of a call.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Unchanged => "unchanged",
            Self::Disk => "disk",
        }
    }
}

/// A fetched page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// URL after redirects.
    pub url: Url,
    /// Number of redirects that were followed.
    pub hops: usize,
    /// Media type that the server declared: `text/html`.
    pub media_type: String,
    /// Title that the page declares.
    pub title: Option<String>,
    /// Text of the page: the main part, then everything around it.
    pub text: String,
    /// Byte offset in `text` at which the main part ends.
    pub main: usize,
    /// Number of bytes fetched.
    pub bytes: usize,
    /// Whether only the beginning of the page was read.
    pub is_truncated: bool,
    /// Whether it came from the server or the cache.
    pub source: PageSource,
}

/// The response at the end of a chain of redirects.
struct FinalResponse {
    response: Response,
    url: Url,
    hops: usize,
}

impl Fetcher {
    /// Creates a fetcher, with a cache if one is given.
    #[must_use]
    pub fn new(client: Client, cache: Option<Cache>) -> Self {
        let cache = cache.map(|cache| cache.under(client.settings()));
        Self { client, cache }
    }

    /// Checks whether a page may be fetched, without a DNS lookup.
    ///
    /// # Errors
    /// Returns the reason why not.
    pub fn permits(&self, url: &Url) -> Result<(), FetchError> {
        Ok(self.client.permits(url, Origin::Untrusted)?)
    }

    /// Fetches a page.
    ///
    /// # Errors
    /// Fails if there is nothing to read.
    pub async fn fetch(&self, url: &Url, options: FetchOptions<'_>) -> Result<Fetched, FetchError> {
        let deadline = Instant::now() + options.time;
        // Fragments are never sent to a server.
        let mut url = url.clone();
        url.set_fragment(None);
        let url = &url;
        // Checked before the cache too: a page from a host that is now forbidden must not be
        // read.
        self.permits(url)?;
        let cached = match &self.cache {
            Some(cache) => cache.get(url).await,
            None => None,
        };
        let cached = cached.filter(|cached| self.is_allowed(url, cached, &options));
        if let Some(cached) = cached
            .as_ref()
            .filter(|cached| cached.is_fresh(options.continues))
        {
            return render(cached.raw.clone(), cached.hops, PageSource::Disk).await;
        }
        let mut arrived = self
            .follow(url, &options, deadline, cached.as_ref())
            .await?;
        if let Some(wait) = retry_delay(&arrived.response, deadline) {
            drop(arrived);
            tokio::time::sleep(wait).await;
            arrived = self
                .follow(url, &options, deadline, cached.as_ref())
                .await?;
        }
        let FinalResponse {
            response,
            url: from,
            hops,
        } = arrived;
        if response.status == 304
            && let Some(cached) = cached
        {
            let cache_headers = cache_headers(&response, Some(&cached));
            if let Some(cache) = &self.cache {
                cache
                    .put(url, &cached.raw, cached.hops, &cache_headers)
                    .await;
            }
            return render(cached.raw, cached.hops, PageSource::Unchanged).await;
        }
        let cache_headers = cache_headers(&response, None);
        let raw = read_response(response, from).await?;
        if let Some(cache) = &self.cache
            && raw.status == 200
        {
            cache.put(url, &raw, hops, &cache_headers).await;
        }
        render(raw, hops, PageSource::Server).await
    }

    /// Whether a cached page came from a URL that is still allowed.
    fn is_allowed(&self, url: &Url, cached: &CachedPage, options: &FetchOptions<'_>) -> bool {
        let from = &cached.raw.url;
        let is_same = from.host_str() == url.host_str();
        self.client.permits(from, Origin::Untrusted).is_ok()
            && (is_same
                || from
                    .host_str()
                    .is_some_and(|host| (options.may_redirect_to)(host)))
    }

    /// Sends the request and follows redirects.
    async fn follow(
        &self,
        url: &Url,
        options: &FetchOptions<'_>,
        deadline: Instant,
        cached: Option<&CachedPage>,
    ) -> Result<FinalResponse, FetchError> {
        let mut url = url.clone();
        let mut seen = vec![url.clone()];
        loop {
            let response = self.send(&url, options, deadline, cached).await?;
            let Some(next) = response.redirect()? else {
                return Ok(FinalResponse {
                    response,
                    url,
                    hops: seen.len() - 1,
                });
            };
            let refused = |reason| {
                FetchError::NoAnswer(HttpError::Redirect {
                    endpoint: Endpoint::of(&url),
                    reason,
                })
            };
            if seen.contains(&next) {
                return Err(refused("it is a loop"));
            }
            if seen.len() > MAX_REDIRECTS {
                return Err(refused("more than 10 redirects"));
            }
            // Check this before the rules: no rule can allow a forbidden address.
            self.client.permits(&next, Origin::Untrusted)?;
            let is_same = next.host_str() == url.host_str();
            if !is_same
                && !next
                    .host_str()
                    .is_some_and(|host| (options.may_redirect_to)(host))
            {
                return Err(FetchError::Elsewhere {
                    url: display_url(&url),
                    to: Box::new(next),
                });
            }
            seen.push(next.clone());
            url = next;
        }
    }

    async fn send(
        &self,
        url: &Url,
        options: &FetchOptions<'_>,
        deadline: Instant,
        cached: Option<&CachedPage>,
    ) -> Result<Response, HttpError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let over = |after| HttpError::TimedOut {
            endpoint: Endpoint::of(url),
            after,
            was_sent: true,
        };
        if left.is_zero() {
            return Err(over(options.time));
        }
        let mut headers = vec![
            Header::Plain("accept", ACCEPT.to_owned()),
            Header::Plain("accept-encoding", ACCEPT_ENCODING.to_owned()),
            Header::Plain("accept-language", "en, *;q=0.5".to_owned()),
        ];
        if let Some(cached) = cached {
            let mark = |name, value: &Option<String>| {
                value.clone().map(|value| Header::Plain(name, value))
            };
            headers.extend(mark("if-none-match", &cached.etag));
            headers.extend(mark("if-modified-since", &cached.modified));
        }
        let request = Request {
            method: Method::Get,
            url: url.clone(),
            origin: Origin::Untrusted,
            headers,
            body: None,
            timeout: left,
            limit: MAX_BYTES,
            redirects: Redirects::Refuse,
        };
        let first = FIRST_BYTE_TIMEOUT.min(left);
        match tokio::time::timeout(first, self.client.send(request)).await {
            // Report the time limit of the whole fetch.
            Ok(Err(HttpError::TimedOut {
                endpoint, was_sent, ..
            })) => Err(HttpError::TimedOut {
                endpoint,
                was_sent,
                after: options.time,
            }),
            Ok(response) => response,
            Err(_) if first < FIRST_BYTE_TIMEOUT => Err(over(options.time)),
            Err(_) => Err(over(FIRST_BYTE_TIMEOUT)),
        }
    }
}

/// Returns how long to wait before one retry, or `None` to not retry.
fn retry_delay(response: &Response, deadline: Instant) -> Option<Duration> {
    if !matches!(response.status, 429 | 503) || response.header("cf-mitigated").is_some() {
        return None;
    }
    let requested = response.header("retry-after").and_then(retry_after);
    let wait = requested.unwrap_or(RETRY_DELAY);
    let left = deadline.saturating_duration_since(Instant::now());
    (wait <= MAX_RETRY_DELAY && wait < left / 2).then_some(wait)
}

fn cache_headers(response: &Response, cached: Option<&CachedPage>) -> CacheHeaders {
    let header = |name: &str| response.header(name).map(str::to_owned);
    CacheHeaders {
        etag: header("etag").or_else(|| cached?.etag.clone()),
        modified: header("last-modified").or_else(|| cached?.modified.clone()),
        control: header("cache-control").unwrap_or_default(),
    }
}

/// Reads the body of a response, or returns an error by its status.
async fn read_response(mut response: Response, url: Url) -> Result<RawPage, FetchError> {
    let (status, line) = (response.status, response.status_line());
    let wait = response.header("retry-after").and_then(retry_after);
    let is_challenge = response.header("cf-mitigated").is_some();
    let content_type = response.header("content-type").unwrap_or_default();
    let content_type = content_type.to_owned();
    let mut bytes = Vec::new();
    // If the server declares binary data and the first bytes agree, skip the rest.
    if media::declares_binary(&content_type) && response.header("content-encoding").is_none() {
        let declared = response.header("content-length");
        let declared = declared.and_then(|length| length.parse::<u64>().ok());
        bytes = response.chunk().await?.unwrap_or_default().to_vec();
        if let media::Media::Binary(what) = media::detect(&bytes, &content_type) {
            return Err(FetchError::NotText {
                url: display_url(&url),
                what,
                bytes: declared.unwrap_or(bytes.len() as u64),
            });
        }
    }
    let body = response.body().await?;
    bytes.extend_from_slice(&body.bytes);
    let raw = RawPage {
        url,
        status,
        content_type,
        bytes,
        is_truncated: body.is_truncated,
    };
    if (200..300).contains(&status) && status != 202 {
        return Ok(raw);
    }
    let beginning = String::from_utf8_lossy(&raw.bytes);
    // Ordinary pages may contain a captcha in a form, so check the status as well.
    let may_be = matches!(status, 202 | 401 | 403 | 405 | 406 | 418 | 429 | 503);
    let protection = page::bot_protection(&beginning).filter(|_| may_be);
    if let Some(what) = protection.or(is_challenge.then_some("a captcha")) {
        return Err(FetchError::Blocked {
            url: display_url(&raw.url),
            status,
            what,
        });
    }
    if status == 202 {
        return Ok(raw);
    }
    let guard = StopOnDrop::default();
    let excerpt = tokio::task::spawn_blocking({
        let (raw, stop) = (raw.clone(), guard.stop());
        move || page::excerpt(&raw, &stop)
    });
    Err(FetchError::Status {
        url: display_url(&raw.url),
        status,
        line,
        excerpt: excerpt.await.unwrap_or_default(),
        wait,
    })
}

/// Tells the blocking thread that renders a page to stop when the caller is dropped: a thread
/// cannot be cancelled, so it polls this flag.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl StopOnDrop {
    fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Renders a page as text on a blocking thread.
async fn render(raw: RawPage, hops: usize, source: PageSource) -> Result<Fetched, FetchError> {
    let guard = StopOnDrop::default();
    let stop = guard.stop();
    let work = move || {
        let PageText {
            title,
            text,
            main,
            is_truncated,
        } = page::read(&raw, &stop)?;
        Ok(Fetched {
            media_type: media::essence(&raw.content_type),
            bytes: raw.bytes.len(),
            is_truncated: is_truncated || raw.is_truncated,
            url: raw.url,
            hops,
            title,
            text,
            main,
            source,
        })
    };
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| {
            Err(FetchError::NoAnswer(HttpError::Setup {
                reason: format!("cannot read the page: {error}"),
            }))
        })
}

#[cfg(test)]
mod tests {
    use super::{Ordering, StopOnDrop};

    #[test]
    fn dropping_the_caller_stops_the_thread() {
        let guard = StopOnDrop::default();
        let stop = guard.stop();
        assert!(!stop.load(Ordering::Relaxed));
        drop(guard);
        assert!(stop.load(Ordering::Relaxed));
    }
}
