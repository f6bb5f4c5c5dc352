//! What the transport, the calls and the serving loop of one connection share:
//! how it ends, how much may be under way, and what went wrong.

use crate::ServeError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// How much may be under way, in KiB of requests. When it is used up, no more is
/// read until something ends.
const BUDGET: u32 = 64 << 10;
/// What the smallest request counts for: at most 128 are under way at a time,
/// because each may hold a reply of 50 KB that nobody reads.
const LEAST: u32 = 512;
/// How many calls run at a time; the others wait in their order.
const RUNNING: usize = 64;

/// After the end of input, how long calls may go on by themselves.
const FINISH: Duration = Duration::from_millis(500);
/// Then, how long they may take to notice that they are cancelled.
const NOTICE: Duration = Duration::from_millis(250);
/// And at last, how long dropping them may take.
const DROP: Duration = Duration::from_millis(50);

/// One connection.
pub(crate) struct Link {
    /// There is no more input.
    pub(crate) ended: CancellationToken,
    /// Nobody reads what we write.
    pub(crate) broken: CancellationToken,
    /// Nothing new is begun.
    pub(crate) closing: CancellationToken,
    /// Calls are asked to stop.
    pub(crate) calls: CancellationToken,
    /// Calls are dropped.
    pub(crate) stop: CancellationToken,
    /// The transport reports the end.
    pub(crate) over: CancellationToken,
    /// Everything was written that could be.
    pub(crate) written: CancellationToken,
    /// Slots for calls that run.
    pub(crate) running: Arc<Semaphore>,
    budget: Arc<Semaphore>,
    batches: AtomicBool,
    /// Whether others use the same session of tools, with ids of their own.
    pub(crate) is_shared: bool,
    fault: Mutex<Option<ServeError>>,
}

impl Link {
    pub(crate) fn new() -> Self {
        Self::of(false)
    }

    /// One of several whose calls are of one session.
    pub(crate) fn shared() -> Self {
        Self::of(true)
    }

    fn of(is_shared: bool) -> Self {
        Self {
            is_shared,
            ended: CancellationToken::new(),
            broken: CancellationToken::new(),
            closing: CancellationToken::new(),
            calls: CancellationToken::new(),
            stop: CancellationToken::new(),
            over: CancellationToken::new(),
            written: CancellationToken::new(),
            running: Arc::new(Semaphore::new(RUNNING)),
            budget: Arc::new(Semaphore::new(BUDGET as usize)),
            batches: AtomicBool::new(false),
            fault: Mutex::new(None),
        }
    }

    /// Room for a request of so many bytes, until it is answered. `None` never
    /// happens: the semaphore is not closed.
    pub(crate) async fn room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let cost = u32::try_from(bytes >> 10)
            .unwrap_or(BUDGET)
            .clamp(LEAST, BUDGET);
        Arc::clone(&self.budget).acquire_many_owned(cost).await.ok()
    }

    /// Waits until no request is under way.
    async fn idle(&self) {
        let _all = self.budget.acquire_many(BUDGET).await;
    }

    /// Waits for a reason to end, and then ends what runs.
    pub(crate) async fn wind_down(&self, shutdown: &CancellationToken) {
        let hurry = async {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.broken.cancelled() => {}
            }
        };
        tokio::pin!(hurry);
        tokio::select! {
            () = &mut hurry => self.closing.cancel(),
            () = self.ended.cancelled() => {
                self.closing.cancel();
                tokio::select! {
                    () = self.idle() => {}
                    () = tokio::time::sleep(FINISH) => {}
                    () = &mut hurry => {}
                }
            }
        }
        self.calls.cancel();
        let _ = tokio::time::timeout(NOTICE, self.idle()).await;
        self.stop.cancel();
        let _ = tokio::time::timeout(DROP, self.idle()).await;
        self.over.cancel();
    }

    /// Whether the version that was agreed on has batches.
    pub(crate) fn batches(&self) -> bool {
        self.batches.load(Ordering::Acquire)
    }

    pub(crate) fn set_batches(&self, allowed: bool) {
        self.batches.store(allowed, Ordering::Release);
    }

    /// Remembers what went wrong; the first thing counts.
    pub(crate) fn fail(&self, fault: ServeError) {
        self.fault
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(fault);
    }

    pub(crate) fn fault(&self) -> Option<ServeError> {
        self.fault
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}
