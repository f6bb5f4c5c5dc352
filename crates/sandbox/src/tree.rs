//! The files that code sees during one call: those of the session, fetched on first access,
//! with the changes of the code on top, and a few folders of haft-sandbox. Changes are
//! saved to the session at the end of the call.

mod change;
mod fault;
mod route;
mod save;

pub(crate) use fault::describe;
pub(crate) use save::Saved;

use crate::host::{Host, Refused};
use async_trait::async_trait;
use bashkit::{
    DirEntry, FileSystem, FileSystemExt, FileType, FsLimits, InMemoryFs, Metadata, Result,
};
use change::{Changes, Node};
use fault::{at, error, is_a_directory, not_a_directory, not_found};
use haft::guest::{FileInfo, LARGEST, Refusal};
use route::{Route, route};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::OnceCell;

/// Maximum number of bytes of files that a call may hold.
const ROOM: u64 = 256 << 20;

/// Folder for images that are shown in the reply.
pub(crate) const IMAGES: &str = "/tmp/images";

/// The files of one call.
pub(crate) struct Tree {
    host: Arc<dyn Host>,
    /// Files that last as long as haft-sandbox: temporary files and installed packages.
    own: Arc<dyn FileSystem>,
    /// Files for the exchange between this call's driver and haft-sandbox.
    private: InMemoryFs,
    changes: Mutex<Changes>,
    /// Whether the session has a folder `/tmp`.
    has_tmp: OnceCell<bool>,
}

/// Type of a path in the session.
enum Found {
    Dir,
    File { size: u64, modified: SystemTime },
}

impl Tree {
    pub(crate) fn new(host: Arc<dyn Host>, own: Arc<dyn FileSystem>) -> Self {
        Self {
            host,
            own,
            private: InMemoryFs::new(),
            changes: Mutex::default(),
            has_tmp: OnceCell::new(),
        }
    }

    /// Adds a file that only this call's driver sees.
    pub(crate) fn hand(&self, path: &str, bytes: &[u8]) {
        self.private.add_file(path, bytes, 0o644);
    }

    /// Reads a file that the driver wrote.
    pub(crate) async fn handed(&self, path: &str) -> Option<Vec<u8>> {
        self.private.read_file(Path::new(path)).await.ok()
    }

