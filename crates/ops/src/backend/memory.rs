//! Files in memory, as strict as a disk: a folder cannot be read as a file, a file cannot
//! contain others, and only a write creates missing parents.

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

/// A file system in memory, which exists as long as this value.
#[derive(Debug, Default)]
pub struct Memory {
    files: RwLock<Files>,
    /// Maximum total size of all files, in bytes.
    most: Option<u64>,
}

#[derive(Debug, Default)]
struct Files {
    there: BTreeMap<PathBuf, File>,
    /// Removed files, with the number of that change.
    gone: BTreeMap<PathBuf, u64>,
    /// Number of changes so far.
    changes: u64,
}

#[derive(Debug, Clone)]
struct File {
    bytes: Arc<[u8]>,
    modified: SystemTime,
    /// Number of the change that created this content.
    change: u64,
}

/// A file of a [`Memory`], to store a copy of it elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Path from the root, without a leading `/`.
    pub path: PathBuf,
    /// Content; `None` if the file was removed.
    pub bytes: Option<Arc<[u8]>>,
    /// Time of the last change.
    pub modified: SystemTime,
}

impl Memory {
    /// Creates an empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty one with a maximum total size.
    #[must_use]
    pub fn bounded(most: u64) -> Self {
        Self {
            most: Some(most),
            ..Self::default()
        }
    }

    /// Returns the files changed after this change number (0 for all), and the latest
    /// number.
    #[must_use]
    pub fn changed_since(&self, change: u64) -> (u64, Vec<Kept>) {
        let files = self.files();
        if files.changes == change {
            return (change, Vec::new());
        }
        let there = files.there.iter().filter(|(_, file)| file.change > change);
        let there = there.map(|(path, file)| Kept {
            path: path.clone(),
            bytes: Some(Arc::clone(&file.bytes)),
            modified: file.modified,
        });
        let gone = files.gone.iter().filter(|(_, gone)| **gone > change);
        let gone = gone.map(|(path, _)| Kept {
            path: path.clone(),
            bytes: None,
            modified: SystemTime::now(),
        });
        (files.changes, gone.chain(there).collect())
    }

    /// Restores a saved file before any changes. Does not count as a change.
    pub fn restore(&self, kept: Kept) {
        let mut files = self.files_mut();
        if let Some(bytes) = kept.bytes {
            let file = File {
                bytes,
                modified: kept.modified,
                change: 0,
            };
            files.there.insert(kept.path, file);
        }
    }

    fn files(&self) -> RwLockReadGuard<'_, Files> {
        self.files
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn files_mut(&self) -> RwLockWriteGuard<'_, Files> {
        self.files
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Whether `path` is a folder: the root or the parent of a file.
fn is_folder(files: &BTreeMap<PathBuf, File>, path: &Path) -> bool {
    path.as_os_str().is_empty() || below(files, path).any(|(file, _)| file != path)
}

/// Returns a file where a folder would have to be.
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

/// Metadata of a folder, which is as new as its newest file.
fn folder(modified: Option<SystemTime>) -> Stat {
    Stat {
        kind: Kind::Directory,
        size: 0,
        modified,
        mode: None,
    }
}

/// Returns the files below a folder.
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
            .there
            .get(path.below())
            .ok_or_else(|| missing(&files.there, path))?;
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
        if is_folder(&files.there, path.below()) {
            return Err(Error::IsDirectory { path: given() });
        }
        if file_above(&files.there, path.below()).is_some() {
            return Err(Error::NotADirectory { path: given() });
        }
        let old = files.there.get(path.below());
        match (&expect, old) {
            (Expect::Absent, Some(_)) => return Err(Error::AlreadyExists { path: given() }),
            (Expect::Exactly(wanted), Some(old)) if old.bytes == *wanted => {}
            (Expect::Exactly(_), _) => return Err(Error::Contended { path: given() }),
            (Expect::Anything, _) | (Expect::Absent, None) => {}
        }
        let created = old.is_none();
        let replaced = old.map_or(0, |old| old.bytes.len());
        let all: usize = files.there.values().map(|file| file.bytes.len()).sum();
        let after = (all - replaced + bytes.len()) as u64;
        if let Some(most) = self.most.filter(|most| after > *most) {
            return Err(Error::NoRoom {
                path: given(),
                most,
            });
        }
        files.changes += 1;
        let file = File {
            bytes: bytes.into(),
            modified: SystemTime::now(),
            change: files.changes,
        };
        files.gone.remove(path.below());
        files.there.insert(path.below().to_owned(), file);
        Ok(Written {
            created,
            links_broken: 0,
        })
    }

    async fn remove(&self, path: &FilePath) -> Result<()> {
        let mut files = self.files_mut();
        if files.there.remove(path.below()).is_some() {
            files.changes += 1;
            let change = files.changes;
            files.gone.insert(path.below().to_owned(), change);
            return Ok(());
        }
        Err(missing(&files.there, path))
    }

    async fn stat(&self, path: &FilePath) -> Result<Stat> {
        let files = &self.files().there;
        if is_folder(files, path.below()) {
            let times = below(files, path.below()).map(|(_, file)| file.modified);
            return Ok(folder(times.max()));
        }
        files
            .get(path.below())
            .map(File::stat)
            .ok_or_else(|| missing(files, path))
    }

    async fn list(&self, path: &FilePath) -> Result<Vec<Entry>> {
        let files = &self.files().there;
        if !is_folder(files, path.below()) {
            return Err(match missing(files, path) {
                _ if files.contains_key(path.below()) => Error::NotADirectory {
                    path: path.given().to_owned(),
                },
                error => error,
            });
        }
        let mut entries: BTreeMap<OsString, Stat> = BTreeMap::new();
        for (file, content) in below(files, path.below()) {
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

/// Returns the error for a path that is not a file.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scope;

    fn shown(kept: &[Kept]) -> Vec<(String, Option<usize>)> {
        let one = |kept: &Kept| {
            let length = kept.bytes.as_ref().map(|bytes| bytes.len());
            (kept.path.display().to_string(), length)
        };
        kept.iter().map(one).collect()
    }

    #[tokio::test]
    async fn changes_report_each_file_once() {
        let (memory, scope) = (Memory::new(), Scope::detached());
        memory.restore(Kept {
            path: "old".into(),
            bytes: Some([0, 255].as_slice().into()),
            modified: SystemTime::UNIX_EPOCH,
        });
        assert_eq!(
            memory.changed_since(0),
            (0, Vec::new()),
            "restoring is not a change"
        );
        let path = |name: &str| scope.resolve(name, crate::scope::Access::Write).unwrap();
        for (name, text) in [("a", "1"), ("b/c", "22"), ("a", "333")] {
            let bytes = text.as_bytes().to_vec();
            memory
                .write(&path(name), bytes, Expect::Anything)
                .await
                .unwrap();
        }
        let (mark, changed) = memory.changed_since(0);
        let pair = |name: &str, length| (name.to_owned(), length);
        assert_eq!(shown(&changed), [pair("a", Some(3)), pair("b/c", Some(2))]);
        memory.remove(&path("a")).await.unwrap();
        memory.remove(&path("old")).await.unwrap();
        let (later, changed) = memory.changed_since(mark);
        assert_eq!(shown(&changed), [pair("a", None), pair("old", None)]);
        memory
            .write(&path("a"), vec![7], Expect::Absent)
            .await
            .unwrap();
        assert_eq!(shown(&memory.changed_since(later).1), [pair("a", Some(1))]);
    }
}
