//! Work that blocks the thread.
//!
//! Reading a small file from a local disk takes a few microseconds, and moving it to
//! another thread several times that. So light work runs on the calling thread. Everything
//! else goes to a thread that may block: large files, writes (which are synced), and file
//! systems that can hang because a network is behind them.

use crate::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Expected duration of blocking work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Always a few microseconds.
    Light,
    /// Any time; it may block.
    Heavy,
}

/// Runs blocking work: light work on this thread, heavy work on one that may block.
///
/// # Errors
/// The error of the work itself; [`Error::Fault`] if heavy work panics.
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

/// Runs work on a thread that may block.
///
/// # Errors
/// The reason if the work panicked or no thread could be started (tokio itself would panic
/// then).
pub async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> std::result::Result<T, String> {
    let started = AssertUnwindSafe(|| tokio::task::spawn_blocking(work));
    let task = catch_unwind(started).map_err(|_| {
        "cannot start a thread: the system's limit of threads or memory is reached; try again later"
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
