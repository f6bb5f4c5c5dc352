//! One HTTP session: messages arrive in requests and leave on streams.

use super::body::Room;
use super::events::Reader;
use super::streams::{Generation, Number, Streams};
use crate::call_order::{Admission, CallOrder};
use crate::connection::Connection;
use crate::elicit::PendingCalls;
use crate::link::Link;
use crate::server::{ServerName, ToolsChanged};
use crate::transport::decode::ErrorReply;
use haft::Runtime;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification,
    ClientRequest, ErrorCode, GetExtensions, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::RoleServer;
use std::convert::Infallible;
use std::future::{pending, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A message, and its size in bytes.
pub(super) struct Incoming {
    pub(super) message: ClientJsonRpcMessage,
    pub(super) bytes: usize,
}

/// Number of requests that a session serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// Any number, until the client or a timeout ends it.
    UntilEnded,
    /// A single request.
    OneRequest,
}

/// A client's session.
pub(super) struct Session {
    pub(super) id: String,
    lifetime: Lifetime,
    link: Arc<Link>,
    inbox: mpsc::UnboundedSender<ClientJsonRpcMessage>,
    streams: Mutex<Streams>,
    call_order: Mutex<CallOrder>,
    resume: Duration,
    /// Cancelled to end the session.
    close: CancellationToken,
    /// Cancelled when the session and everything it started have ended.
    ended: CancellationToken,
}

/// Everything that a session is built from.
pub(super) struct SessionParts<'a> {
    pub(super) id: String,
    pub(super) lifetime: Lifetime,
    pub(super) runtime: Runtime,
    pub(super) name: &'a ServerName,
    pub(super) changed: ToolsChanged,
    pub(super) pending: Arc<PendingCalls>,
    pub(super) resume: Duration,
    pub(super) shutdown: &'a CancellationToken,
}

impl Session {
    /// Creates a session, and the future that runs it until it ends.
    pub(super) fn start(
        parts: SessionParts<'_>,
    ) -> (Arc<Self>, impl Future<Output = ()> + Send + use<>) {
        let link = Arc::new(match parts.lifetime {
            Lifetime::UntilEnded => Link::new(),
            Lifetime::OneRequest => Link::shared(),
        });
        let (inbox, messages) = mpsc::unbounded_channel();
        let session = Arc::new(Self {
            id: parts.id,
            lifetime: parts.lifetime,
            link: Arc::clone(&link),
            inbox,
            streams: Mutex::new(Streams::new()),
            call_order: Mutex::default(),
            resume: parts.resume,
            close: parts.shutdown.child_token(),
            ended: CancellationToken::new(),
        });
        let transport = Transport {
            session: Arc::clone(&session),
            messages,
            link: Arc::clone(&link),
        };
        let name = parts.name.clone();
        let (runtime, changed, pending) = (parts.runtime, parts.changed, parts.pending);
        let serving = Arc::clone(&session);
        let work = async move {
            let connection = Connection {
                runtime,
                name: &name,
                changed,
                link,
                pending,
            };
            if let Err(error) = connection.run(transport, &serving.close).await {
                tracing::warn!(%error, "a session ended early");
            }
            serving.streams().close();
            serving.ended.cancel();
        };
        (session, work)
    }

    pub(super) fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the negotiated version has batches.
    pub(super) fn has_batches(&self) -> bool {
        self.link.batches()
    }

    /// Ends the session and everything it started.
    pub(super) fn close(&self) {
        self.close.cancel();
    }

    /// Whether the session is ending.
    pub(super) fn is_closing(&self) -> bool {
        self.close.is_cancelled()
    }

    /// Waits until the session has ended.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Accepts messages that need no response.
    pub(super) fn accept_notifications(&self, messages: Vec<Incoming>) {
        let mut streams = self.streams();
        streams.touch();
        for Incoming { message, .. } in messages {
            if let JsonRpcMessage::Notification(notification) = &message
                && let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                && let Some(id) = &cancelled.params.request_id
            {
                // rmcp no longer answers a cancelled request either.
                streams.settle(id);
            }
            // Fails when the session has ended; then the message is obsolete.
            let _ = self.inbox.send(message);
        }
    }

