//! Points at which an undo is killed or fails.

use rustix::io::Errno;
use std::cell::Cell;

/// Trouble at the chosen step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The process disappears: locks are released, nothing is cleaned up.
    Kill,
    /// The system reports an error.
    Fail,
}

thread_local! {
    static LEFT: Cell<Option<(u32, Trouble)>> = const { Cell::new(None) };
    static COUNT: Cell<u32> = const { Cell::new(0) };
    static FULL: Cell<bool> = const { Cell::new(false) };
}

pub(crate) fn step() -> rustix::io::Result<()> {
    COUNT.set(COUNT.get() + 1);
    match LEFT.get() {
        Some((0, trouble)) => {
            LEFT.set(None);
            match trouble {
                Trouble::Kill => std::panic::resume_unwind(Box::new("killed")),
                Trouble::Fail => Err(Errno::NOSPC),
            }
        }
        Some((left, trouble)) => {
            LEFT.set(Some((left - 1, trouble)));
            Ok(())
        }
        None => Ok(()),
    }
}

/// Runs `work` with trouble at a step. Returns `None` if it was killed.
pub(crate) fn with<T>(at: u32, trouble: Trouble, work: impl FnOnce() -> T) -> Option<T> {
    LEFT.set(Some((at, trouble)));
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok();
    LEFT.set(None);
    done
}

/// Number of steps that `work` takes.
pub(crate) fn count(work: impl FnOnce()) -> u32 {
    COUNT.set(0);
    work();
    COUNT.get()
}

pub(crate) fn has_space() -> std::io::Result<()> {
    if FULL.get() {
        return Err(Errno::NOSPC.into());
    }
    Ok(())
}

/// Lets the store be full, or not.
pub(crate) fn set_full(is_full: bool) {
    FULL.set(is_full);
}
