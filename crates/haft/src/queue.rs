//! The queue for files: calls that use the same file wait for each other, in order of
//! arrival.
//!
//! A call takes its position before it runs, together with all paths that it declares. A
//! path that it names later, while it runs, joins that position. A call does not wait for
//! one that waits for it, directly or through others, so they cannot block each other. An
//! outer call counts as waiting for the calls that it makes.

use crate::Access;
use haft_ops::FilePath;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The running and waiting calls, and the files that they write.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The next free position.
    next: u64,
    writers: HashMap<PathBuf, Vec<Writer>>,
    /// All calls in the queue, by position.
    calls: HashMap<u64, QueuedCall>,
}

/// A call that writes a file or waits to write it.
#[derive(Debug)]
struct Writer {
    place: u64,
    /// Whether its turn has come.
    runs: bool,
}

#[derive(Debug)]
struct QueuedCall {
    writes: Vec<PathBuf>,
    /// Positions of the calls that it waits for.
    waits_for: Vec<u64>,
    /// Wakes the calls that wait for this one, when its files change or it ends.
    done: watch::Sender<()>,
}

/// The position of a call in the queue. It ends with the [`Ticket`].
#[derive(Debug, Clone)]
pub(crate) struct Position {
    place: u64,
    queue: Queue,
}

/// A position in the queue with the paths that the call declares. Dropping it lets the next
/// call run.
#[derive(Debug)]
pub(crate) struct Ticket {
    position: Position,
    /// The call that makes this one.
    outer: Option<Position>,
    paths: Vec<(PathBuf, Access)>,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a position for all paths at once. A reader only waits for earlier writers,
    /// because writes replace files atomically. `outer` is the call that makes this one.
    pub(crate) fn ticket(&self, paths: &[(FilePath, Access)], outer: Option<&Position>) -> Ticket {
        let outer = outer.filter(|outer| Arc::ptr_eq(&outer.queue.state, &self.state));
        let mut state = self.state();
        let place = state.next;
        state.next += 1;
        let call = QueuedCall {
            writes: Vec::new(),
            waits_for: Vec::new(),
            done: watch::Sender::new(()),
        };
        state.calls.insert(place, call);
        if let Some(outer) = outer.and_then(|outer| state.calls.get_mut(&outer.place)) {
            outer.waits_for.push(place);
        }
        let paths = real(paths);
        state.add(place, &paths);
        Ticket {
            position: Position {
                place,
                queue: self.clone(),
            },
            outer: outer.cloned(),
            paths,
        }
    }
}

fn real(paths: &[(FilePath, Access)]) -> Vec<(PathBuf, Access)> {
    let real = paths.iter();
    real.map(|(path, access)| (path.real().to_owned(), *access))
        .collect()
}

impl Ticket {
    /// Returns the position, for paths that the call names while it runs.
    pub(crate) fn position(&self) -> &Position {
        &self.position
    }

    /// Waits until all earlier calls that write the paths have ended.
    pub(crate) async fn turn(&self) {
        self.position.wait(&self.paths).await;
    }

    /// Exchanges the paths and keeps the position. The call does not wait for later calls
    /// that have not started, because they may wait for this one.
    pub(crate) fn exchange(mut self, paths: &[(FilePath, Access)]) -> Self {
        let place = self.position.place;
        let mut state = self.position.queue.state();
        state.remove(place);
        self.paths = real(paths);
        state.add(place, &self.paths);
        if let Some(call) = state.calls.get(&place) {
            call.done.send_replace(());
        }
        drop(state);
        self
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let place = self.position.place;
        let mut state = self.position.queue.state();
        state.remove(place);
        state.calls.remove(&place);
        if let Some(outer) = &self.outer {
            state.no_longer_waits(outer.place, &[place]);
        }
    }
}

impl Position {
    /// Adds a path that the call names while it runs, and waits until all earlier or
    /// running calls that write it have ended.
    pub(crate) async fn join(&self, path: &FilePath, access: Access) {
        let paths = [(path.real().to_owned(), access)];
        self.queue.state().add(self.place, &paths);
        self.wait(&paths).await;
    }

    async fn wait(&self, paths: &[(PathBuf, Access)]) {
        while let Some(mut waiting) = self.waiting(paths) {
            // An error means that the call has ended.
            let _ = waiting.first.changed().await;
        }
    }

    /// Returns the calls to wait for, or `None` if it is this call's turn.
    fn waiting(&self, paths: &[(PathBuf, Access)]) -> Option<Waiting<'_>> {
        let mut state = self.queue.state();
        let mut places = Vec::new();
        for (path, access) in paths {
            for writer in state.writers.get(path).into_iter().flatten() {
                let is_first = writer.place < self.place;
                let is_first = is_first || (*access != Access::Read && writer.runs);
                if is_first
                    && writer.place != self.place
                    && !places.contains(&writer.place)
                    && !state.waits(writer.place, self.place)
                {
                    places.push(writer.place);
                }
            }
        }
        let first = places.first().and_then(|place| state.calls.get(place));
        let first = first.map(|call| call.done.subscribe());
        let Some((first, call)) = first.zip(state.calls.get_mut(&self.place)) else {
            for (path, _) in paths {
                state.run(path, self.place);
            }
            return None;
        };
        call.waits_for.extend(&places);
        Some(Waiting {
            position: self,
            places,
            first,
        })
    }
}

/// The calls that a call waits for.
struct Waiting<'a> {
    position: &'a Position,
    places: Vec<u64>,
    first: watch::Receiver<()>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.position.queue.state();
        state.no_longer_waits(self.position.place, &self.places);
    }
}

impl State {
    /// Adds a call to the writers of the paths that it does not just read. A call that has
    /// ended is not added.
    fn add(&mut self, place: u64, paths: &[(PathBuf, Access)]) {
        let Some(call) = self.calls.get_mut(&place) else {
            return;
        };
        for (path, access) in paths {
            if *access != Access::Read && !call.writes.contains(path) {
                call.writes.push(path.clone());
                let writers = self.writers.entry(path.clone()).or_default();
                writers.push(Writer { place, runs: false });
            }
        }
    }

    /// Removes a call from the writers of all its paths.
    fn remove(&mut self, place: u64) {
        let call = self.calls.get_mut(&place);
        let writes = call.map(|call| std::mem::take(&mut call.writes));
        for path in writes.unwrap_or_default() {
            if let Some(writers) = self.writers.get_mut(&path) {
                writers.retain(|writer| writer.place != place);
                if writers.is_empty() {
                    self.writers.remove(&path);
                }
            }
        }
    }

    /// Marks a call as running, if it writes the path.
    fn run(&mut self, path: &Path, place: u64) {
        for writer in self.writers.get_mut(path).into_iter().flatten() {
            writer.runs |= writer.place == place;
        }
    }

    /// Whether a call waits for another one, directly or through others.
    fn waits(&self, place: u64, other: u64) -> bool {
        let mut seen = vec![place];
        let mut next = 0;
        while let Some(call) = seen.get(next).map(|place| self.calls.get(place)) {
            for awaited in call.iter().flat_map(|call| &call.waits_for) {
                if *awaited == other {
                    return true;
                }
                if !seen.contains(awaited) {
                    seen.push(*awaited);
                }
            }
            next += 1;
        }
        false
    }

    fn no_longer_waits(&mut self, place: u64, others: &[u64]) {
        let Some(call) = self.calls.get_mut(&place) else {
            return;
        };
        for other in others {
            let known = call.waits_for.iter().position(|known| known == other);
            known.map(|known| call.waits_for.swap_remove(known));
        }
    }
}
