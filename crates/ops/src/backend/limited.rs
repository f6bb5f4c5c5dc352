//! A backend that refuses to read large files.

use super::{Backend, Content, Entry, Expect, Part, Stat, Visitor, Written};
use crate::{Error, FilePath, Result};
use async_trait::async_trait;
use std::path::Path;

/// Wraps a backend so that large files cannot be read. They can still be found, replaced,
/// removed, and searched on disk.
#[derive(Debug)]
pub struct Limited<B> {
    inner: B,
    most: u64,
}

impl<B: Backend> Limited<B> {
    /// Refuses to read files of more than `most` bytes.
    #[must_use]
    pub const fn new(inner: B, most: u64) -> Self {
        Self { inner, most }
    }
}

#[async_trait]
impl<B: Backend> Backend for Limited<B> {
    async fn read(&self, path: &FilePath) -> Result<Content> {
        let content = self.inner.read(path).await?;
        if content.stat.size > self.most {
            return Err(Error::TooLarge {
                path: path.given().to_owned(),
                size: content.stat.size,
                limit: self.most,
            });
        }
        Ok(content)
    }

    async fn write(&self, path: &FilePath, bytes: Vec<u8>, expect: Expect) -> Result<Written> {
        self.inner.write(path, bytes, expect).await
    }

    async fn remove(&self, path: &FilePath) -> Result<()> {
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
