//! Work that blocks, where blocking is allowed.
//!
//! Reading a small file of a local disk takes a few microseconds, and handing it
//! to another thread several times that; so light work is done where it is.
//! Everything else goes to a thread that may wait: large files, writes (which
//! are synced), and file systems that can hang because a network is behind them.

use crate::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};

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
        Weight::Heavy => on_a_thread(work)
            .await
            .unwrap_or_else(|error| Err(Error::Fault(error))),
    }
}

/// Runs work on a thread that may wait.
///
/// # Errors
/// Why nothing came of it: it panicked, or the system has no thread to give, where
/// tokio would panic.
pub async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> std::result::Result<T, String> {
    let started = AssertUnwindSafe(|| tokio::task::spawn_blocking(work));
    let task = catch_unwind(started).map_err(|_| {
        "no thread can be started: the system's limit of threads or of memory is reached; try again later"
            .to_owned()
    })?;
    task.await.map_err(|error| error.to_string())
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