    /// Returns the images that the call created, sorted by name.
    pub(crate) async fn images(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let made: Vec<PathBuf> = self.changes().images.iter().cloned().collect();
        let mut images = Vec::new();
        for path in made {
            if let Ok(bytes) = self.read_file(&path).await {
                images.push((path, bytes));
            }
        }
        images
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the file system that owns a path, or `None` for the session.
    async fn holder(&self, path: &Path) -> Option<&dyn FileSystem> {
        match route(path) {
            Route::Private => Some(&self.private),
            Route::Own => Some(&*self.own),
            Route::Session => None,
            Route::Temp => {
                let asked = self.has_tmp.get_or_init(|| async {
                    let seen = self.host.stat("/tmp".to_owned()).await;
                    seen.is_ok_and(|seen| seen.is_dir)
                });
                (!*asked.await).then_some(&*self.own)
            }
        }
    }

    async fn found(&self, path: &Path) -> Result<Found> {
        if let Some(node) = self.changes().nodes.get(path) {
            return match node {
                Node::Gone { .. } => Err(not_found()),
                Node::Dir => Ok(Found::Dir),
                Node::File {
                    bytes, modified, ..
                } => Ok(Found::File {
                    size: bytes.len() as u64,
                    modified: *modified,
                }),
            };
        }
        if path == Path::new("/") {
            return Ok(Found::Dir);
        }
        let seen = self.seen(path).await.map_err(error)?;
        Ok(as_found(&seen))
    }

    /// Looks up a path in the session, at most once per call.
    async fn seen(&self, path: &Path) -> std::result::Result<FileInfo, Refused> {
        if let Some(seen) = self.changes().seen.get(path) {
            return seen.clone();
        }
        let seen = self.host.stat(text(path)).await;
        self.changes().seen.insert(path.to_owned(), seen.clone());
        seen
    }

    /// Returns the session's version of a file, if it exists.
    async fn version(&self, path: &Path) -> Result<Option<String>> {
        match self.seen(path).await {
            Ok(seen) if seen.is_dir => Err(is_a_directory()),
            Ok(seen) => Ok(Some(seen.version)),
            Err(refused) if refused.why == Refusal::NotFound => Ok(None),
            Err(refused) => Err(error(refused)),
        }
    }

    async fn bytes(&self, path: &Path) -> Result<Arc<[u8]>> {
        match self.changes().nodes.get(path) {
            Some(Node::File { bytes, .. }) => return Ok(Arc::clone(bytes)),
            Some(Node::Dir) => return Err(is_a_directory()),
            Some(Node::Gone { .. }) => return Err(not_found()),
            None => {}
        }
        let (bytes, version) = self.host.read(text(path)).await.map_err(error)?;
        let modified = self.seen(path).await.ok().map_or(UNIX_EPOCH, |s| time(&s));
        let bytes: Arc<[u8]> = bytes.into();
        let mut changes = self.changes();
        changes.take_room(path, bytes.len(), ROOM)?;
        changes.nodes.insert(
            path.to_owned(),
            Node::File {
                bytes: Arc::clone(&bytes),
                was: Some(version),
                is_changed: false,
                modified,
            },
        );
        Ok(bytes)
    }

    async fn put(&self, path: &Path, bytes: Vec<u8>) -> Result<()> {
        if bytes.len() as u64 > LARGEST {
            return Err(io::Error::other(format!(
                "file too large: {} ({} bytes, max {LARGEST} bytes)",
                path.display(),
                bytes.len()
            ))
            .into());
        }
        match self.found(parent(path)).await? {
            Found::Dir => {}
            Found::File { .. } => return Err(not_a_directory()),
        }
        let known = match self.changes().nodes.get(path) {
            Some(Node::File { was, .. } | Node::Gone { was }) => Some(was.clone()),
            Some(Node::Dir) => return Err(is_a_directory()),
            None => None,
        };
        let was = match known {
            Some(was) => was,
            None => self.version(path).await?,
        };
        let mut changes = self.changes();
        changes.take_room(path, bytes.len(), ROOM)?;
        changes.count(path)?;
        changes.nodes.insert(
            path.to_owned(),
            Node::File {
                bytes: bytes.into(),
                was,
                is_changed: true,
                modified: SystemTime::now(),
            },
        );
        Ok(())
    }

    async fn take(&self, path: &Path) -> Result<()> {
        let known = match self.changes().nodes.get(path) {
            Some(Node::File { was, .. }) => Some(was.clone()),
            Some(Node::Dir) => Some(None),
            Some(Node::Gone { .. }) => return Err(not_found()),
            None => None,
        };
        let was = match known {
            Some(was) => was,
            None => match self.found(path).await? {
                Found::Dir => None,
                Found::File { .. } => self.version(path).await?,
            },
        };
        let mut changes = self.changes();
        changes.count(path)?;
        changes.take_room(path, 0, ROOM)?;
        changes.nodes.insert(path.to_owned(), Node::Gone { was });
        Ok(())
    }

    /// Returns the entries of a folder, including changes.
    async fn entries(&self, path: &Path) -> Result<BTreeMap<String, Metadata>> {
        match self.found(path).await? {
            Found::Dir => {}
            Found::File { .. } => return Err(not_a_directory()),
        }
        let mut entries = BTreeMap::new();
        let is_made = matches!(self.changes().nodes.get(path), Some(Node::Dir));
        if !is_made {
            for (name, seen) in self.host.list(text(path)).await.map_err(error)? {
                entries.insert(name.clone(), metadata(&as_found(&seen)));
                let mut changes = self.changes();
                changes.seen.entry(path.join(name)).or_insert(Ok(seen));
            }
        }
        for (below, node) in &self.changes().nodes {
            if below.parent() != Some(path) {
                continue;
            }
            let Some(name) = below.file_name().map(|name| name.to_string_lossy()) else {
                continue;
            };
            match node {
                Node::Gone { .. } => {
                    entries.remove(&*name);
                }
                Node::Dir => {
                    entries.insert(name.into_owned(), metadata(&Found::Dir));
                }
                Node::File {
                    bytes, modified, ..
                } => {
                    let size = bytes.len() as u64;
                    let found = Found::File {
                        size,
                        modified: *modified,
                    };
                    entries.insert(name.into_owned(), metadata(&found));
                }
            }
        }
        Ok(entries)
    }

    /// Returns everything below a folder of the session, children before parents.
    async fn below(&self, path: &Path) -> Result<Vec<(PathBuf, FileType)>> {
        let (mut open, mut all) = (vec![path.to_owned()], Vec::new());
        while let Some(folder) = open.pop() {
            for (name, data) in self.entries(&folder).await? {
                let inner = folder.join(name);
                if data.file_type == FileType::Directory {
                    open.push(inner.clone());
                }
                all.push((inner, data.file_type));
            }
        }
        all.reverse();
        Ok(all)
    }

    async fn append(&self, path: &Path, content: &[u8]) -> Result<()> {
        let mut bytes = match self.found(path).await {
            Ok(_) => self.bytes(path).await?.to_vec(),
            Err(_) => Vec::new(),
        };
        bytes.extend_from_slice(content);
        self.put(path, bytes).await
    }

    async fn make_dir(&self, path: &Path, recursive: bool) -> Result<()> {
        match self.found(path).await {
            Ok(Found::Dir) if recursive => return Ok(()),
            Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "exists").into()),
            Err(_) => {}
        }
        match self.found(parent(path)).await {
            Ok(Found::Dir) => {}
            Ok(Found::File { .. }) => return Err(not_a_directory()),
            Err(_) if recursive => self.mkdir(parent(path), true).await?,
            Err(missing) => return Err(missing),
        }
        let mut changes = self.changes();
        changes.count(path)?;
        changes.nodes.insert(path.to_owned(), Node::Dir);
        Ok(())
    }

    async fn take_all(&self, path: &Path, recursive: bool) -> Result<()> {
        if let Found::Dir = self.found(path).await? {
            let below = self.below(path).await?;
            if !below.is_empty() && !recursive {
                return Err(io::Error::other("directory not empty").into());
            }
            for (inner, _) in below {
                self.take(&inner).await?;
            }
        }
        self.take(path).await
    }

    fn note_image(&self, path: &Path) {
        if path.starts_with(IMAGES) {
            self.changes().images.insert(path.to_owned());
        }
    }
}

