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

use crate::{Access, Context, Effect, Error};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haft_ops::backend::{Expect, Kind, Stat, Through};
use haft_ops::scope::spelling::Misspelling;
use haft_ops::{FilePath, read};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// The largest file that passes, in bytes: it is one line on its way.
pub const LARGEST: u64 = 10 << 20;

/// The most entries of one folder.
pub const MOST_ENTRIES: usize = 10_000;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ask {
    /// What is at a path.
    Stat {
        /// The path, as the toolset writes paths.
        path: String,
    },
    /// What is in a folder.
    List {
        /// The folder.
        path: String,
    },
    /// What is in a file.
    Read {
        /// The file.
        path: String,
    },
    /// Puts this into a file, if it is what it was.
    Write {
        /// The file.
        path: String,
        /// What it shall hold, in Base64.
        data: String,
        /// The version that was seen; none if nothing was there.
        was: Option<String>,
    },
    /// Takes a file away, if it is what it was.
    Remove {
        /// The file.
        path: String,
        /// The version that was seen.
        was: Option<String>,
    },
    /// Keeps something whole that a reply gives in part or not at all.
    Keep {
        /// What it is, one word: each of a call has its own.
        name: String,
        /// Its bytes, in Base64.
        data: String,
    },
    /// Something from the package index.
    Fetch {
        /// Its address.
        url: String,
    },
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Told {
    /// What is there.
    Stat(Seen),
    /// What is in the folder, sorted by name.
    List {
        /// Its entries.
        entries: Vec<Named>,
    },
    /// What is in the file.
    Data {
        /// Its bytes, in Base64.
        data: String,
        /// The version that this is.
        version: String,
    },
    /// Where it is kept; nowhere if the session keeps nothing.
    Kept {
        /// A path that file tools can open.
        path: Option<String>,
    },
    /// It is done.
    Done,
    /// It is not done.
    Refused {
        /// Why, for a program.
        why: Refusal,
        /// Why, in words.
        message: String,
    },
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub seen: Seen,
}

/// What is known of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Whether it is a folder rather than a file.
    pub is_dir: bool,
    /// Its size in bytes.
    pub size: u64,
    /// When it was changed, in milliseconds since 1970.
    pub modified: Option<u64>,
    /// The version that this is.
    pub version: String,
}

/// Why something is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Refusal {
    /// Nothing is there.
    NotFound,
    /// A folder is there.
    IsDirectory,
    /// A file is there.
    NotADirectory,
    /// The scope or a rule says no.
    NotAllowed,
    /// It is too large.
    TooLarge,
    /// It is not what it was.
    Changed,
    /// Something else.
    Failed,
}

/// Who fetches what code wants from the package index, and nothing else.
#[async_trait]
pub trait Fetch: Send + Sync {
    /// Fetches it.
    ///
    /// # Errors
    /// Says what is wrong, in words.
    async fn fetch(&self, url: &str) -> Result<Vec<u8>, String>;

    /// The host that an address is at, if it is one that may be asked for.
    fn host(&self, url: &str) -> Option<String>;
}

/// Code that works on the files of a session from outside.
#[derive(Clone, Default)]
pub struct Guest {
    /// Who fetches packages for it; without anybody, it has none.
    pub index: Option<Arc<dyn Fetch>>,
}

impl Guest {
    /// Answers, on behalf of the call that the code is part of.
    pub async fn answer(&self, cx: &Context, ask: Ask) -> Told {
        let answer = match ask {
            Ask::Stat { path } => stat(cx, &path).await,
            Ask::List { path } => list(cx, &path).await,
            Ask::Read { path } => data(cx, &path).await,
            Ask::Write { path, data, was } => write(cx, &path, &data, was.as_deref()).await,
            Ask::Remove { path, was } => remove(cx, &path, was.as_deref()).await,
            Ask::Keep { name, data } => decoded(&data).map(|bytes| Told::Kept {
                path: cx.keep_bytes(&name, &bytes),
            }),
            Ask::Fetch { url } => self.fetch(cx, &url).await,
        };
        answer.unwrap_or_else(refused)
    }

