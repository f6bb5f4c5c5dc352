//! State that the transport, the calls and the serving loop of one connection share: how
//! the connection ends, how much may be in progress, and what went wrong.

use crate::ServeError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Size of all requests in progress, in KiB. When it is used up, reading pauses until a
/// request ends.
const BUDGET: u32 = 64 << 10;
/// Minimum cost of a request in KiB: at most 128 are in progress at a time, because each
/// may hold an unread reply of 50 KB.
const LEAST: u32 = 512;
/// Number of calls that run at a time; the others wait in order.
const RUNNING: usize = 64;

/// Time that calls may keep running after the end of input.
const FINISH: Duration = Duration::from_millis(500);
/// Time that calls then have to react to their cancellation.
const NOTICE: Duration = Duration::from_millis(250);
/// Time that dropping the remaining calls may take.
const DROP: Duration = Duration::from_millis(50);

/// Shared state of one connection.
pub(crate) struct Link {
    /// Cancelled when the input has ended.
    pub(crate) input_ended: CancellationToken,
    /// Cancelled when the client no longer reads our output.
    pub(crate) output_broken: CancellationToken,
    /// Cancelled when no new request is accepted.
    pub(crate) closing: CancellationToken,
    /// Cancelled to ask running calls to stop.
    pub(crate) cancel_calls: CancellationToken,
    /// Cancelled to drop calls that did not stop.
    pub(crate) drop_calls: CancellationToken,
    /// Cancelled when the transport may report the end of the connection.
    pub(crate) finished: CancellationToken,
    /// Cancelled when all output that could be written is written.
    pub(crate) flushed: CancellationToken,
    /// Limits how many calls run at a time.
    pub(crate) running: Arc<Semaphore>,
    budget: Arc<Semaphore>,
    batches: AtomicBool,
    /// Whether other connections use the same tool session, with request ids that may
    /// clash.
    pub(crate) is_shared: bool,
    fault: Mutex<Option<ServeError>>,
}

impl Link {
    pub(crate) fn new() -> Self {
        Self::with_sharing(false)
    }

    /// Creates the state of one of several connections that share a tool session.
    pub(crate) fn shared() -> Self {
        Self::with_sharing(true)
    }

    fn with_sharing(is_shared: bool) -> Self {
        Self {
            is_shared,
            input_ended: CancellationToken::new(),
            output_broken: CancellationToken::new(),
            closing: CancellationToken::new(),
            cancel_calls: CancellationToken::new(),
            drop_calls: CancellationToken::new(),
            finished: CancellationToken::new(),
            flushed: CancellationToken::new(),
            running: Arc::new(Semaphore::new(RUNNING)),
            budget: Arc::new(Semaphore::new(BUDGET as usize)),
            batches: AtomicBool::new(false),
            fault: Mutex::new(None),
        }
    }

    /// Reserves room for a request of this many bytes until it is answered. Never `None`,
    /// because the semaphore is never closed.
    pub(crate) async fn room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let cost = u32::try_from(bytes >> 10)
            .unwrap_or(BUDGET)
            .clamp(LEAST, BUDGET);
        Arc::clone(&self.budget).acquire_many_owned(cost).await.ok()
    }

    /// Waits until no request is in progress.
    async fn idle(&self) {
        let _all = self.budget.acquire_many(BUDGET).await;
    }

    /// Waits for a reason to end, then ends everything that runs.
    pub(crate) async fn wind_down(&self, shutdown: &CancellationToken) {
        let hurry = async {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.output_broken.cancelled() => {}
            }
        };
        tokio::pin!(hurry);
        tokio::select! {
            () = &mut hurry => self.closing.cancel(),
            () = self.input_ended.cancelled() => {
                self.closing.cancel();
                tokio::select! {
                    () = self.idle() => {}
                    () = tokio::time::sleep(FINISH) => {}
                    () = &mut hurry => {}
                }
            }
        }
        self.cancel_calls.cancel();
        let _ = tokio::time::timeout(NOTICE, self.idle()).await;
        self.drop_calls.cancel();
        let _ = tokio::time::timeout(DROP, self.idle()).await;
        self.finished.cancel();
    }

    /// Whether the negotiated protocol version has batches.
    pub(crate) fn batches(&self) -> bool {
        self.batches.load(Ordering::Acquire)
    }

    pub(crate) fn set_batches(&self, allowed: bool) {
        self.batches.store(allowed, Ordering::Release);
    }

    /// Records an error. Only the first one is kept.
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
