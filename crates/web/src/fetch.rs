//! Fetching a page: every hop is checked, whatever comes back is bounded, and what is
//! no page says what it is.

mod address;
mod cache;
mod charset;
mod json;
mod media;
mod page;
mod trouble;

pub(crate) use address::brief;
pub use address::read as address;
pub use cache::Cache;
pub use trouble::Trouble;

use crate::client::{
    ACCEPTED, Client, Header, HttpError, MAX_REDIRECTS, Method, Origin, Reach, Redirects, Request,
    Response, Url, retry_after,
};
use address::shown;
use cache::{Kept, Terms};
use page::{Raw, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The most that is read of a page, as it comes and unpacked.
pub const MOST_BYTES: usize = 5 << 20;
/// How long all of it may take.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// How long a server may think before it begins to answer.
const FIRST_BYTE: Duration = Duration::from_secs(20);
/// A server that is busy is asked again after that, unless it says when.
const AGAIN: Duration = Duration::from_secs(1);
/// A server that wants to be left alone for longer is not asked again.
const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// What is liked best; all is taken.
const ACCEPT: &str =
    "text/html,application/xhtml+xml,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.5";

/// Who fetches pages.
#[derive(Clone)]
pub struct Fetcher {
    client: Client,
    cache: Option<Cache>,
}

/// What is asked for, beside the address.
pub struct Ask<'a> {
    /// How long it may take at most.
    pub time: Duration,
    /// Whether a page that was begun is read on: then it is the same page.
    pub reads_on: bool,
    /// Whether another host may be spoken to that a redirect leads to.
    pub may_reach: &'a (dyn Fn(&str) -> bool + Send + Sync),
}

/// Where a page came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The server.
    Server,
    /// The disk, after the server said that it is still the same.
    Unchanged,
    /// The disk alone.
    Disk,
}

impl Source {
    /// Its name, for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Unchanged => "unchanged",
            Self::Disk => "disk",
        }
    }
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Where it is, after redirects.
    pub url: Url,
    /// How many redirects led there.
    pub hops: usize,
    /// What the server calls it, `text/html`.
    pub media_type: String,
    /// What it calls itself.
    pub title: Option<String>,
    /// What there is to read: what the page is about, and then what stands around that.
    pub text: String,
    /// Where the first of these ends.
    pub main: usize,
    /// How many bytes were fetched.
    pub bytes: usize,
    /// Whether there is more than was fetched.
    pub is_cut: bool,
    /// Where it came from.
    pub from: Source,
}

/// An answer at the end of its redirects.
struct Arrived {
    response: Response,
    url: Url,
    hops: usize,
}

impl Fetcher {
    /// Fetches with this client, and keeps pages there if somewhere.
    #[must_use]
    pub fn new(client: Client, cache: Option<Cache>) -> Self {
        let cache = cache.map(|cache| cache.under(client.settings()));
        Self { client, cache }
    }

    /// Fetches a page.
    ///
    /// # Errors
    /// Why there is none to read.
    pub async fn fetch(&self, url: &Url, ask: Ask<'_>) -> Result<Fetched, Trouble> {
        let deadline = Instant::now() + ask.time;
        // Which part of a page is meant is nothing that its server is told.
        let mut url = url.clone();
        url.set_fragment(None);
        let url = &url;
        // Also for what is on the disk: what may not be reached now may not be read.
        self.client.permits(url, Origin::Anybody)?;
        let kept = match &self.cache {
            Some(cache) => cache.get(url).await,
            None => None,
        };
        let kept = kept.filter(|kept| self.is_allowed(url, kept, &ask));
        if let Some(kept) = kept.as_ref().filter(|kept| kept.is_fresh(ask.reads_on)) {
            return finish(kept.raw.clone(), kept.hops, Source::Disk).await;
        }
        let mut arrived = self.arrive(url, &ask, deadline, kept.as_ref()).await?;
        if let Some(wait) = again_after(&arrived.response, deadline) {
            drop(arrived);
            tokio::time::sleep(wait).await;
            arrived = self.arrive(url, &ask, deadline, kept.as_ref()).await?;
        }
        let Arrived {
            response,
            url: from,
            hops,
        } = arrived;
        if response.status == 304
            && let Some(kept) = kept
        {
            let terms = terms(&response, Some(&kept));
            if let Some(cache) = &self.cache {
                cache.put(url, &kept.raw, kept.hops, &terms).await;
            }
            return finish(kept.raw, kept.hops, Source::Unchanged).await;
        }
        let terms = terms(&response, None);
        let raw = take(response, from).await?;
        if let Some(cache) = &self.cache
            && raw.status == 200
        {
            cache.put(url, &raw, hops, &terms).await;
        }
        finish(raw, hops, Source::Server).await
    }

