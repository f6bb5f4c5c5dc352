//! Stands for the layers over cache folders on systems that have none.

use super::{Error, Helper, Result};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// Maximum number of layers.
pub const MAX_LAYERS: usize = 0;

/// A writable layer over a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerSource {
    /// The folder that is shown below and never changed.
    pub lower: PathBuf,
    /// The folder that receives everything written.
    pub upper: PathBuf,
    /// An empty folder beside `upper`, for the kernel.
    pub work: PathBuf,
}

/// Never exists on this system.
#[derive(Debug)]
pub struct SessionLayers(std::convert::Infallible);

impl SessionLayers {
    /// Returns an error.
    ///
    /// # Errors
    /// Always.
    pub fn open(
        _helper: &Helper,
        _sources: &[LayerSource],
        _lease: OwnedFd,
    ) -> Result<(Self, Vec<Option<String>>)> {
        Err(Error::Unavailable {
            reason: "this system has no mechanism that haft supports".to_owned(),
        })
    }

    pub(in crate::executor) fn count(&self) -> u8 {
        match self.0 {}
    }

    pub(in crate::executor) fn handles(&self) -> [&OwnedFd; 3] {
        match self.0 {}
    }
}
