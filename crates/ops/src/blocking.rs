//! Work that blocks, where blocking is allowed.
//!
//! Reading a small file of a local disk takes a few microseconds, and handing it
//! to another thread several times that; so light work is done where it is.
//! Everything else goes to a thread that may wait: large files, writes (which
//! are synced), and file systems that can hang because a network is behind them.

use crate::{Error, Result};

/// How long work can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Microseconds, whatever happens.
    Light,
    /// Anything.
    Heavy,
}

/// Runs blocking work: light work here, heavy work on a thread that may wait.
///
/// # Errors
/// What the work says; a panic of heavy work is an [`Error::Fault`].
pub async fn run<T: Send + 'static>(
    weight: Weight,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match weight {
        Weight::Light => work(),
        Weight::Heavy => tokio::task::spawn_blocking(work)
            .await
            .unwrap_or_else(|error| Err(Error::Fault(error.to_string()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn heavy_work_moves_and_light_work_stays() {
        let thread = || Ok(std::thread::current().id());
        let here = std::thread::current().id();
        assert_eq!(run(Weight::Light, thread).await.unwrap(), here);
        assert_ne!(run(Weight::Heavy, thread).await.unwrap(), here);
        let failed = run::<()>(Weight::Heavy, || panic!("as told")).await;
        assert!(matches!(failed, Err(Error::Fault(_))));
    }
}