    /// Whether what is on the disk came from where one may still go.
    fn is_allowed(&self, url: &Url, kept: &Kept, ask: &Ask<'_>) -> bool {
        let from = &kept.raw.url;
        let is_same = from.host_str() == url.host_str();
        self.client.permits(from, Origin::Anybody).is_ok()
            && (is_same || from.host_str().is_some_and(|host| (ask.may_reach)(host)))
    }

    /// Asks, and follows where it leads.
    async fn arrive(
        &self,
        url: &Url,
        ask: &Ask<'_>,
        deadline: Instant,
        kept: Option<&Kept>,
    ) -> Result<Arrived, Trouble> {
        let mut url = url.clone();
        let mut seen = vec![url.clone()];
        loop {
            let response = self.send(&url, ask, deadline, kept).await?;
            let Some(next) = response.redirect()? else {
                return Ok(Arrived {
                    response,
                    url,
                    hops: seen.len() - 1,
                });
            };
            let refused = |reason| {
                Trouble::NoAnswer(HttpError::Redirect {
                    reach: Reach::of(&url),
                    reason,
                })
            };
            if seen.contains(&next) {
                return Err(refused("it goes round in a circle"));
            }
            if seen.len() > MAX_REDIRECTS {
                return Err(refused("it redirects more than 10 times"));
            }
            // Before the rules are asked: what is never reached is not worth a call.
            self.client.permits(&next, Origin::Anybody)?;
            let is_same = next.host_str() == url.host_str();
            if !is_same && !next.host_str().is_some_and(|host| (ask.may_reach)(host)) {
                return Err(Trouble::Elsewhere {
                    place: shown(&url),
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
        ask: &Ask<'_>,
        deadline: Instant,
        kept: Option<&Kept>,
    ) -> Result<Response, HttpError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let over = |after| HttpError::TimedOut {
            reach: Reach::of(url),
            after,
            begun: true,
        };
        if left.is_zero() {
            return Err(over(ask.time));
        }
        let mut headers = vec![
            Header::Plain("accept", ACCEPT.to_owned()),
            Header::Plain("accept-encoding", ACCEPTED.to_owned()),
            Header::Plain("accept-language", "en, *;q=0.5".to_owned()),
        ];
        if let Some(kept) = kept {
            let mark = |name, value: &Option<String>| {
                value.clone().map(|value| Header::Plain(name, value))
            };
            headers.extend(mark("if-none-match", &kept.etag));
            headers.extend(mark("if-modified-since", &kept.modified));
        }
        let request = Request {
            method: Method::Get,
            url: url.clone(),
            origin: Origin::Anybody,
            headers,
            body: None,
            timeout: left,
            limit: MOST_BYTES,
            redirects: Redirects::Refuse,
        };
        let first = FIRST_BYTE.min(left);
        match tokio::time::timeout(first, self.client.send(request)).await {
            // The time that was over is that of the whole.
            Ok(Err(HttpError::TimedOut { reach, begun, .. })) => Err(HttpError::TimedOut {
                reach,
                begun,
                after: ask.time,
            }),
            Ok(answer) => answer,
            Err(_) if first < FIRST_BYTE => Err(over(ask.time)),
            Err(_) => Err(over(FIRST_BYTE)),
        }
    }
}

/// How long to wait before a server is asked once more; nothing if it is not.
fn again_after(response: &Response, deadline: Instant) -> Option<Duration> {
    if !matches!(response.status, 429 | 503) || response.header("cf-mitigated").is_some() {
        return None;
    }
    let asked = response.header("retry-after").and_then(retry_after);
    let wait = asked.unwrap_or(AGAIN);
    let left = deadline.saturating_duration_since(Instant::now());
    (wait <= LONGEST_WAIT && wait < left / 2).then_some(wait)
}

fn terms(response: &Response, kept: Option<&Kept>) -> Terms {
    let own = |name: &str| response.header(name).map(str::to_owned);
    Terms {
        etag: own("etag").or_else(|| kept?.etag.clone()),
        modified: own("last-modified").or_else(|| kept?.modified.clone()),
        control: own("cache-control").unwrap_or_default(),
    }
}

/// Takes what an answer holds, unless it is an error.
async fn take(mut response: Response, url: Url) -> Result<Raw, Trouble> {
    let (status, line) = (response.status, response.status_line());
    let wait = response.header("retry-after").and_then(retry_after);
    let is_challenge = response.header("cf-mitigated").is_some();
    let content_type = response.header("content-type").unwrap_or_default();
    let content_type = content_type.to_owned();
    let mut bytes = Vec::new();
    // What says of itself that it is no text is not read to its end, if it begins so.
    if media::is_said_binary(&content_type) && response.header("content-encoding").is_none() {
        let declared = response.header("content-length");
        let declared = declared.and_then(|length| length.parse::<u64>().ok());
        bytes = response.chunk().await?.unwrap_or_default().to_vec();
        if let media::Media::Binary(what) = media::of(&bytes, &content_type) {
            return Err(Trouble::NotText {
                place: shown(&url),
                what,
                bytes: declared.unwrap_or(bytes.len() as u64),
            });
        }
    }
    let body = response.body().await?;
    bytes.extend_from_slice(&body.bytes);
    let raw = Raw {
        url,
        status,
        content_type,
        bytes,
        cut: body.cut,
    };
    if (200..300).contains(&status) && status != 202 {
        return Ok(raw);
    }
    let beginning = String::from_utf8_lossy(&raw.bytes);
    // Any page may have a captcha in a form of its own.
    let may_be = matches!(status, 202 | 401 | 403 | 405 | 406 | 418 | 429 | 503);
    let kept_out = page::keeps_out(&beginning).filter(|_| may_be);
    if let Some(what) = kept_out.or(is_challenge.then_some("a captcha")) {
        return Err(Trouble::Blocked {
            place: shown(&raw.url),
            status,
            what,
        });
    }
    if status == 202 {
        return Ok(raw);
    }
    let waiting = Waiting::default();
    let excerpt = tokio::task::spawn_blocking({
        let (raw, stop) = (raw.clone(), waiting.stop());
        move || page::excerpt(&raw, &stop)
    });
    Err(Trouble::Status {
        place: shown(&raw.url),
        status,
        line,
        excerpt: excerpt.await.unwrap_or_default(),
        wait,
    })
}

/// Somebody who waits for a page to be put into words. The thread that does it cannot
/// be ended, so it looks now and then whether this is still there.
#[derive(Default)]
struct Waiting(Arc<AtomicBool>);

impl Waiting {
    fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Puts a page into words, on a thread that may take its time.
async fn finish(raw: Raw, hops: usize, from: Source) -> Result<Fetched, Trouble> {
    let waiting = Waiting::default();
    let stop = waiting.stop();
    let work = move || {
        let Read {
            title,
            text,
            main,
            is_cut,
        } = page::read(&raw, &stop)?;
        Ok(Fetched {
            media_type: media::essence(&raw.content_type),
            bytes: raw.bytes.len(),
            is_cut: is_cut || raw.cut,
            url: raw.url,
            hops,
            title,
            text,
            main,
            from,
        })
    };
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| {
            Err(Trouble::NoAnswer(HttpError::Setup {
                reason: format!("the page could not be read: {error}"),
            }))
        })
}

#[cfg(test)]
mod tests {
    use super::{Ordering, Waiting};

    #[test]
    fn who_is_gone_does_not_wait() {
        let waiting = Waiting::default();
        let stop = waiting.stop();
        assert!(!stop.load(Ordering::Relaxed));
        drop(waiting);
        assert!(stop.load(Ordering::Relaxed));
    }
}
