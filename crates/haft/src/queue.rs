//! Calls that touch the same file wait for each other, in the order they came.

use crate::Access;
use haft_ops::FilePath;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// The writers, running and waiting, of each file that is being written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    writers: Arc<Mutex<HashMap<PathBuf, Vec<watch::Receiver<()>>>>>,
}

/// A place in the queue. Dropping it lets the next one go.
#[derive(Debug)]
pub(crate) struct Ticket {
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
        let (done, finished) = watch::channel(());
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = Vec::new();
        let mut writes = Vec::new();
        for (path, access) in paths {
            // All of them, not only the last: that one may be cancelled while
            // it waits itself.
            before.extend(writers.get(path.real()).into_iter().flatten().cloned());
            if *access != Access::Read && !writes.iter().any(|written| written == path.real()) {
                writers
                    .entry(path.real().to_owned())
                    .or_default()
                    .push(finished.clone());
                writes.push(path.real().to_owned());
            }
        }
        Ticket {
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
                live.retain(|writer| writer.has_changed().is_ok());
                if live.is_empty() {
                    writers.remove(path);
                }
            }
        }
    }
}
