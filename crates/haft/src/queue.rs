//! The queue for files: calls that use the same file wait for each other, in order of
//! arrival.

use crate::Access;
use haft_ops::FilePath;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// The running and waiting writers of each file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    writers: Arc<Mutex<HashMap<PathBuf, Vec<Writer>>>>,
    tickets: Arc<AtomicU64>,
}

/// A call that writes a file or waits to write it.
#[derive(Debug, Clone)]
struct Writer {
    place: u64,
    /// Whether its turn has come.
    runs: Arc<AtomicBool>,
    finished: watch::Receiver<()>,
}

/// A position in the queue. Dropping it lets the next call run.
#[derive(Debug)]
pub(crate) struct Ticket {
    place: u64,
    runs: Arc<AtomicBool>,
    before: Vec<watch::Receiver<()>>,
    writes: Vec<PathBuf>,
    queue: Queue,
    /// Dropped together with the ticket, which wakes the calls that wait for it.
    done: Option<watch::Sender<()>>,
}

impl Queue {
    /// Takes a position for all paths at once, so that calls cannot deadlock. A reader only
    /// waits for earlier writers, because writes replace files atomically.
    pub(crate) fn ticket(&self, paths: &[(FilePath, Access)]) -> Ticket {
        self.at(self.tickets.fetch_add(1, Ordering::Relaxed), paths)
    }

    /// Exchanges the paths of a ticket and keeps its position. It does not wait for later
    /// calls that have not started, because they may wait for this one.
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
            // Waits for all earlier writers, not just the last: that one may be cancelled
            // while it is waiting itself.
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
    /// Waits until all earlier calls have finished.
    pub(crate) async fn turn(&mut self) {
        for mut before in self.before.drain(..) {
            // The channel is only ever closed, never written to.
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
