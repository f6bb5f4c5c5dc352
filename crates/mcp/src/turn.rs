//! The order in which calls begin.
//!
//! Each request is handled on a task of its own, and tasks start in any order.
//! Calls that write the same file wait for each other in the runtime's queue, so
//! their places in it have to be taken in the order in which they were asked for.

use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Hands out turns, one after the other.
#[derive(Default)]
pub(crate) struct Turns {
    last: Option<oneshot::Receiver<()>>,
}

impl Turns {
    pub(crate) fn next(&mut self) -> Turn {
        let (done, wait) = oneshot::channel();
        Turn {
            before: self.last.replace(wait),
            _done: done,
        }
    }
}

/// A place in the order; the next one follows when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    before: Option<oneshot::Receiver<()>>,
    _done: oneshot::Sender<()>,
}

impl Turn {
    /// Waits until all earlier ones are through.
    pub(crate) async fn come(&mut self) {
        if let Some(before) = &mut self.before {
            // It is dropped, never sent to.
            let _ = before.await;
            self.before = None;
        }
    }
}

/// What a request has from being taken on until it is answered.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// Its room in the budget.
    pub(crate) _room: OwnedSemaphorePermit,
    /// Its turn, if it is a call.
    pub(crate) turn: Option<Turn>,
}

/// Carries it from the transport to the handler. rmcp wants that to be clonable;
/// whoever takes it first has it.
#[derive(Debug, Clone)]
pub(crate) struct Admission(Arc<Mutex<Option<Admitted>>>);

impl Admission {
    pub(crate) fn new(room: OwnedSemaphorePermit, turn: Option<Turn>) -> Self {
        let admitted = Admitted { _room: room, turn };
        Self(Arc::new(Mutex::new(Some(admitted))))
    }

    pub(crate) fn take(&self) -> Option<Admitted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Arguments of a call that are no object: the runtime may still understand
/// them, and says what is wrong if it does not.
#[derive(Debug, Clone)]
pub(crate) struct OddArguments(pub(crate) serde_json::Value);
