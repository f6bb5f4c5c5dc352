//! Keeping a set open while processes that a call left behind still change files.

use super::{End, Recorder};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of holds on a set, and whether it should have been finished meanwhile.
#[derive(Debug, Default)]
pub(super) struct Holds(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    count: usize,
    wanted: Option<End>,
}

/// Keeps a set open: [`Recorder::finish`] only compares, and the set is finished when the
/// last hold is dropped.
#[derive(Debug)]
#[must_use = "the set is kept open until this is dropped"]
pub struct Hold(Recorder);

impl Hold {
    pub(super) fn new(recorder: &Recorder) -> Self {
        recorder.holds().lock().count += 1;
        Self(recorder.clone())
    }
}

impl Holds {
    /// Asks to finish the set. Returns whether that must wait for a hold.
    pub(super) fn postpone(&self, end: End) -> bool {
        let mut state = self.lock();
        if state.count > 0 {
            state.wanted = Some(end);
        }
        state.count > 0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let wanted = {
            let mut state = self.0.holds().lock();
            state.count -= 1;
            match state.count {
                0 => state.wanted.take(),
                _ => None,
            }
        };
        if let Some(end) = wanted {
            self.0.finish(end);
        }
    }
}
