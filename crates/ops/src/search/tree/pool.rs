//! Sharing work between threads.
//!
//! Each thread has a stack of its own and gives some of it away only while
//! another one waits, so that a busy pool takes no lock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Work that any thread may take.
pub(super) struct Pool<T> {
    shared: Mutex<Vec<T>>,
    ready: Condvar,
    waiting: AtomicUsize,
    threads: usize,
}

impl<T> Pool<T> {
    pub(super) fn new(first: T, threads: usize) -> Self {
        Self {
            shared: Mutex::new(vec![first]),
            ready: Condvar::new(),
            waiting: AtomicUsize::new(0),
            threads,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a thread has nothing to do.
    pub(super) fn is_hungry(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Gives work to whoever waits.
    pub(super) fn give(&self, work: impl IntoIterator<Item = T>) {
        self.lock().extend(work);
        self.ready.notify_all();
    }

    /// Waits for work; nothing when all of it is done.
    pub(super) fn take(&self) -> Option<T> {
        let mut shared = self.lock();
        if let Some(work) = shared.pop() {
            return Some(work);
        }
        // Counted under the lock: whoever makes it full sees an empty pool and
        // nobody at work who could fill it.
        if self.waiting.fetch_add(1, Ordering::Relaxed) + 1 == self.threads {
            self.ready.notify_all();
            return None;
        }
        loop {
            shared = self
                .ready
                .wait(shared)
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(work) = shared.pop() {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                return Some(work);
            }
            if self.waiting.load(Ordering::Relaxed) == self.threads {
                return None;
            }
        }
    }

    /// A thread leaves by panic: the others must not wait for it.
    pub(super) fn abandon(&self) {
        let _shared = self.lock();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.ready.notify_all();
    }
}
