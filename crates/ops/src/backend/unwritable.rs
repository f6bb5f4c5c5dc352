//! A read-only view of a backend.

use super::{Backend, Content, Entry, Expect, Stat, Written};
use crate::{Error, FilePath, Result};
use async_trait::async_trait;

/// Wraps a backend so that nothing can be changed.
#[derive(Debug)]
pub struct Unwritable<B>(B);

impl<B: Backend> Unwritable<B> {
    /// Refuses every change.
    #[must_use]
    pub const fn new(inner: B) -> Self {
        Self(inner)
    }
}

fn refused(path: &FilePath) -> Error {
    Error::NotAllowed {
        path: path.given().to_owned(),
        remedy: "this session is read-only; use `--sandbox workspace` to write".to_owned(),
    }
}

#[async_trait]
impl<B: Backend> Backend for Unwritable<B> {
    async fn read(&self, path: &FilePath) -> Result<Content> {
        self.0.read(path).await
    }

    async fn write(&self, path: &FilePath, _: Vec<u8>, _: Expect) -> Result<Written> {
        Err(refused(path))
    }

    async fn remove(&self, path: &FilePath) -> Result<()> {
        Err(refused(path))
    }

    async fn stat(&self, path: &FilePath) -> Result<Stat> {
        self.0.stat(path).await
    }

    async fn list(&self, path: &FilePath) -> Result<Vec<Entry>> {
        self.0.list(path).await
    }
}