    async fn fetch(&self, cx: &Context, url: &str) -> Result<Told, Error> {
        let index = self.index.as_ref();
        let index = index.ok_or_else(|| Error::failed("there is no package index"))?;
        let host = index
            .host(url)
            .ok_or_else(|| Error::failed("that is not from the package index"))?;
        cx.may(Effect::Network, crate::Resource::Host(host), &[])?;
        let bytes = index.fetch(url).await.map_err(Error::failed)?;
        Ok(told(&bytes))
    }
}

fn refused(error: Error) -> Told {
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
        Error::Denied { .. } => Refusal::NotAllowed,
        _ => Refusal::Failed,
    };
    Told::Refused {
        why,
        message: error.to_string(),
    }
}

fn decoded(data: &str) -> Result<Vec<u8>, Error> {
    let decoded = STANDARD.decode(data);
    decoded.map_err(|error| Error::failed(format!("no Base64: {error}")))
}

fn told(bytes: &[u8]) -> Told {
    Told::Data {
        data: STANDARD.encode(bytes),
        version: of_content(bytes),
    }
}

/// A path that this call may use so.
fn allowed(cx: &Context, path: &str, access: Access) -> Result<FilePath, Error> {
    let file = cx.resolve(path, access)?;
    let effect = match access {
        Access::Read => Effect::Read,
        Access::Write | Access::Unlink => Effect::Write,
    };
    let resource = crate::Resource::Path(path.to_owned(), access);
    cx.may(effect, resource, &[(file.clone(), access)])?;
    Ok(file)
}

async fn stat(cx: &Context, path: &str) -> Result<Told, Error> {
    let file = allowed(cx, path, Access::Read)?;
    Ok(Told::Stat(seen(&cx.backend().stat(&file).await?)))
}

async fn list(cx: &Context, path: &str) -> Result<Told, Error> {
    let folder = allowed(cx, path, Access::Read)?;
    let entries = cx.backend().list(&folder).await?;
    let entries = haft_ops::list::open(&folder, entries).entries;
    if entries.len() > MOST_ENTRIES {
        return Err(Error::failed(format!(
            "{path} has {} entries; code sees folders with at most {MOST_ENTRIES}",
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
        Some(Named {
            name: entry.name.into_string().ok()?,
            seen: seen(&stat),
        })
    });
    Ok(Told::List {
        entries: named.collect(),
    })
}

async fn data(cx: &Context, path: &str) -> Result<Told, Error> {
    let file = allowed(cx, path, Access::Read)?;
    Ok(told(&read::whole(cx.backend(), &file, LARGEST).await?))
}

async fn write(cx: &Context, path: &str, data: &str, was: Option<&str>) -> Result<Told, Error> {
    let file = allowed(cx, path, Access::Write)?;
    let bytes = decoded(data)?;
    let expect = match was {
        None => Expect::Absent,
        Some(was) => unchanged(cx, &file, was).await?,
    };
    cx.backend().write(&file, bytes, expect).await?;
    Ok(Told::Done)
}

async fn remove(cx: &Context, path: &str, was: Option<&str>) -> Result<Told, Error> {
    let file = allowed(cx, path, Access::Unlink)?;
    if let Some(was) = was {
        unchanged(cx, &file, was).await?;
    }
    cx.backend().remove(&file).await?;
    Ok(Told::Done)
}

/// Makes sure that a file still is what it was when its version was told, and what has
/// to be there when it is replaced.
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
        // Too large to be compared by what is in it.
        Err(haft_ops::Error::TooLarge { .. }) if looked => return Ok(Expect::Anything),
        bytes => bytes?,
    };
    if !looked && of_content(&bytes) != was {
        return Err(changed());
    }
    Ok(Expect::Exactly(bytes.into()))
}

/// How versions begin that are known from the outside of a file.
const LOOKED: &str = "stat ";

fn of_stat(stat: &Stat) -> String {
    let modified = stat
        .modified
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified = modified.map_or(0, |since| since.as_nanos());
    format!("{LOOKED}{} {modified}", stat.size)
}

/// FNV-1a with the length: it tells a change from none, it is no proof against anybody.
fn of_content(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("data {} {hash:016x}", bytes.len())
}

fn seen(stat: &Stat) -> Seen {
    let modified = stat
        .modified
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .and_then(|since| u64::try_from(since.as_millis()).ok());
    Seen {
        is_dir: stat.kind == Kind::Directory,
        size: stat.size,
        modified,
        version: of_stat(stat),
    }
}
