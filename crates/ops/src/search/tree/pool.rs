//! Sharing work between threads.
//!
//! Each thread has its own stack and gives work away only if the shared stack is empty. So
//! a busy pool hardly takes the lock, and no thread is idle while another is busy with a
//! large file.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Work that any thread may take.
pub(super) struct Pool<T> {
    shared: Mutex<Vec<T>>,
    ready: Condvar,
    /// Number of items in `shared`, readable without the lock.
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

    /// Whether an idle thread would find no work.
    pub(super) fn is_hungry(&self) -> bool {
        self.threads > 1 && self.offered.load(Ordering::Relaxed) == 0
    }

    /// Gives work to threads that wait, now or later.
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

    /// Waits for work. Returns `None` once all of it is done.
    pub(super) fn take(&self) -> Option<T> {
        let mut shared = self.lock();
        if let Some(work) = self.pop(&mut shared) {
            return Some(work);
        }
        // Counted under the lock: the last thread to wait sees an empty pool and knows that
        // no other thread can add work.
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

    /// Removes a thread that panicked or could not be started, so that the others do not
    /// wait for it.
    pub(super) fn abandon(&self) {
        let _shared = self.lock();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.ready.notify_all();
    }
}
