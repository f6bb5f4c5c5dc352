//! Several backends as one tree. The scope that checks a path routes it to the backend with
//! the longest matching mount path, which is then removed from it. A mount always appears
//! as a folder of its parent folder, whatever that backend contains there.

use super::{Backend, Content, Entry, Expect, Kind, Part, Stat, Written};
use crate::scope::mounts::Mounted;
use crate::scope::{MountPoint, Visibility};
use crate::{Error, FilePath, Result, Scope};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A backend mounted in the tree.
pub struct Mount {
    /// Absolute mount path.
    pub at: PathBuf,
    /// The mounted backend.
    pub backend: Arc<dyn Backend>,
    /// Scope of the backend's own paths.
    pub scope: Scope,
    /// Whether it appears in listings of its parent.
    pub visibility: Visibility,
}

/// Several backends as one tree.
pub struct Composite {
    backends: Vec<Arc<dyn Backend>>,
}

impl Composite {
    /// Creates a tree, and the scope for its paths. `work_dir` is the working directory of
    /// commands, which do not see the tree.
    #[must_use]
    pub fn new(mounts: Vec<Mount>, work_dir: PathBuf) -> (Self, Scope) {
        let (mut backends, mut points) = (Vec::new(), Vec::new());
        for Mount {
            at,
            backend,
            scope,
            visibility,
        } in mounts
        {
            backends.push(backend);
            points.push(MountPoint {
                at,
                scope,
                visibility,
            });
        }
        (Self { backends }, Scope::mounted(points, work_dir))
    }

    fn number(&self, number: usize, path: &FilePath) -> Result<&dyn Backend> {
        let backend = self.backends.get(number);
        backend
            .map(|backend| &**backend)
            .ok_or_else(|| Error::Fault(format!("{} is not a path of this tree", path.given())))
    }

    /// Returns the backend that a path belongs to.
    fn holder(&self, path: &FilePath) -> Result<&dyn Backend> {
        let number = path.mounted().map_or(usize::MAX, |mounted| mounted.number);
        self.number(number, path)
    }
}

/// Whether mounts are below a path, which makes it a folder in any case.
fn is_above(path: &FilePath) -> bool {
    path.mounted()
        .is_some_and(|mounted| mounted.below().next().is_some())
}

const FOLDER: Stat = Stat {
    kind: Kind::Directory,
    size: 0,
    modified: None,
    mode: None,
};

#[async_trait]
impl Backend for Composite {
    async fn read(&self, path: &FilePath) -> Result<Content> {
        if is_above(path) {
            return Err(Error::IsDirectory {
                path: path.given().to_owned(),
            });
        }
        self.holder(path)?.read(path).await
    }

    async fn write(&self, path: &FilePath, bytes: Vec<u8>, expect: Expect) -> Result<Written> {
        if is_above(path) {
            return Err(Error::IsDirectory {
                path: path.given().to_owned(),
            });
        }
        self.holder(path)?.write(path, bytes, expect).await
    }

    async fn remove(&self, path: &FilePath) -> Result<()> {
        if is_above(path) {
            return Err(Error::IsDirectory {
                path: path.given().to_owned(),
            });
        }
        self.holder(path)?.remove(path).await
    }

    async fn stat(&self, path: &FilePath) -> Result<Stat> {
        match self.holder(path)?.stat(path).await {
            Ok(stat) if stat.kind != Kind::Directory && is_above(path) => Ok(FOLDER),
            Err(Error::NotFound { .. } | Error::NotADirectory { .. }) if is_above(path) => {
                Ok(FOLDER)
            }
            other => other,
        }
    }

    async fn list(&self, path: &FilePath) -> Result<Vec<Entry>> {
        let entries = match self.holder(path)?.list(path).await {
            Err(Error::NotFound { .. } | Error::NotADirectory { .. }) if is_above(path) => {
                Vec::new()
            }
            other => other?,
        };
        let Some(mounted) = path.mounted().filter(|_| is_above(path)) else {
            return Ok(entries);
        };
        let mut entries: BTreeMap<_, _> = entries
            .into_iter()
            .map(|entry| (entry.name.clone(), entry))
            .collect();
        for (number, below) in mounted.below() {
            let (name, is_mount) = first(below);
            let stat = match mounted.root_of(number).filter(|_| is_mount) {
                Some(root) => self.number(number, &root)?.stat(&root).await?,
                None => FOLDER,
            };
            let known = entries.get(name).map(|entry| entry.stat.kind);
            if is_mount || known != Some(Kind::Directory) {
                let name = name.to_owned();
                let entry = Entry {
                    name: name.clone(),
                    stat,
                    target: None,
                };
                entries.insert(name, entry);
            }
        }
        Ok(entries.into_values().collect())
    }

    fn on_disk<'a>(&self, path: &'a FilePath) -> Option<&'a Path> {
        if is_above(path) {
            return None;
        }
        self.holder(path).ok()?.on_disk(path)
    }

    fn parts(&self, path: &FilePath) -> Vec<Part<'_>> {
        let Some(mounted) = path.mounted() else {
            return Vec::new();
        };
        let own = (mounted.number, PathBuf::new());
        let mounts = mounted
            .below()
            .map(|(number, below)| (number, below.to_owned()));
        let all: Vec<_> = [own].into_iter().chain(mounts).collect();
        let part = |(number, below): &(usize, PathBuf)| self.part(*number, below, path, mounted);
        all.iter().filter_map(part).collect()
    }
}

impl Composite {
    fn part(
        &self,
        number: usize,
        below: &Path,
        path: &FilePath,
        mounted: &Mounted,
    ) -> Option<Part<'_>> {
        let is_start = below.as_os_str().is_empty();
        let start = if is_start {
            Some(path.clone())
        } else {
            let root = mounted.root_of(number);
            root.map(|root| root.with_filter_of(path, below))
        };
        let covered = mounted.all_below().filter_map(|other| {
            let inside = other.strip_prefix(below).ok()?;
            (!inside.as_os_str().is_empty()).then(|| inside.to_owned())
        });
        Some(Part {
            backend: self.number(number, path).ok()?,
            path: start?,
            below: below.to_owned(),
            covered: covered.collect(),
        })
    }
}

/// Returns the first component of a path, and whether it is the only one.
fn first(below: &Path) -> (&OsStr, bool) {
    let mut parts = below
        .components()
        .filter(|part| matches!(part, Component::Normal(_)));
    let name = parts
        .next()
        .map_or_else(|| OsStr::new(""), |part| part.as_os_str());
    (name, parts.next().is_none())
}
