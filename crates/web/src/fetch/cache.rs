//! A small on-disk cache of fetched pages, readable only by the user. It saves repeated requests
//! and drops the oldest pages first.

use super::page::RawPage;
use crate::client::Settings;
use haft_ops::private;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use url::Url;

/// Maximum size of all pages together.
const MAX_BYTES: u64 = 64 << 20;
/// Maximum number of pages.
const MAX_PAGES: usize = 500;
/// Pages that were not stored again for this long are deleted.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Upper limit for a server's `max-age`. A model that continues at an offset gets the cached
/// page for this long, whatever the server says.
const MAX_FRESHNESS: Duration = Duration::from_secs(15 * 60);
/// Cache files are never larger than this.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// Pages in a folder.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    /// The allowed and denied hosts. Part of the key: with other settings, a URL may lead to
    /// another page.
    settings: String,
}

/// A page in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CachedPage {
    pub(super) raw: RawPage,
    pub(super) hops: usize,
    pub(super) etag: Option<String>,
    pub(super) modified: Option<String>,
    stored: SystemTime,
    max_age: Duration,
}

/// The caching headers of a response.
pub(super) struct CacheHeaders {
    pub(super) etag: Option<String>,
    pub(super) modified: Option<String>,
    pub(super) control: String,
}

impl CacheHeaders {
    fn has(&self, directive: &str) -> bool {
        self.control
            .split(',')
            .any(|word| word.trim().eq_ignore_ascii_case(directive))
    }

    /// Returns how long the page may be used without asking the server.
    fn max_age(&self) -> Duration {
        if self.has("no-cache") {
            return Duration::ZERO;
        }
        let seconds = self.control.split(',').find_map(|word| {
            let (name, value) = word.split_once('=')?;
            let is_age = name.trim().eq_ignore_ascii_case("max-age");
            is_age.then(|| value.trim().parse::<u64>().ok())?
        });
        Duration::from_secs(seconds.unwrap_or_default()).min(MAX_FRESHNESS)
    }
}

impl CachedPage {
    fn age(&self) -> Duration {
        // If the clock was set back, treat the page as old.
        SystemTime::now()
            .duration_since(self.stored)
            .unwrap_or(Duration::MAX)
    }

    /// Whether it can be used without asking the server: the server allows it, or a model continues
    /// reading the page.
    pub(super) fn is_fresh(&self, continues: bool) -> bool {
        let age = self.age();
        age < self.max_age || (continues && age < MAX_FRESHNESS)
    }
}

impl Cache {
    /// Uses this folder, creating it when the first page is stored.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            settings: String::new(),
        }
    }

    /// Keys pages by these settings, because a page stored under other settings may not be
    /// reachable any more.
    pub(super) fn under(mut self, settings: &Settings) -> Self {
        let Settings { allow, deny, .. } = settings;
        self.settings = format!("{allow:?} {deny:?}");
        self
    }

    fn file(&self, url: &Url) -> PathBuf {
        let mut hash = Sha256::new();
        hash.update(self.settings.as_bytes());
        hash.update([0]);
        hash.update(url.as_str().as_bytes());
        let hash = hash.finalize();
        let name: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(name)
    }

    /// Returns the page for a URL. An unreadable one counts as missing.
    pub(super) async fn get(&self, url: &Url) -> Option<CachedPage> {
        let (path, url) = (self.file(url), url.clone());
        let read = move || read(&path, &url);
        tokio::task::spawn_blocking(read).await.ok().flatten()
    }

    /// Stores a page unless the server forbids it. A failure is only logged: the page was fetched
    /// all the same.
    pub(super) async fn put(
        &self,
        url: &Url,
        raw: &RawPage,
        hops: usize,
        cache_headers: &CacheHeaders,
    ) {
        if cache_headers.has("no-store") || raw.is_truncated {
            return;
        }
        let head = json!({
            "url": url.as_str(),
            "from": raw.url.as_str(),
            "hops": hops,
            "status": raw.status,
            "content_type": raw.content_type,
            "etag": cache_headers.etag,
            "modified": cache_headers.modified,
            "stored": seconds(SystemTime::now()),
            "lasts": cache_headers.max_age().as_secs(),
        });
        let (cache, path, bytes) = (self.clone(), self.file(url), raw.bytes.clone());
        let write = move || cache.write(&path, &head, &bytes);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(write).await {
            tracing::debug!(%error, "cannot cache a page");
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the cache folder is private to haft; no tool can name it"
    )]
    fn write(&self, path: &PathBuf, head: &Value, bytes: &[u8]) -> io::Result<()> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        private::folder(&self.folder)?;
        self.sweep(bytes.len() as u64)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_extension(format!("{}-{number}.new", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let written = private::file(&options, &temporary)
            .and_then(|mut file| {
                writeln!(file, "{head}")?;
                file.write_all(bytes)
            })
            .and_then(|()| std::fs::rename(&temporary, path));
        if written.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        written
    }

    /// Makes room for one more page of `room` bytes.
    #[expect(
        clippy::disallowed_methods,
        reason = "the cache folder is private to haft; no tool can name it"
    )]
    fn sweep(&self, room: u64) -> io::Result<()> {
        let mut files = Vec::new();
        let mut bytes = room;
        for entry in std::fs::read_dir(&self.folder)?.flatten() {
            let Ok(found) = entry.metadata() else {
                continue;
            };
            let touched = found.modified().unwrap_or(UNIX_EPOCH);
            bytes += found.len();
            files.push((touched, found.len(), entry.path()));
        }
        files.sort();
        let now = SystemTime::now();
        let mut left = files.len();
        for (touched, length, path) in files {
            let is_old = now.duration_since(touched).is_ok_and(|age| age > MAX_AGE);
            if !is_old && bytes <= MAX_BYTES && left < MAX_PAGES {
                break;
            }
            let _ = std::fs::remove_file(path);
            bytes -= length;
            left -= 1;
        }
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the cache folder is private to haft; no tool can name it"
)]
fn read(path: &PathBuf, url: &Url) -> Option<CachedPage> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(rustix_nofollow())
        .open(path)
        .ok()?;
    let mut all = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut all).ok()?;
    let end = all.iter().position(|byte| *byte == b'\n')?;
    let head: Value = serde_json::from_slice(all.get(..end)?).ok()?;
    let text = |name: &str| head.get(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name: &str| head.get(name).and_then(Value::as_u64);
    if text("url")? != url.as_str() {
        return None;
    }
    Some(CachedPage {
        raw: RawPage {
            url: Url::parse(&text("from")?).ok()?,
            status: u16::try_from(number("status")?).ok()?,
            content_type: text("content_type")?,
            bytes: all.get(end + 1..)?.to_vec(),
            is_truncated: false,
        },
        hops: usize::try_from(number("hops")?).ok()?,
        etag: text("etag"),
        modified: text("modified"),
        stored: UNIX_EPOCH.checked_add(Duration::from_secs(number("stored")?))?,
        max_age: Duration::from_secs(number("lasts")?),
    })
}

/// Does not follow links: haft creates none in this folder.
fn rustix_nofollow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default()
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}
