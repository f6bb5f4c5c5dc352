//! A tree on disk for tests of search and glob.

use crate::backend::{Backend, Content, Entry, Expect, Local, Stat, Written};
use crate::scope::filter::{Exclusion, ExclusionReason, FilterTarget, PathFilter};
use crate::scope::{Mode, ScopeConfig};
use crate::{Access, FilePath, Result, Scope};
use async_trait::async_trait;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A folder, a scope for it, and a backend to access it.
pub(crate) struct Tree {
    temp: Arc<TempDir>,
    pub(crate) root: PathBuf,
    pub(crate) scope: Scope,
    pub(crate) disk: Local,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let temp = Arc::new(TempDir::new().unwrap());
        let root = temp.path().canonicalize().unwrap();
        Self::over(temp, root, Vec::new())
    }

    fn over(temp: Arc<TempDir>, root: PathBuf, own: Vec<PathBuf>) -> Self {
        let config = ScopeConfig {
            work_dir: root.clone(),
            roots: Vec::new(),
            readable: Vec::new(),
            home: None,
            git_configs: Vec::new(),
            own,
            protect: Vec::new(),
            temp: None,
            rules: Mode::Workspace.rules(),
        };
        let scope = Scope::disk(config).unwrap();
        Self {
            temp,
            root,
            scope,
            disk: Local::new(),
        }
    }

    /// Returns the same tree with a scope that starts further down.
    pub(crate) fn rooted_at(&self, below: &str) -> Self {
        Self::over(Arc::clone(&self.temp), self.root.join(below), Vec::new())
    }

    /// Returns the same tree with a folder that the scope hides.
    pub(crate) fn hiding(&self, below: &str) -> Self {
        Self::over(
            Arc::clone(&self.temp),
            self.root.clone(),
            vec![self.root.join(below)],
        )
    }

    pub(crate) fn path(&self, path: &str) -> FilePath {
        self.scope.resolve(path, Access::Read).unwrap()
    }

    /// Returns the root, with rules that hide some of the paths below it.
    pub(crate) fn judged(
        &self,
        denied: &'static [&'static str],
        open: &'static [&'static str],
    ) -> FilePath {
        let root = self.root.clone();
        let shut = Shut { root, denied, open };
        self.path(".")
            .with_filter(Arc::new(shut), self.root.clone())
    }

    pub(crate) fn folder(&self, path: &str) {
        std::fs::create_dir_all(self.root.join(path)).unwrap();
    }

    pub(crate) fn file(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn link(&self, path: &str, target: &str) {
        std::os::unix::fs::symlink(target, self.root.join(path)).unwrap();
    }

    pub(crate) fn fifo(&self, path: &str) {
        let mode = rustix::fs::Mode::from_raw_mode(0o644);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            self.root.join(path),
            rustix::fs::FileType::Fifo,
            mode,
            0,
        )
        .unwrap();
    }
}

/// Hides everything below some paths, except below others.
#[derive(Debug)]
pub(crate) struct Shut {
    pub(crate) root: PathBuf,
    pub(crate) denied: &'static [&'static str],
    pub(crate) open: &'static [&'static str],
}

impl PathFilter for Shut {
    fn excludes(&self, names: &[&Path]) -> Option<Exclusion> {
        names.iter().find_map(|name| {
            let below = name.strip_prefix(&self.root).ok()?;
            let is_open = self.open.iter().any(|open| below.starts_with(open));
            let is_denied = self.denied.iter().any(|denied| below.starts_with(denied));
            (is_denied && !is_open).then(|| Exclusion {
                why: ExclusionReason::Denied,
                open_inside: self
                    .open
                    .iter()
                    .any(|open| Path::new(open).starts_with(below)),
            })
        })
    }

    fn excludes_below(&self, names: &[&Path]) -> bool {
        names.iter().any(|name| {
            let related = |denied: &&str| {
                let denied = self.root.join(denied);
                denied.starts_with(name) || name.starts_with(denied)
            };
            self.denied.iter().any(related)
        })
    }

    fn targets(&self) -> Vec<FilterTarget> {
        Vec::new()
    }

    fn version(&self) -> u64 {
        0
    }
}

/// The disk without `on_disk`, so that the walk for other backends is used.
pub(crate) struct Hintless(pub(crate) Local);

#[async_trait]
impl Backend for Hintless {
    async fn read(&self, path: &FilePath) -> Result<Content> {
        self.0.read(path).await
    }

    async fn write(&self, path: &FilePath, bytes: Vec<u8>, expect: Expect) -> Result<Written> {
        self.0.write(path, bytes, expect).await
    }

    async fn remove(&self, path: &FilePath) -> Result<()> {
        self.0.remove(path).await
    }

    async fn stat(&self, path: &FilePath) -> Result<Stat> {
        self.0.stat(path).await
    }

    async fn list(&self, path: &FilePath) -> Result<Vec<Entry>> {
        self.0.list(path).await
    }
}

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}
