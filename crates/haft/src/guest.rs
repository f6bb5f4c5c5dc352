//! Gives code in `haft-sandbox` access to the session's files.
//!
//! ```text
//! haft ──JSON lines──▶ haft-sandbox: one interpreter per call
//!   ◀── host_call: stat, list, read; after the run write, remove ──┘
//! ```
//!
//! `haft-sandbox` is a plugin that may request more than tool calls: the session's files,
//! through its scope, rules and backend, and the package index (`haft_web::packages`). It is
//! confined more tightly than other plugins: no network, no files except its own and the
//! system's, and a scratch folder. No file is copied in advance; each is fetched when the code
//! opens it. Files that the code writes stay in the process and go to the session after the
//! run, together with the version that was read. If that version is no longer current, the
//! other change wins and the code's file is saved separately. As a program of its own,
//! `haft-sandbox` serves the same tools over MCP with its own runtime.

use crate::{Access, Context, Error};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haft_ops::backend::{Expect, Kind, Stat, Through};
use haft_ops::scope::spelling::Misspelling;
use haft_ops::{FilePath, read};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// Maximum size of a transferred file, in bytes: it is sent as one line.
pub const LARGEST: u64 = 10 << 20;

/// Maximum number of entries of one folder.
pub const MAX_ENTRIES: usize = 10_000;

/// A request from the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
#[non_exhaustive]
pub enum GuestRequest {
    /// Returns what is at a path.
    Stat {
        /// The path, in the toolset's style.
        path: String,
    },
    /// Lists a folder.
    List {
        /// Path of the folder.
        path: String,
    },
    /// Reads a file.
    Read {
        /// Path of the file.
        path: String,
    },
    /// Writes a file, if it is unchanged.
    Write {
        /// Path of the file.
        path: String,
        /// New content in Base64.
        data: String,
        /// The version that was seen; `None` if the file did not exist.
        was: Option<String>,
    },
    /// Removes a file, if it is unchanged.
    Remove {
        /// Path of the file.
        path: String,
        /// The version that was seen.
        was: Option<String>,
    },
    /// Saves data that the reply contains only in part or not at all.
    Keep {
        /// A word for the data, unique within the call.
        name: String,
        /// The data in Base64.
        data: String,
    },
    /// Downloads a file from the package index.
    Fetch {
        /// URL of the file.
        url: String,
    },
}

/// The response to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[non_exhaustive]
pub enum GuestResponse {
    /// Metadata of the path.
    Stat(FileInfo),
    /// The content of the folder, sorted by name.
    List {
        /// Entries of the folder.
        entries: Vec<DirEntry>,
    },
    /// The content of a file.
    Data {
        /// The content in Base64.
        data: String,
        /// Version of the content.
        version: String,
    },
    /// The data was saved.
    Kept {
        /// A path that file tools can open; `None` if the session saves nothing.
        path: Option<String>,
    },
    /// The request was carried out.
    Done,
    /// The request was not carried out.
    Refused {
        /// The reason, for programs.
        why: Refusal,
        /// The reason, for people.
        message: String,
    },
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirEntry {
    /// Name of the entry.
    pub name: String,
    /// Metadata of the entry.
    #[serde(flatten)]
    pub seen: FileInfo,
}

/// Metadata of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileInfo {
    /// Whether it is a folder rather than a file.
    pub is_dir: bool,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change, in milliseconds since 1970.
    pub modified: Option<u64>,
    /// Version of the content.
    pub version: String,
}

/// Reason why a request was not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Refusal {
    /// Nothing exists at the path.
    NotFound,
    /// A folder is at the path.
    IsDirectory,
    /// A file is at the path.
    NotADirectory,
    /// The scope or a rule does not allow it.
    NotAllowed,
    /// The file is too large.
    TooLarge,
    /// The file has changed since it was seen.
    Changed,
    /// Any other failure.
    Failed,
}

/// Downloads files from the package index, and from nowhere else.
#[async_trait]
pub trait Fetch: Send + Sync {
    /// Downloads a file.
    ///
    /// # Errors
    /// Why it failed, as text.
    async fn fetch(&self, url: &str) -> Result<Vec<u8>, String>;

    /// Returns the host of a URL, if the URL belongs to the package index.
    fn host(&self, url: &str) -> Option<String>;
}

/// Access to the session's files for code in `haft-sandbox`.
#[derive(Clone, Default)]
pub struct Guest {
    /// Downloads packages for it; `None` if it cannot use packages.
    pub index: Option<Arc<dyn Fetch>>,
}

impl Guest {
    /// Answers a request on behalf of the call that runs the code.
    pub async fn answer(&self, cx: &Context, ask: GuestRequest) -> GuestResponse {
        let answer = match ask {
            GuestRequest::Stat { path } => stat(cx, &path).await,
            GuestRequest::List { path } => list(cx, &path).await,
            GuestRequest::Read { path } => data(cx, &path).await,
            GuestRequest::Write { path, data, was } => {
                write(cx, &path, &data, was.as_deref()).await
            }
            GuestRequest::Remove { path, was } => remove(cx, &path, was.as_deref()).await,
            GuestRequest::Keep { name, data } => decoded(&data).map(|bytes| GuestResponse::Kept {
                path: cx.keep_bytes(&name, &bytes),
            }),
            GuestRequest::Fetch { url } => self.fetch(cx, &url).await,
        };
        answer.unwrap_or_else(refused)
    }

    async fn fetch(&self, cx: &Context, url: &str) -> Result<GuestResponse, Error> {
        let index = self.index.as_ref();
        let index = index.ok_or_else(|| Error::failed("no package index is configured"))?;
        let host = index
            .host(url)
            .ok_or_else(|| Error::failed("the URL is not from the package index"))?;
        cx.may(crate::Resource::Host(host), &[])?;
        let bytes = index.fetch(url).await.map_err(Error::failed)?;
        Ok(text_response(&bytes))
    }
}

