//! A backend that records what a call changes.

use super::{Backend, Content, Entry, Expect, Part, Stat, Visitor, Written};
use crate::blocking::{self, Weight};
use crate::effects::{Incomplete, Recorder, Touch};
use crate::{FilePath, Result};
use async_trait::async_trait;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A backend that tells a recorder about every write and removal before it happens.
pub struct Recorded {
    inner: Arc<dyn Backend>,
    recorder: Recorder,
}

impl Recorded {
    /// Records the changes made through `inner`. Those of files that are not on disk cannot
    /// be recorded and make the set incomplete.
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, recorder: Recorder) -> Self {
        Self { inner, recorder }
    }

    fn recorded<'a>(&self, path: &'a FilePath) -> Option<&'a Path> {
        let Some(real) = self.inner.on_disk(path) else {
            let path = path.virtual_path().display();
            let why = format!("{path} is not on disk, and only files on disk are recorded");
            self.recorder.incomplete(Incomplete::Other(why));
            return None;
        };
        self.recorder.covers(real).then_some(real)
    }
}

/// Missing folders of a path, outermost first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let folders = path.ancestors().skip(1);
    let missing = folders.take_while(|folder| folder.symlink_metadata().is_err());
    let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    missing.reverse();
    missing
}

#[async_trait]
impl Backend for Recorded {
    async fn read(&self, path: &FilePath) -> Result<Content> {
        self.inner.read(path).await
    }

    async fn write(&self, path: &FilePath, bytes: Vec<u8>, expect: Expect) -> Result<Written> {
        let Some(real) = self.recorded(path).map(Path::to_owned) else {
            return self.inner.write(path, bytes, expect).await;
        };
        let recorder = self.recorder.clone();
        let target = real.clone();
        // Keeping a large file copies it.
        let missing = blocking::run(Weight::Heavy, move || {
            let missing = missing_folders(&target);
            match missing.first() {
                Some(first) => recorder.before(first, Touch::Create),
                None => recorder.before(&target, Touch::Content),
            }
            Ok(missing)
        })
        .await?;
        let written = self.inner.write(path, bytes, expect).await;
        if !missing.is_empty() {
            let recorder = self.recorder.clone();
            blocking::run(Weight::Heavy, move || {
                for made in missing.iter().skip(1).chain([&real]) {
                    if made.symlink_metadata().is_ok() {
                        recorder.created(made);
                    }
                }
                Ok(())
            })
            .await?;
        }
        written
    }

    async fn remove(&self, path: &FilePath) -> Result<()> {
        if let Some(real) = self.recorded(path).map(Path::to_owned) {
            let recorder = self.recorder.clone();
            blocking::run(Weight::Heavy, move || {
                recorder.before(&real, Touch::Remove);
                Ok(())
            })
            .await?;
        }
        self.inner.remove(path).await
    }

    async fn stat(&self, path: &FilePath) -> Result<Stat> {
        self.inner.stat(path).await
    }

    async fn list(&self, path: &FilePath) -> Result<Vec<Entry>> {
        self.inner.list(path).await
    }

    async fn walk(&self, path: &FilePath, visit: &mut Visitor<'_>) -> Result<()> {
        self.inner.walk(path, visit).await
    }

    fn on_disk<'a>(&self, path: &'a FilePath) -> Option<&'a Path> {
        self.inner.on_disk(path)
    }

    fn parts(&self, path: &FilePath) -> Vec<Part<'_>> {
        self.inner.parts(path)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test looks at the disk itself")]
mod tests {
    use super::*;
    use crate::Access;
    use crate::backend::Local;
    use crate::effects::{Bounds, Calls, End, Selection, Skip, Store, UndoMode};
    use crate::scope::{Mode, Scope, ScopeConfig};
    use std::fs;
    use std::time::Duration;

    #[tokio::test]
    async fn writes_and_removals_are_recorded_with_the_folders_they_make() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let work = root.join("work");
        fs::create_dir(&work).unwrap();
        fs::write(work.join("a"), "before").unwrap();
        fs::write(work.join("b"), "before").unwrap();
        let config = ScopeConfig {
            work_dir: work.clone(),
            roots: Vec::new(),
            readable: Vec::new(),
            home: None,
            git_configs: Vec::new(),
            own: Vec::new(),
            protect: Vec::new(),
            temp: None,
            rules: Mode::Workspace.rules(),
        };
        let scope = Scope::disk(config).unwrap();
        let bounds = Bounds {
            max_file: 1 << 20,
            max_session: 1 << 20,
            keep: Duration::from_secs(1),
            skip: Skip::default(),
        };
        let session = Store::new(root.join("state"), bounds).session("s", &work, &[]);
        let recorder = session.begin("call-1", "write");
        let backend = Recorded::new(Arc::new(Local::new()), recorder.clone());
        let path = |name: &str| scope.resolve(name, Access::Write).unwrap();
        let write = |name: &str| {
            let (backend, path) = (&backend, path(name));
            async move {
                let written = backend.write(&path, b"after".to_vec(), Expect::Anything);
                written.await.unwrap()
            }
        };
        assert!(!write("a").await.created);
        assert_eq!(write("a").await.links_broken, 0);
        assert!(write("new/inner/c").await.created);
        backend.remove(&path("b")).await.unwrap();
        let counts = recorder.finish(End::Done);
        let found = (counts.created, counts.modified, counts.deleted);
        assert_eq!((found, counts.complete), ((3, 1, 1), true));
        let last = Selection {
            calls: Calls::Last,
            paths: Vec::new(),
        };
        session.undo(&last, UndoMode::Careful).unwrap();
        assert_eq!(fs::read(work.join("a")).unwrap(), b"before");
        assert_eq!(fs::read(work.join("b")).unwrap(), b"before");
        assert!(!work.join("new").exists());
    }
}
