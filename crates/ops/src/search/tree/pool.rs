//! Sharing work between threads.
//!
//! Each thread has a stack of its own and gives some of it away only when there
//! is nothing left to take, so that a busy pool takes hardly any lock and nobody
//! waits while another one is busy with a large file.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Work that any thread may take.
pub(super) struct Pool<T> {
    shared: Mutex<Vec<T>>,
    ready: Condvar,
    /// How much there is in `shared`, to be read without the lock.
    offered: AtomicUsize,
    waiting: AtomicUsize,
    threads: usize,
}

impl<T> Pool<T> {
    pub(super) fn new(first: T, threads: usize) -> Self {
        Self {
            shared: Mutex::new(vec![first]),
            ready: Condvar::new(),
            offered: AtomicUsize::new(1),
            waiting: AtomicUsize::new(0),
            threads,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a thread that has nothing to do would find nothing.
    pub(super) fn is_hungry(&self) -> bool {
        self.threads > 1 && self.offered.load(Ordering::Relaxed) == 0
    }

    /// Gives work to whoever waits, or will.
    pub(super) fn give(&self, work: impl IntoIterator<Item = T>) {
        let mut shared = self.lock();
        shared.extend(work);
        self.offered.store(shared.len(), Ordering::Relaxed);
        drop(shared);
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.ready.notify_all();
        }
    }

    fn pop(&self, shared: &mut Vec<T>) -> Option<T> {
        let work = shared.pop();
        self.offered.store(shared.len(), Ordering::Relaxed);
        work
    }

    /// Waits for work; nothing when all of it is done.
    pub(super) fn take(&self) -> Option<T> {
        let mut shared = self.lock();
        if let Some(work) = self.pop(&mut shared) {
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
            if let Some(work) = self.pop(&mut shared) {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                return Some(work);
            }
            if self.waiting.load(Ordering::Relaxed) == self.threads {
                return None;
            }
        }
    }

    /// A thread leaves by panic, or never came: the others must not wait for it.
    pub(super) fn abandon(&self) {
        let _shared = self.lock();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.ready.notify_all();
    }
}
