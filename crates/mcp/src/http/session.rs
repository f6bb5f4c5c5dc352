//! One session over HTTP: messages come in with requests, and go out on streams.

use super::body::Room;
use super::events::Reader;
use super::streams::{Generation, Number, Streams};
use crate::connection::Connection;
use crate::elicit::Waiting;
use crate::link::Link;
use crate::server::{ServerName, ToolsChanged};
use crate::transport::decode::Refusal;
use crate::turn::{Admission, Turns};
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

/// A message, and how long it was.
pub(super) struct Incoming {
    pub(super) message: ClientJsonRpcMessage,
    pub(super) bytes: usize,
}

/// How many requests a session serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    /// As many as come, until it is ended.
    Many,
    /// The one it was made for.
    One,
}

/// One session.
pub(super) struct Session {
    pub(super) id: String,
    span: Span,
    link: Arc<Link>,
    inbox: mpsc::UnboundedSender<ClientJsonRpcMessage>,
    streams: Mutex<Streams>,
    turns: Mutex<Turns>,
    resume: Duration,
    /// It is to end.
    close: CancellationToken,
    /// It has ended, and so has what it started.
    ended: CancellationToken,
}

/// What a session is made from.
pub(super) struct Made<'a> {
    pub(super) id: String,
    pub(super) span: Span,
    pub(super) runtime: Runtime,
    pub(super) name: &'a ServerName,
    pub(super) changed: ToolsChanged,
    pub(super) waiting: Arc<Waiting>,
    pub(super) resume: Duration,
    pub(super) shutdown: &'a CancellationToken,
}

impl Session {
    /// Makes a session, and the work that it is: it lasts until it ends.
    pub(super) fn begin(made: Made<'_>) -> (Arc<Self>, impl Future<Output = ()> + Send + use<>) {
        let link = Arc::new(match made.span {
            Span::Many => Link::new(),
            Span::One => Link::shared(),
        });
        let (inbox, messages) = mpsc::unbounded_channel();
        let session = Arc::new(Self {
            id: made.id,
            span: made.span,
            link: Arc::clone(&link),
            inbox,
            streams: Mutex::new(Streams::new()),
            turns: Mutex::default(),
            resume: made.resume,
            close: made.shutdown.child_token(),
            ended: CancellationToken::new(),
        });
        let transport = Transport {
            session: Arc::clone(&session),
            messages,
            link: Arc::clone(&link),
        };
        let name = made.name.clone();
        let (runtime, changed, waiting) = (made.runtime, made.changed, made.waiting);
        let serving = Arc::clone(&session);
        let work = async move {
            let connection = Connection {
                runtime,
                name: &name,
                changed,
                link,
                waiting,
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

    /// Whether messages may come several at a time.
    pub(super) fn has_batches(&self) -> bool {
        self.link.batches()
    }

    /// Ends it, and what it started.
    pub(super) fn close(&self) {
        self.close.cancel();
    }

    /// Whether it is about to end.
    pub(super) fn is_closing(&self) -> bool {
        self.close.is_cancelled()
    }

    /// Waits until it has ended.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Takes messages that want no answer.
    pub(super) fn told(&self, messages: Vec<Incoming>) {
        let mut streams = self.streams();
        streams.touch();
        for Incoming { message, .. } in messages {
            if let JsonRpcMessage::Notification(notification) = &message
                && let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                && let Some(id) = &cancelled.params.request_id
            {
                // rmcp does not answer it either, from now on.
                streams.settle(id);
            }
            // It fails when the session has ended; then nobody is to be told.
            let _ = self.inbox.send(message);
        }
    }

    /// Takes messages of which some want an answer, and gives who reads the answers.
    pub(super) async fn asked(
        self: &Arc<Self>,
        messages: Vec<Incoming>,
        room: &Room,
        is_batch: bool,
        refusals: Vec<Refusal>,
    ) -> Reader {
        let (number, generation, doubled) = {
            let mut streams = self.streams();
            let all = messages.iter().map(|incoming| &incoming.message);
            let (number, generation, doubled) = streams.answering(all, is_batch);
            for refusal in refusals {
                streams.refuse(number, refusal.to_bytes());
            }
            (number, generation, doubled)
        };
        // From here on a client that goes away is noticed.
        let reader = Reader::new(Arc::clone(self), number, generation, 0);
        let mut told = Vec::new();
        for mut incoming in messages {
            let JsonRpcMessage::Request(request) = &mut incoming.message else {
                told.push(incoming);
                continue;
            };
            if doubled.contains(&request.id) {
                let refusal = Refusal::new(
                    ErrorCode::INVALID_REQUEST,
                    "invalid request: the id is in use by a request that is not answered",
                )
                .of(Some(&request.id.clone().into_json_value()));
                self.streams().refuse(number, refusal.to_bytes());
                continue;
            }
            if let Some(admission) = self.admitted(&request.request, incoming.bytes).await {
                request.request.extensions_mut().insert(admission);
            }
            request.request.extensions_mut().insert(room.clone());
            let _ = self.inbox.send(incoming.message);
        }
        self.told(told);
        reader
    }

    async fn admitted(&self, request: &ClientRequest, bytes: usize) -> Option<Admission> {
        let room = self.link.room(bytes).await?;
        let is_call = matches!(request, ClientRequest::CallToolRequest(_));
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Admission::new(room, is_call.then(|| turns.next())))
    }

    /// A reader is gone. If none comes back in time, what it waited for is cancelled.
    pub(super) fn left(session: &Arc<Self>, number: Number, generation: Generation) {
        let is_waited_for = session.streams().left(number, generation);
        if !is_waited_for {
            return;
        }
        if session.span == Span::One {
            session.close();
            return;
        }
        let Ok(handle) = tokio::runtime::Handle::try_current() else {
            return session.give_up(number, generation);
        };
        let session = Arc::clone(session);
        handle.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(session.resume) => session.give_up(number, generation),
                () = session.close.cancelled() => {}
            }
        });
    }

    fn give_up(&self, number: Number, generation: Generation) {
        let given_up = self.streams().given_up(number, generation);
        for id in given_up {
            tracing::debug!(session = self.id, %id, "a client did not come back: its call is cancelled");
            let _ = self.inbox.send(cancelled(id));
        }
    }
}

fn cancelled(id: RequestId) -> ClientJsonRpcMessage {
    let reason = Some("the client is gone".to_owned());
    let notification =
        CancelledNotification::new(CancelledNotificationParam::new(Some(id), reason));
    ClientJsonRpcMessage::notification(ClientNotification::CancelledNotification(notification))
}

/// The session as the protocol loop sees it.
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
            Refusal::new(ErrorCode::INTERNAL_ERROR, error.to_string())
                .of(id.map(|id| id.clone().into_json_value()).as_ref())
                .to_bytes()
        });
        let mut streams = self.session.streams();
        match self.session.span {
            Span::Many => streams.route(&message, json),
            Span::One => {
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
            () = self.link.over.cancelled() => None,
            message = message => Some(message),
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.link.written.cancel();
        Ok(())
    }
}
