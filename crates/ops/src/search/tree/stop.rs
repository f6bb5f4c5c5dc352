//! Stopping early: by cancellation or at a deadline.

use crate::Result;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

/// Interval between progress reports.
const TICK: Duration = Duration::from_millis(100);

/// Time that stopped work has to finish. A thread that waits for an unreachable network
/// disk never does; then the results so far are returned.
const GRACE: Duration = Duration::from_millis(500);

/// The reason why work ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The deadline passed.
    Deadline,
    /// The caller cancelled it.
    Cancelled,
}

/// A flag that all threads of a search check. It costs one atomic load, while a token takes
/// a lock and a deadline reads the clock.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicU8);

impl Stop {
    pub(crate) fn set(&self, why: Stopped) {
        let value = match why {
            Stopped::Deadline => 1,
            Stopped::Cancelled => 2,
        };
        // The first reason is kept.
        let _ = self
            .0
            .compare_exchange(0, value, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn why(&self) -> Option<Stopped> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Stopped::Deadline),
            _ => Some(Stopped::Cancelled),
        }
    }
}

/// Sets the flag if the caller drops the future, so that its threads stop.
struct OnDrop<'a>(&'a Stop);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.set(Stopped::Cancelled);
    }
}

/// Waits for `work`, reports progress, and stops it on cancellation or at the deadline.
/// Returns `Ok` even if the work does not finish in time after that; the caller has the
/// results so far.
pub(crate) async fn supervise(
    work: impl Future<Output = Result<()>>,
    stop: &Stop,
    deadline: Option<Instant>,
    cancel: &CancellationToken,
    tick: impl Fn() + Send,
) -> Result<()> {
    let on_drop = OnDrop(stop);
    tokio::pin!(work);
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + TICK, TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let over = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(over);
    let ended = loop {
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                stop.set(Stopped::Cancelled);
                break None;
            }
            ended = &mut work => break Some(ended),
            () = &mut over => {
                stop.set(Stopped::Deadline);
                break None;
            }
            _ = ticks.tick() => tick(),
        }
    };
    let ended = match ended {
        Some(ended) => ended,
        None => tokio::time::timeout(GRACE, work).await.unwrap_or(Ok(())),
    };
    std::mem::forget(on_drop);
    ended
}

/// Runs work on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    crate::blocking::run(crate::blocking::Weight::Heavy, work).await
}

/// Waits for permission to walk a tree. Each walk has its own threads, so many at once
/// would only slow each other down.
pub(crate) async fn walk_permit() -> Option<SemaphorePermit<'static>> {
    static WALKS: Semaphore = Semaphore::const_new(4);
    WALKS.acquire().await.ok()
}
