//! Stands for the session's network on systems that have none.

use super::{Error, Helper, Result};
use std::net::TcpListener;
use std::os::fd::OwnedFd;

/// Never exists on this system.
#[derive(Debug)]
pub struct SessionNetwork(std::convert::Infallible);

impl SessionNetwork {
    /// Returns an error.
    ///
    /// # Errors
    /// Always.
    pub fn open(_helper: &Helper, _ports: &[u16]) -> Result<(Self, Vec<TcpListener>)> {
        Err(Error::Unavailable {
            reason: "this system has no mechanism that haft supports".to_owned(),
        })
    }

    pub(in crate::executor) fn handles(&self) -> [&OwnedFd; 2] {
        match self.0 {}
    }
}
