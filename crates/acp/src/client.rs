//! The client at the other end: notifications to it, and requests that it answers.

use crate::outbox::Outbox;
use crate::rpc::{self, RpcError};
use crate::schema::{Negotiated, Protocol, Waiting, method};
use crate::update::Update;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use tokio::sync::oneshot;

type Answer = oneshot::Sender<Result<Value, RpcError>>;

/// The connected client.
pub(crate) struct Client {
    pub(crate) outbox: Outbox,
    /// The result of `initialize`; empty before.
    pub(crate) negotiated: OnceLock<Negotiated>,
    next: AtomicU64,
    /// Requests that it has not answered.
    open: Mutex<HashMap<u64, Answer>>,
}

impl Client {
    pub(crate) fn new(outbox: Outbox) -> Self {
        Self {
            outbox,
            negotiated: OnceLock::new(),
            next: AtomicU64::new(0),
            open: Mutex::default(),
        }
    }

    /// Returns the protocol, once it is known.
    pub(crate) fn protocol(&self) -> Option<&dyn Protocol> {
        self.negotiated.get().map(|known| &*known.protocol)
    }

    /// Whether the client shows forms.
    pub(crate) fn has_forms(&self) -> bool {
        self.negotiated.get().is_some_and(|known| known.has_forms)
    }

    /// Sends an update of a session.
    pub(crate) fn update(&self, session: &str, update: Update) {
        self.tell(|protocol| Some(protocol.update(session, update)));
    }

    /// Sends an update that the protocol creates, if it has such an update.
    pub(crate) fn tell(&self, create: impl FnOnce(&dyn Protocol) -> Option<Value>) {
        if let Some(params) = self.protocol().and_then(create) {
            self.notify(&params);
        }
    }

    /// Tells the client that a question waits for the user, until the value is dropped.
    pub(crate) fn waiting<'a>(&'a self, session: &'a str) -> WaitingForUser<'a> {
        self.tell(|protocol| protocol.waiting(session, Waiting::Begins));
        WaitingForUser {
            client: self,
            session,
        }
    }

    /// Sends a `session/update`.
    pub(crate) fn notify(&self, params: &Value) {
        self.outbox.push(&rpc::notification(method::UPDATE, params));
    }

    /// Sends a request and waits for its answer, as long as it takes. Dropping the future
    /// gives up.
    pub(crate) async fn request(&self, method: &str, params: &Value) -> Result<Value, RpcError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.lock().insert(id, sender);
        let _forget = Forget { client: self, id };
        self.outbox.push(&rpc::request(id, method, params));
        let gone = RpcError::new(rpc::code::INTERNAL, "the client is gone");
        answer.await.unwrap_or(Err(gone))
    }

    /// Delivers an answer. Late and unknown ones are ignored.
    pub(crate) fn answered(&self, id: &Value, result: Result<Value, RpcError>) {
        // Some clients return every id as a string.
        let number = id
            .as_u64()
            .or_else(|| id.as_str().and_then(|id| id.parse().ok()));
        let open = number.and_then(|id| self.lock().remove(&id));
        if let Some(open) = open {
            let _ = open.send(result);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Answer>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets a request when dropped.
struct Forget<'a> {
    client: &'a Client,
    id: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.client.lock().remove(&self.id);
    }
}

/// Tells the client that a question no longer waits, when dropped.
pub(crate) struct WaitingForUser<'a> {
    client: &'a Client,
    session: &'a str,
}

impl Drop for WaitingForUser<'_> {
    fn drop(&mut self) {
        self.client
            .tell(|protocol| protocol.waiting(self.session, Waiting::Ends));
    }
}
