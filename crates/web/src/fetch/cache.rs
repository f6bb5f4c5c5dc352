//! Pages that were fetched, on the disk, for their owner alone. It is small, and what
//! is old goes first: it saves a second request, it is no archive.

use super::page::Raw;
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

/// All pages together.
const MOST_BYTES: u64 = 64 << 20;
/// How many there are.
const MOST_PAGES: usize = 500;
/// A page that nobody asked for in that time goes.
const OLDEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// A page that is read on is the one that was begun for as long as that; and what a
/// server says of how long its pages last is believed up to it.
const FRESH: Duration = Duration::from_secs(15 * 60);
/// More than that no file of ours has.
const MOST_FILE: u64 = 8 << 20;

/// The pages in a folder.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
    /// What may be reached: with other settings these are other pages.
    settings: String,
}

/// A page as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) raw: Raw,
    pub(super) hops: usize,
    pub(super) etag: Option<String>,
    pub(super) modified: Option<String>,
    stored: SystemTime,
    lasts: Duration,
}

/// What an answer says of keeping it.
pub(super) struct Terms {
    pub(super) etag: Option<String>,
    pub(super) modified: Option<String>,
    pub(super) control: String,
}

impl Terms {
    fn has(&self, wanted: &str) -> bool {
        self.control
            .split(',')
            .any(|word| word.trim().eq_ignore_ascii_case(wanted))
    }

    /// How long the page may be used without asking.
    fn lasts(&self) -> Duration {
        if self.has("no-cache") {
            return Duration::ZERO;
        }
        let seconds = self.control.split(',').find_map(|word| {
            let (name, value) = word.split_once('=')?;
            let is_age = name.trim().eq_ignore_ascii_case("max-age");
            is_age.then(|| value.trim().parse::<u64>().ok())?
        });
        Duration::from_secs(seconds.unwrap_or_default()).min(FRESH)
    }
}

impl Kept {
    fn age(&self) -> Duration {
        // A clock that was set back makes nothing young.
        SystemTime::now()
            .duration_since(self.stored)
            .unwrap_or(Duration::MAX)
    }

    /// Whether it can be used without asking: the server said so, or somebody reads on.
    pub(super) fn is_fresh(&self, reads_on: bool) -> bool {
        let age = self.age();
        age < self.lasts || (reads_on && age < FRESH)
    }
}

impl Cache {
    /// Pages in this folder, which is made when there is one to keep.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            settings: String::new(),
        }
    }

    /// For whoever reaches what these settings say: what was kept under others may be
    /// out of reach now.
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

    /// The page of an address. One that cannot be read is not there.
    pub(super) async fn get(&self, url: &Url) -> Option<Kept> {
        let (path, url) = (self.file(url), url.clone());
        let read = move || read(&path, &url);
        tokio::task::spawn_blocking(read).await.ok().flatten()
    }

    /// Keeps a page, unless its server says not to. What cannot be kept is not: that
    /// is nobody's error.
    pub(super) async fn put(&self, url: &Url, raw: &Raw, hops: usize, terms: &Terms) {
        if terms.has("no-store") || raw.cut {
            return;
        }
        let head = json!({
            "url": url.as_str(),
            "from": raw.url.as_str(),
            "hops": hops,
            "status": raw.status,
            "content_type": raw.content_type,
            "etag": terms.etag,
            "modified": terms.modified,
            "stored": seconds(SystemTime::now()),
            "lasts": terms.lasts().as_secs(),
        });
        let (cache, path, bytes) = (self.clone(), self.file(url), raw.bytes.clone());
        let write = move || cache.write(&path, &head, &bytes);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(write).await {
            tracing::debug!(%error, "a page is not kept");
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a folder of haft's own, which no tool can name"
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

    /// Makes room: for one page more, and for so many bytes.
    #[expect(
        clippy::disallowed_methods,
        reason = "a folder of haft's own, which no tool can name"
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
            let is_old = now.duration_since(touched).is_ok_and(|age| age > OLDEST);
            if !is_old && bytes <= MOST_BYTES && left < MOST_PAGES {
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
    reason = "a folder of haft's own, which no tool can name"
)]
fn read(path: &PathBuf, url: &Url) -> Option<Kept> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(rustix_nofollow())
        .open(path)
        .ok()?;
    let mut all = Vec::new();
    file.take(MOST_FILE).read_to_end(&mut all).ok()?;
    let end = all.iter().position(|byte| *byte == b'\n')?;
    let head: Value = serde_json::from_slice(all.get(..end)?).ok()?;
    let text = |name: &str| head.get(name).and_then(Value::as_str).map(str::to_owned);
    let whole = |name: &str| head.get(name).and_then(Value::as_u64);
    if text("url")? != url.as_str() {
        return None;
    }
    Some(Kept {
        raw: Raw {
            url: Url::parse(&text("from")?).ok()?,
            status: u16::try_from(whole("status")?).ok()?,
            content_type: text("content_type")?,
            bytes: all.get(end + 1..)?.to_vec(),
            cut: false,
        },
        hops: usize::try_from(whole("hops")?).ok()?,
        etag: text("etag"),
        modified: text("modified"),
        stored: UNIX_EPOCH.checked_add(Duration::from_secs(whole("stored")?))?,
        lasts: Duration::from_secs(whole("lasts")?),
    })
}

/// No link is followed: the folder is ours, and nothing in it is one.
fn rustix_nofollow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default()
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}