fn refused(error: Error) -> GuestResponse {
    use haft_ops::Error as E;
    let why = match &error {
        Error::Operation(error) => match error {
            E::NotFound { .. } => Refusal::NotFound,
            E::IsDirectory { .. }
            | E::Misspelt {
                how: Misspelling::Slash,
                ..
            } => Refusal::IsDirectory,
            E::NotADirectory { .. } => Refusal::NotADirectory,
            E::NotAllowed { .. } | E::Protected { .. } | E::Misspelt { .. } => Refusal::NotAllowed,
            E::TooLarge { .. } | E::NoRoom { .. } => Refusal::TooLarge,
            E::Contended { .. } | E::AlreadyExists { .. } => Refusal::Changed,
            _ => Refusal::Failed,
        },
        Error::Denied { .. } | Error::NotApproved { .. } => Refusal::NotAllowed,
        _ => Refusal::Failed,
    };
    GuestResponse::Refused {
        why,
        message: error.to_string(),
    }
}

fn decoded(data: &str) -> Result<Vec<u8>, Error> {
    let decoded = STANDARD.decode(data);
    decoded.map_err(|error| Error::failed(format!("invalid Base64: {error}")))
}

fn text_response(bytes: &[u8]) -> GuestResponse {
    GuestResponse::Data {
        data: STANDARD.encode(bytes),
        version: of_content(bytes),
    }
}

async fn stat(cx: &Context, path: &str) -> Result<GuestResponse, Error> {
    let file = cx.resolve(path, Access::Read).await?;
    Ok(GuestResponse::Stat(seen(&cx.backend().stat(&file).await?)))
}

async fn list(cx: &Context, path: &str) -> Result<GuestResponse, Error> {
    let folder = cx.resolve(path, Access::Read).await?;
    let entries = cx.backend().list(&folder).await?;
    let entries = haft_ops::list::open(&folder, entries).entries;
    if entries.len() > MAX_ENTRIES {
        return Err(Error::failed(format!(
            "{path} has {} entries; code sees folders with at most {MAX_ENTRIES}",
            entries.len()
        )));
    }
    let named = entries.into_iter().filter_map(|entry| {
        let mut stat = entry.stat;
        if stat.kind == Kind::Link {
            match entry.target?.through {
                Through::To(kind) => stat.kind = kind,
                Through::Broken | Through::Unseen => return None,
            }
        }
        matches!(stat.kind, Kind::File | Kind::Directory).then_some(())?;
        Some(DirEntry {
            name: entry.name.into_string().ok()?,
            seen: seen(&stat),
        })
    });
    Ok(GuestResponse::List {
        entries: named.collect(),
    })
}

async fn data(cx: &Context, path: &str) -> Result<GuestResponse, Error> {
    let file = cx.resolve(path, Access::Read).await?;
    Ok(text_response(
        &read::whole(cx.backend(), &file, LARGEST).await?,
    ))
}

async fn write(
    cx: &Context,
    path: &str,
    data: &str,
    was: Option<&str>,
) -> Result<GuestResponse, Error> {
    let file = cx.resolve(path, Access::Write).await?;
    let bytes = decoded(data)?;
    let expect = match was {
        None => Expect::Absent,
        Some(was) => unchanged(cx, &file, was).await?,
    };
    cx.backend().write(&file, bytes, expect).await?;
    Ok(GuestResponse::Done)
}

async fn remove(cx: &Context, path: &str, was: Option<&str>) -> Result<GuestResponse, Error> {
    let file = cx.resolve(path, Access::Unlink).await?;
    if let Some(was) = was {
        unchanged(cx, &file, was).await?;
    }
    cx.backend().remove(&file).await?;
    Ok(GuestResponse::Done)
}

/// Checks that a file is unchanged since its version was reported, and returns the
/// condition for replacing it.
async fn unchanged(cx: &Context, file: &FilePath, was: &str) -> Result<Expect, Error> {
    let changed = || {
        Error::Operation(haft_ops::Error::Contended {
            path: file.given().to_owned(),
        })
    };
    let now = match cx.backend().stat(file).await {
        Err(haft_ops::Error::NotFound { .. }) => return Err(changed()),
        stat => stat?,
    };
    let looked = of_stat(&now) == was;
    if !looked && was.starts_with(LOOKED) {
        return Err(changed());
    }
    let bytes = match read::whole(cx.backend(), file, LARGEST).await {
        // Too large to compare by content.
        Err(haft_ops::Error::TooLarge { .. }) if looked => return Ok(Expect::Anything),
        bytes => bytes?,
    };
    if !looked && of_content(&bytes) != was {
        return Err(changed());
    }
    Ok(Expect::Exactly(bytes.into()))
}

/// Prefix of versions that come from the metadata of a file.
const LOOKED: &str = "stat ";

fn of_stat(stat: &Stat) -> String {
    let modified = stat
        .modified
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified = modified.map_or(0, |since| since.as_nanos());
    format!("{LOOKED}{} {modified}", stat.size)
}

/// FNV-1a with the length: detects changes, but is not cryptographic.
fn of_content(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("data {} {hash:016x}", bytes.len())
}

fn seen(stat: &Stat) -> FileInfo {
    let modified = stat
        .modified
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .and_then(|since| u64::try_from(since.as_millis()).ok());
    FileInfo {
        is_dir: stat.kind == Kind::Directory,
        size: stat.size,
        modified,
        version: of_stat(stat),
    }
}
