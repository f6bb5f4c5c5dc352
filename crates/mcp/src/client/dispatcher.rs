//! Routes a server's messages to the calls of a connection: progress by its token, and
//! questions to the call in progress.

use haft::Progress;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ProgressToken};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// Maximum number of messages that wait for a call. Progress beyond that is dropped,
/// because newer progress replaces it anyway.
const MAX_WAITING: usize = 16;

/// Reason why a program's output has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// The program closed it, usually by exiting.
    Ended,
    /// The program wrote an endless line, or too much that is not a valid message.
    Garbage,
}

/// Progress of a call.
pub(super) struct Report {
    pub(super) text: Option<String>,
    /// Share of the work, if the server knows all of it.
    pub(super) share: Option<Progress>,
}

/// A message that arrives before the result of a call.
pub(super) enum Interim {
    /// Progress of the call.
    Progress(Report),
    /// A question to the user, and the channel for the answer.
    Question(Box<ElicitRequestParams>, oneshot::Sender<ElicitResult>),
}

/// The calls in progress.
#[derive(Default)]
pub(super) struct Dispatcher {
    calls: Mutex<HashMap<ProgressToken, mpsc::Sender<Interim>>>,
}

/// A call in progress. Dropping it unregisters the call.
pub(super) struct PendingCall {
    dispatcher: Arc<Dispatcher>,
    token: ProgressToken,
    pub(super) messages: mpsc::Receiver<Interim>,
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.dispatcher.calls().remove(&self.token);
    }
}

impl Dispatcher {
    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, mpsc::Sender<Interim>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a call.
    pub(super) fn register(self: &Arc<Self>, token: ProgressToken) -> PendingCall {
        let (sender, messages) = mpsc::channel(MAX_WAITING);
        self.calls().insert(token.clone(), sender);
        PendingCall {
            dispatcher: Arc::clone(self),
            token,
            messages,
        }
    }

    /// Passes progress to its call.
    pub(super) fn progress(&self, token: &ProgressToken, report: Report) {
        if let Some(call) = self.calls().get(token) {
            let _ = call.try_send(Interim::Progress(report));
        }
    }

    /// Asks the user through the call in progress. Declines unless there is exactly one,
    /// because otherwise it is unknown which call asks.
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
        let asked = Interim::Question(Box::new(question), answer);
        if call.try_send(asked).is_err() {
            return declined();
        }
        answered.await.unwrap_or_else(|_| declined())
    }
}
