//! A backend that records what a call changes.

use super::{Backend, Content, Entry, Expect, Part, Stat, Visitor, Written};
use crate::blocking::{self, Weight};
use crate::effects::{Recorder, Touch};
use crate::{FilePath, Result};
use async_trait::async_trait;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A backend that tells a recorder about every write and removal on disk before it happens.
pub struct Recorded {
    inner: Arc<dyn Backend>,
    recorder: Recorder,
}

impl Recorded {
    /// Records the changes made through `inner`. Files that are not on disk are not recorded.
    #[must_use]
    pub fn new(inner: Arc<dyn Backend>, recorder: Recorder) -> Self {
        Self { inner, recorder }
    }

    fn recorded<'a>(&self, path: &'a FilePath) -> Option<&'a Path> {
        let real = self.inner.on_disk(path)?;
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
