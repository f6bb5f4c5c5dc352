//! The order in which calls start.
//!
//! Each request is handled in its own task, and tasks start in any order. Calls that write
//! the same file wait for each other in the runtime's queue, so they must enter it in the
//! order in which they arrived.

use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Issues tickets, one after the other.
#[derive(Default)]
pub(crate) struct CallOrder {
    last: Option<oneshot::Receiver<()>>,
}

impl CallOrder {
    pub(crate) fn next(&mut self) -> Ticket {
        let (done, receiver) = oneshot::channel();
        Ticket {
            before: self.last.replace(receiver),
            _done: done,
        }
    }
}

/// A position in the order. Dropping it lets the next one proceed.
#[derive(Debug)]
pub(crate) struct Ticket {
    before: Option<oneshot::Receiver<()>>,
    _done: oneshot::Sender<()>,
}

impl Ticket {
    /// Waits until all earlier tickets are dropped.
    pub(crate) async fn wait(&mut self) {
        if let Some(before) = &mut self.before {
            // The sender is dropped without sending anything.
            let _ = before.await;
            self.before = None;
        }
    }
}

/// Resources that a request owns from its admission until it is answered.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// Share of the connection's budget.
    pub(crate) _room: OwnedSemaphorePermit,
    /// Position in the order of calls; only calls have one.
    pub(crate) ticket: Option<Ticket>,
}

/// Carries an [`Admitted`] from the transport to the handler. rmcp requires it to be
/// cloneable; the first clone to call `take` gets it.
#[derive(Debug, Clone)]
pub(crate) struct Admission(Arc<Mutex<Option<Admitted>>>);

impl Admission {
    pub(crate) fn new(room: OwnedSemaphorePermit, ticket: Option<Ticket>) -> Self {
        let admitted = Admitted {
            _room: room,
            ticket,
        };
        Self(Arc::new(Mutex::new(Some(admitted))))
    }

    pub(crate) fn take(&self) -> Option<Admitted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Arguments of a call that are not an object. The runtime may still be able to repair
/// them, and otherwise explains what is wrong.
#[derive(Debug, Clone)]
pub(crate) struct NonObjectArguments(pub(crate) serde_json::Value);
