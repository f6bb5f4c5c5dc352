//! Who waits for what of one connection: calls for their progress, a server for an
//! answer of the person.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ProgressToken};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// How much may wait to be looked at by a call: progress that nobody looks at is
/// overtaken by the next anyway.
const WAITING: usize = 16;

/// Why nothing more comes of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// It closed its output, as by ending.
    Ended,
    /// It wrote a line without end, or nothing but noise.
    Babbling,
}

/// What comes before the answer to a call.
pub(super) enum Meanwhile {
    /// How far it is, in words if there are any.
    Progress(Option<String>),
    /// The server wants to know something from the person.
    Asked(Box<ElicitRequestParams>, oneshot::Sender<ElicitResult>),
}

/// The calls that are under way.
#[derive(Default)]
pub(super) struct Desk {
    calls: Mutex<HashMap<ProgressToken, mpsc::Sender<Meanwhile>>>,
}

/// A call that is under way, for as long as this is there.
pub(super) struct Waiting {
    desk: Arc<Desk>,
    token: ProgressToken,
    pub(super) meanwhile: mpsc::Receiver<Meanwhile>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.desk.calls().remove(&self.token);
    }
}

impl Desk {
    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, mpsc::Sender<Meanwhile>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call waits from now on.
    pub(super) fn expect(self: &Arc<Self>, token: ProgressToken) -> Waiting {
        let (sender, meanwhile) = mpsc::channel(WAITING);
        self.calls().insert(token.clone(), sender);
        Waiting {
            desk: Arc::clone(self),
            token,
            meanwhile,
        }
    }

    /// A call has gone on.
    pub(super) fn progress(&self, token: &ProgressToken, words: Option<String>) {
        if let Some(call) = self.calls().get(token) {
            let _ = call.try_send(Meanwhile::Progress(words));
        }
    }

    /// Asks the person, through the call that is under way. With none or several of
    /// them it is not known whose question it is, and the answer is no.
    pub(super) async fn ask(&self, question: ElicitRequestParams) -> ElicitResult {
        let declined = || ElicitResult::new(ElicitationAction::Decline);
        let call = {
            let calls = self.calls();
            let mut all = calls.values();
            match (all.next(), all.next()) {
                (Some(only), None) => only.clone(),
                _ => return declined(),
            }
        };
        let (answer, answered) = oneshot::channel();
        let asked = Meanwhile::Asked(Box::new(question), answer);
        if call.try_send(asked).is_err() {
            return declined();
        }
        answered.await.unwrap_or_else(|_| declined())
    }
}
