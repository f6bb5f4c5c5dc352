//! A backend that records what a call changes.

use super::{Backend, Content, Entry, Expect, Part, Stat, Visitor, Written};
use crate::effects::{Recorder, Touch};
use crate::{FilePath, Result};
use async_trait::async_trait;
use std::path::Path;
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

    /// Keeping a large file copies it, so this runs on a thread that may block.
    async fn before(&self, path: &FilePath, touch: Touch<'static>) -> Result<()> {
        let Some(real) = self.inner.on_disk(path) else {
            return Ok(());
        };
        if !self.recorder.covers(real) {
            return Ok(());
        }
        let (recorder, real) = (self.recorder.clone(), real.to_owned());
        crate::blocking::run(crate::blocking::Weight::Heavy, move || {
            recorder.before(&real, touch);
            Ok(())
        })
        .await
    }
}

#[async_trait]
impl Backend for Recorded {
    async fn read(&self, path: &FilePath) -> Result<Content> {
        self.inner.read(path).await
    }

    async fn write(&self, path: &FilePath, bytes: Vec<u8>, expect: Expect) -> Result<Written> {
        self.before(path, Touch::Content).await?;
        self.inner.write(path, bytes, expect).await
    }

    async fn remove(&self, path: &FilePath) -> Result<()> {
        self.before(path, Touch::Remove).await?;
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
