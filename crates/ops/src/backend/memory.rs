//! Files in memory, strict about everything a disk is strict about: a folder is
//! no file, a file is no folder, a missing parent is made by a write and by
//! nothing else.

use super::{Backend, Content, Entry, Expect, Kind, LIGHT, Stat, Written};
use crate::blocking::Weight;
use crate::{Error, FilePath, Result};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::SystemTime;

/// A file system of its own, as long as the value lives.
#[derive(Debug, Default)]
pub struct Memory {
    files: RwLock<BTreeMap<PathBuf, File>>,
    /// How many bytes all files together may have.
    most: Option<u64>,
}

#[derive(Debug, Clone)]
struct File {
    bytes: Arc<[u8]>,
    modified: SystemTime,
}

impl Memory {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty one that takes so many bytes and no more.
    #[must_use]
    pub fn bounded(most: u64) -> Self {
        Self {
            most: Some(most),
            ..Self::default()
        }
    }

    fn files(&self) -> RwLockReadGuard<'_, BTreeMap<PathBuf, File>> {
        self.files
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn files_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<PathBuf, File>> {
        self.files
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Whether `path` is a folder: the root, or something has it as a parent.
fn is_folder(files: &BTreeMap<PathBuf, File>, path: &Path) -> bool {
    path.as_os_str().is_empty() || below(files, path).any(|(file, _)| file != path)
}

/// A file where a folder would have to be.
fn file_above<'a>(files: &BTreeMap<PathBuf, File>, path: &'a Path) -> Option<&'a Path> {
    path.ancestors()
        .skip(1)
        .find(|parent| files.contains_key(*parent))
}

impl File {
    fn stat(&self) -> Stat {
        Stat {
            kind: Kind::File,
            size: self.bytes.len() as u64,
            modified: Some(self.modified),
            mode: None,
        }
    }
}

/// A folder is as new as the newest file in it.
fn folder(modified: Option<SystemTime>) -> Stat {
    Stat {
        kind: Kind::Directory,
        size: 0,
        modified,
        mode: None,
    }
}

/// The files below a folder.
fn below<'a>(
    files: &'a BTreeMap<PathBuf, File>,
    path: &'a Path,
) -> impl Iterator<Item = (&'a PathBuf, &'a File)> {
    files
        .range(path.to_owned()..)
        .take_while(move |(file, _)| file.starts_with(path))
}

#[async_trait]
impl Backend for Memory {
    async fn read(&self, path: &FilePath) -> Result<Content> {
        let files = self.files();
        let file = files
            .get(path.below())
            .ok_or_else(|| missing(&files, path))?;
        let weight = if file.bytes.len() as u64 <= LIGHT {
            Weight::Light
        } else {
            Weight::Heavy
        };
        Ok(Content {
            stat: file.stat(),
            reader: Box::new(Cursor::new(Arc::clone(&file.bytes))),
            weight,
        })
    }

    async fn write(&self, path: &FilePath, bytes: Vec<u8>, expect: Expect) -> Result<Written> {
        let given = || path.given().to_owned();
        let mut files = self.files_mut();
        if is_folder(&files, path.below()) {
            return Err(Error::IsDirectory { path: given() });
        }
        if file_above(&files, path.below()).is_some() {
            return Err(Error::NotADirectory { path: given() });
        }
        let old = files.get(path.below());
        match (&expect, old) {
            (Expect::Absent, Some(_)) => return Err(Error::AlreadyExists { path: given() }),
            (Expect::Exactly(wanted), Some(old)) if old.bytes == *wanted => {}
            (Expect::Exactly(_), _) => return Err(Error::Contended { path: given() }),
            (Expect::Anything, _) | (Expect::Absent, None) => {}
        }
        let created = old.is_none();
        let replaced = old.map_or(0, |old| old.bytes.len());
        let all: usize = files.values().map(|file| file.bytes.len()).sum();
        let after = (all - replaced + bytes.len()) as u64;
        if let Some(most) = self.most.filter(|most| after > *most) {
            return Err(Error::NoRoom {
                path: given(),
                most,
            });
        }
        files.insert(
            path.below().to_owned(),
            File {
                bytes: bytes.into(),
                modified: SystemTime::now(),
            },
        );
        Ok(Written {
            created,
            links_broken: 0,
        })
    }

    async fn remove(&self, path: &FilePath) -> Result<()> {
        let mut files = self.files_mut();
        if files.remove(path.below()).is_some() {
            return Ok(());
        }
        Err(missing(&files, path))
    }

    async fn stat(&self, path: &FilePath) -> Result<Stat> {
        let files = self.files();
        if is_folder(&files, path.below()) {
            let times = below(&files, path.below()).map(|(_, file)| file.modified);
            return Ok(folder(times.max()));
        }
        files
            .get(path.below())
            .map(File::stat)
            .ok_or_else(|| missing(&files, path))
    }

    async fn list(&self, path: &FilePath) -> Result<Vec<Entry>> {
        let files = self.files();
        if !is_folder(&files, path.below()) {
            return Err(match missing(&files, path) {
                _ if files.contains_key(path.below()) => Error::NotADirectory {
                    path: path.given().to_owned(),
                },
                error => error,
            });
        }
        let mut entries: BTreeMap<OsString, Stat> = BTreeMap::new();
        for (file, content) in below(&files, path.below()) {
            let Ok(inside) = file.strip_prefix(path.below()) else {
                continue;
            };
            let mut parts = inside.iter();
            let Some(name) = parts.next() else { continue };
            let stat = if parts.next().is_some() {
                let known = entries.get(name).and_then(|stat| stat.modified);
                folder(known.max(Some(content.modified)))
            } else {
                content.stat()
            };
            entries.insert(name.to_owned(), stat);
        }
        Ok(entries
            .into_iter()
            .map(|(name, stat)| Entry {
                name,
                stat,
                target: None,
            })
            .collect())
    }
}

/// The error for a path that is no file here.
fn missing(files: &BTreeMap<PathBuf, File>, path: &FilePath) -> Error {
    let given = path.given().to_owned();
    if is_folder(files, path.below()) {
        Error::IsDirectory { path: given }
    } else if file_above(files, path.below()).is_some() {
        Error::NotADirectory { path: given }
    } else {
        Error::NotFound {
            path: given,
            similar: Vec::new(),
        }
    }
}
