//! Calls that touch the same file wait for each other, in the order they came.

use crate::Access;
use haft_ops::FilePath;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// The writers, running and waiting, of each file that is being written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    writers: Arc<Mutex<HashMap<PathBuf, Vec<Writer>>>>,
    tickets: Arc<AtomicU64>,
}

/// Somebody who writes, or will.
#[derive(Debug, Clone)]
struct Writer {
    place: u64,
    /// Whether its turn has come.
    runs: Arc<AtomicBool>,
    finished: watch::Receiver<()>,
}

/// A place in the queue. Dropping it lets the next one go.
#[derive(Debug)]
pub(crate) struct Ticket {
    place: u64,
    runs: Arc<AtomicBool>,
    before: Vec<watch::Receiver<()>>,
    writes: Vec<PathBuf>,
    queue: Queue,
    /// Closed on drop: that is the signal.
    done: Option<watch::Sender<()>>,
}

impl Queue {
    /// Takes a place for all the paths at once, so that two calls never wait
    /// for each other in a circle. A reader waits for earlier writers only:
    /// what it reads is whole at any time.
    pub(crate) fn ticket(&self, paths: &[(FilePath, Access)]) -> Ticket {
        self.at(self.tickets.fetch_add(1, Ordering::Relaxed), paths)
    }

    /// Other paths in the same place. Whoever came later and has not begun is not waited
    /// for: it may be waiting for who holds this.
    pub(crate) fn exchange(&self, ticket: Ticket, paths: &[(FilePath, Access)]) -> Ticket {
        let place = ticket.place;
        drop(ticket);
        self.at(place, paths)
    }

    fn at(&self, place: u64, paths: &[(FilePath, Access)]) -> Ticket {
        let (done, finished) = watch::channel(());
        let runs = Arc::new(AtomicBool::new(false));
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = Vec::new();
        let mut writes = Vec::new();
        for (path, access) in paths {
            // All of them, not only the last: that one may be cancelled while
            // it waits itself.
            let there = writers.get(path.real()).into_iter().flatten();
            let first = there.filter(|one| one.place < place || one.runs.load(Ordering::Relaxed));
            before.extend(first.map(|one| one.finished.clone()));
            if *access != Access::Read && !writes.iter().any(|written| written == path.real()) {
                writers
                    .entry(path.real().to_owned())
                    .or_default()
                    .push(Writer {
                        place,
                        runs: Arc::clone(&runs),
                        finished: finished.clone(),
                    });
                writes.push(path.real().to_owned());
            }
        }
        Ticket {
            place,
            runs,
            before,
            writes,
            queue: self.clone(),
            done: Some(done),
        }
    }
}

impl Ticket {
    /// Waits until everybody before has finished.
    pub(crate) async fn turn(&mut self) {
        for mut before in self.before.drain(..) {
            // Only ever closed, never written to.
            while before.changed().await.is_ok() {}
        }
        self.runs.store(true, Ordering::Relaxed);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.done = None;
        let mut writers = self
            .queue
            .writers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for path in &self.writes {
            if let Some(live) = writers.get_mut(path) {
                live.retain(|writer| writer.finished.has_changed().is_ok());
                if live.is_empty() {
                    writers.remove(path);
                }
            }
        }
    }
}
