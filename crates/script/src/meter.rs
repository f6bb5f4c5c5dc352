//! Measures how much of its limits a call has used.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::load::Limits;
use crate::shared::Shared;

/// Number of instructions between two checks of the limits: about ten microseconds.
pub(crate) const STRIDE: u32 = 10_000;

/// The reason why a call was stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stop {
    Instructions,
    Time,
    Cancelled,
}

/// Counts for one call at a time. Belongs to the Lua thread.
pub(crate) struct Meter {
    limits: Limits,
    shared: Arc<Shared>,
    used: Cell<u64>,
    allowed: Cell<Duration>,
    deadline: Cell<Instant>,
    stop: Cell<Option<Stop>>,
    place: RefCell<String>,
}

impl Meter {
    pub(crate) fn new(limits: Limits, shared: Arc<Shared>) -> Self {
        Self {
            limits,
            shared,
            used: Cell::new(0),
            allowed: Cell::new(Duration::ZERO),
            deadline: Cell::new(Instant::now()),
            stop: Cell::new(None),
            place: RefCell::default(),
        }
    }

    pub(crate) fn start(&self, allowed: Duration) -> Instant {
        self.used.set(0);
        self.allowed.set(allowed);
        self.deadline.set(Instant::now() + allowed);
        self.stop.set(None);
        self.place.borrow_mut().clear();
        self.deadline.get()
    }

    /// Excludes a wait from the time of the call, and returns when the call is due now.
    pub(crate) fn forgive(&self, waited: Duration) -> Instant {
        self.deadline.set(self.deadline.get() + waited);
        self.deadline.get()
    }

    /// Counts another stride, made at `place`, and returns whether the call must stop. A
    /// stopped call stays stopped: if the module catches the error, it is stopped again.
    pub(crate) fn step(&self, place: impl FnOnce() -> String) -> bool {
        self.used.set(self.used.get() + u64::from(STRIDE));
        if self.stop.get().is_some() {
            return true;
        }
        let stop = if self.shared.is_cancelled() {
            Stop::Cancelled
        } else if self.used.get() > self.limits.instructions {
            Stop::Instructions
        } else if Instant::now() >= self.deadline.get() {
            Stop::Time
        } else {
            return false;
        };
        self.stop(stop);
        *self.place.borrow_mut() = place();
        true
    }

    pub(crate) fn stop(&self, stop: Stop) {
        self.stop.set(Some(stop));
    }

    pub(crate) fn stopped(&self) -> Option<Stop> {
        self.stop.get()
    }

    /// Returns the message for a stopped call.
    pub(crate) fn message(&self, stop: Stop) -> String {
        let what = match stop {
            Stop::Cancelled => return "cancelled".to_owned(),
            Stop::Instructions => {
                format!(
                    "stopped after {} instructions, which is the limit",
                    self.limits.instructions
                )
            }
            Stop::Time => format!(
                "stopped after {}, which is the limit",
                seconds(self.allowed.get())
            ),
        };
        let place = self.place.borrow();
        if place.is_empty() {
            what
        } else {
            format!("{place}: {what}")
        }
    }

    /// Returns the message for a module that could not be stopped.
    pub(crate) fn late(path: &str, allowed: Duration) -> String {
        format!(
            "{path}: took longer than {}, which is the limit, and did not stop; it is started again when it is needed",
            seconds(allowed)
        )
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}
