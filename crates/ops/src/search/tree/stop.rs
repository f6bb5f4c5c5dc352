//! Ending early: cancelled, or out of time.

use crate::Result;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

/// How often progress is told.
const TICK: Duration = Duration::from_millis(100);

/// How long work that was told to stop may take to do so. A thread that waits
/// for a dead network disk never does; then the answer is what is there.
const GRACE: Duration = Duration::from_millis(500);

/// Why work ended before it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The time was over.
    Deadline,
    /// The caller did not want it any more.
    Cancelled,
}

/// A flag that all threads of one piece of work look at: one load, where a
/// token would be a lock and a deadline a look at the clock.
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicU8);

impl Stop {
    pub(crate) fn set(&self, why: Stopped) {
        let value = match why {
            Stopped::Deadline => 1,
            Stopped::Cancelled => 2,
        };
        // The first reason stays.
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

/// Sets the flag when the caller drops the future, so that no thread works on
/// for nobody.
struct OnDrop<'a>(&'a Stop);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.set(Stopped::Cancelled);
    }
}

/// Waits for `work`, tells progress meanwhile, and stops it when told to or
/// when the time is over. `Ok` also when it did not end in time after that:
/// the caller has what was found so far.
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

/// Runs blocking work where blocking is allowed.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    crate::blocking::run(crate::blocking::Weight::Heavy, work).await
}

/// A place among the walks that go on at a time. Each has threads of its own, so
/// a hundred calls at once would only be in each other's way.
pub(crate) async fn place() -> Option<SemaphorePermit<'static>> {
    static WALKS: Semaphore = Semaphore::const_new(4);
    WALKS.acquire().await.ok()
}