    /// Accepts messages of which some need a response, and returns the reader of the
    /// responses.
    pub(super) async fn accept_requests(
        self: &Arc<Self>,
        messages: Vec<Incoming>,
        room: &Room,
        is_batch: bool,
        refusals: Vec<ErrorReply>,
    ) -> Reader {
        let (number, generation, duplicates) = {
            let mut streams = self.streams();
            let all = messages.iter().map(|incoming| &incoming.message);
            let (number, generation, duplicates) = streams.open_for_requests(all, is_batch);
            for refusal in refusals {
                streams.refuse(number, refusal.to_bytes());
            }
            (number, generation, duplicates)
        };
        // From here on, dropping the reader reports a client that disconnects.
        let reader = Reader::new(Arc::clone(self), number, generation, 0);
        let mut notifications = Vec::new();
        for mut incoming in messages {
            let JsonRpcMessage::Request(request) = &mut incoming.message else {
                notifications.push(incoming);
                continue;
            };
            if duplicates.contains(&request.id) {
                let refusal = ErrorReply::new(
                    ErrorCode::INVALID_REQUEST,
                    "invalid request: the id is in use by an unanswered request",
                )
                .with_id(Some(&request.id.clone().into_json_value()));
                self.streams().refuse(number, refusal.to_bytes());
                continue;
            }
            if let Some(admission) = self.admit(&request.request, incoming.bytes).await {
                request.request.extensions_mut().insert(admission);
            }
            request.request.extensions_mut().insert(room.clone());
            let _ = self.inbox.send(incoming.message);
        }
        self.accept_notifications(notifications);
        reader
    }

    async fn admit(&self, request: &ClientRequest, bytes: usize) -> Option<Admission> {
        let room = self.link.room(bytes).await?;
        let is_call = matches!(request, ClientRequest::CallToolRequest(_));
        let mut call_order = self
            .call_order
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Some(Admission::new(room, is_call.then(|| call_order.next())))
    }

    /// Handles a disconnected reader. Unless the client comes back in time, its requests
    /// are cancelled.
    pub(super) fn reader_left(session: &Arc<Self>, number: Number, generation: Generation) {
        let is_awaited = session.streams().reader_left(number, generation);
        if !is_awaited {
            return;
        }
        if session.lifetime == Lifetime::OneRequest {
            session.close();
            return;
        }
        let Ok(handle) = tokio::runtime::Handle::try_current() else {
            return session.cancel_abandoned(number, generation);
        };
        let session = Arc::clone(session);
        handle.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(session.resume) => session.cancel_abandoned(number, generation),
                () = session.close.cancelled() => {}
            }
        });
    }

    fn cancel_abandoned(&self, number: Number, generation: Generation) {
        let abandoned = self.streams().take_abandoned(number, generation);
        for id in abandoned {
            tracing::debug!(session = self.id, %id, "the client did not come back: cancelling its call");
            let _ = self.inbox.send(cancelled(id));
        }
    }
}

fn cancelled(id: RequestId) -> ClientJsonRpcMessage {
    let reason = Some("the client disconnected".to_owned());
    let notification =
        CancelledNotification::new(CancelledNotificationParam::new(Some(id), reason));
    ClientJsonRpcMessage::notification(ClientNotification::CancelledNotification(notification))
}

/// The session from the point of view of the protocol loop.
struct Transport {
    session: Arc<Session>,
    messages: mpsc::UnboundedReceiver<ClientJsonRpcMessage>,
    link: Arc<Link>,
}

impl rmcp::transport::Transport<RoleServer> for Transport {
    type Error = Infallible;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let json = serde_json::to_vec(&message).unwrap_or_else(|error| {
            let id = match &message {
                JsonRpcMessage::Response(response) => Some(&response.id),
                JsonRpcMessage::Error(error) => error.id.as_ref(),
                _ => None,
            };
            ErrorReply::new(ErrorCode::INTERNAL_ERROR, error.to_string())
                .with_id(id.map(|id| id.clone().into_json_value()).as_ref())
                .to_bytes()
        });
        let mut streams = self.session.streams();
        match self.session.lifetime {
            Lifetime::UntilEnded => streams.route(&message, json),
            Lifetime::OneRequest => {
                streams.route_to(1, &message, json);
                if streams.is_answered() {
                    self.session.close();
                }
            }
        }
        ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let message = async {
            tokio::select! {
                biased;
                () = self.link.closing.cancelled() => pending().await,
                message = self.messages.recv() => match message {
                    Some(message) => message,
                    None => pending().await,
                },
            }
        };
        tokio::select! {
            biased;
            () = self.link.finished.cancelled() => None,
            message = message => Some(message),
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.link.flushed.cancel();
        Ok(())
    }
}