impl FileSystemExt for Tree {
    fn limits(&self) -> FsLimits {
        FsLimits::new()
            .max_file_size(LARGEST)
            .max_total_bytes(ROOM)
            .max_file_count(change::MAX_PATHS as u64)
    }
}

#[async_trait]
impl FileSystem for Tree {
    async fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        let read = match self.holder(path).await {
            Some(holder) => holder.read_file(path).await,
            None => self.bytes(path).await.map(|bytes| bytes.to_vec()),
        };
        read.map_err(at(path))
    }

    async fn write_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        self.note_image(path);
        let written = match self.holder(path).await {
            Some(holder) => holder.write_file(path, content).await,
            None => self.put(path, content.to_vec()).await,
        };
        written.map_err(at(path))
    }

    async fn append_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        self.note_image(path);
        let appended = match self.holder(path).await {
            Some(holder) => holder.append_file(path, content).await,
            None => self.append(path, content).await,
        };
        appended.map_err(at(path))
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> Result<()> {
        let made = match self.holder(path).await {
            Some(holder) => holder.mkdir(path, recursive).await,
            None => self.make_dir(path, recursive).await,
        };
        made.map_err(at(path))
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Result<()> {
        let removed = match self.holder(path).await {
            Some(holder) => holder.remove(path, recursive).await,
            None => self.take_all(path, recursive).await,
        };
        removed.map_err(at(path))
    }

    async fn stat(&self, path: &Path) -> Result<Metadata> {
        let stat = match self.holder(path).await {
            Some(holder) => holder.stat(path).await,
            None => self.found(path).await.map(|found| metadata(&found)),
        };
        stat.map_err(at(path))
    }

    async fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        if let Some(holder) = self.holder(path).await {
            return holder.read_dir(path).await.map_err(at(path));
        }
        let entries = self.entries(path).await.map_err(at(path))?.into_iter();
        Ok(entries
            .map(|(name, metadata)| DirEntry { name, metadata })
            .collect())
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.stat(path).await.is_ok())
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        if from == to {
            return self.stat(from).await.map(drop);
        }
        if to.starts_with(from) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "into itself").into());
        }
        self.copy_all(from, to).await?;
        self.remove(from, true).await
    }

    async fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        let bytes = self.read_file(from).await?;
        self.write_file(to, &bytes).await
    }

    async fn symlink(&self, _target: &Path, _link: &Path) -> Result<()> {
        let problem = "symbolic links cannot be made here: not supported";
        Err(io::Error::new(io::ErrorKind::Unsupported, problem).into())
    }

    async fn read_link(&self, path: &Path) -> Result<PathBuf> {
        self.stat(path).await?;
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a symbolic link").into())
    }

    async fn chmod(&self, path: &Path, mode: u32) -> Result<()> {
        match self.holder(path).await {
            Some(holder) => holder.chmod(path, mode).await,
            // The session does not store modes.
            None => self.stat(path).await.map(drop),
        }
    }

    async fn set_modified_time(&self, path: &Path, to: SystemTime) -> Result<()> {
        if let Some(holder) = self.holder(path).await {
            return holder.set_modified_time(path, to).await;
        }
        self.stat(path).await?;
        if let Some(Node::File { modified, .. }) = self.changes().nodes.get_mut(path) {
            *modified = to;
        }
        Ok(())
    }
}

impl Tree {
    async fn copy_all(&self, from: &Path, to: &Path) -> Result<()> {
        if self.stat(from).await?.file_type != FileType::Directory {
            return self.copy(from, to).await;
        }
        let mut open = vec![(from.to_owned(), to.to_owned())];
        while let Some((from, to)) = open.pop() {
            self.mkdir(&to, false).await?;
            for entry in self.read_dir(&from).await? {
                let (inner, target) = (from.join(&entry.name), to.join(&entry.name));
                if entry.metadata.file_type == FileType::Directory {
                    open.push((inner, target));
                } else {
                    self.copy(&inner, &target).await?;
                }
            }
        }
        Ok(())
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

fn time(seen: &FileInfo) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(seen.modified.unwrap_or(0))
}

fn as_found(seen: &FileInfo) -> Found {
    if seen.is_dir {
        return Found::Dir;
    }
    Found::File {
        size: seen.size,
        modified: time(seen),
    }
}

fn metadata(found: &Found) -> Metadata {
    let (file_type, size, mode, modified) = match found {
        Found::Dir => (FileType::Directory, 0, 0o755, UNIX_EPOCH),
        Found::File { size, modified } => (FileType::File, *size, 0o644, *modified),
    };
    Metadata {
        file_type,
        size,
        mode,
        modified,
        created: modified,
    }
}
