//! One JSON message per line, over any pair of streams.
//!
//! rmcp's transport does not answer messages that it cannot parse. This one does; it also
//! limits the requests in progress and keeps calls in order.

pub(crate) mod batch;
pub(crate) mod decode;
mod id;
mod lines;
mod outbox;
pub(crate) mod parse;

pub use lines::{InputLine, Lines, MAX_LINE};
pub(crate) use outbox::{Outbox, Queue, pump};

use crate::ServeError;
use crate::call_order::{Admission, CallOrder};
use crate::link::Link;
use batch::{BatchId, Batches};
use decode::{Decoded, ErrorReply, decode};
use parse::{ParseError, Parsed};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, GetExtensions,
    JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::RoleServer;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::future::{pending, ready};
use std::sync::Arc;
use tokio::io::AsyncRead;
use tokio::sync::OwnedSemaphorePermit;

/// Byte order mark that some editors put at the start of a text.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// The transport of one connection.
pub(crate) struct Transport<R> {
    lines: Lines<R>,
    outbox: Option<Outbox>,
    link: Arc<Link>,
    /// Decoded messages that have not been accepted yet.
    queue: VecDeque<Incoming>,
    /// Unanswered requests, and the batches they belong to.
    open: HashMap<RequestId, Option<BatchId>>,
    batches: Batches,
    /// The `initialize` request in progress. Nothing else starts until it is answered,
    /// because later messages may depend on the negotiated version.
    initializing: Option<RequestId>,
    call_order: CallOrder,
}

struct Incoming {
    message: ClientJsonRpcMessage,
    bytes: usize,
    batch: Option<BatchId>,
}

impl<R: AsyncRead + Send + Unpin> Transport<R> {
    pub(crate) fn new(input: R, outbox: Outbox, link: Arc<Link>) -> Self {
        Self {
            lines: Lines::new(input),
            outbox: Some(outbox),
            link,
            queue: VecDeque::new(),
            open: HashMap::new(),
            batches: Batches::default(),
            initializing: None,
            call_order: CallOrder::default(),
        }
    }

    /// Returns the next message. Cancel-safe: nothing is lost if the future is dropped.
    async fn next(&mut self) -> ClientJsonRpcMessage {
        loop {
            if self.initializing.is_some() {
                // Sending its answer makes the protocol loop poll again.
                return pending().await;
            }
            if let Some(incoming) = self.queue.front() {
                let room = if matches!(incoming.message, JsonRpcMessage::Request(_)) {
                    if let Some(outbox) = &self.outbox {
                        outbox.wait_for_room().await;
                    }
                    self.link.room(incoming.bytes).await
                } else {
                    None
                };
                if let Some(message) = self.accept(room) {
                    return message;
                }
                continue;
            }
            match self.lines.next().await {
                Ok(InputLine::Complete(line)) => self.read(&line),
                // The id has not been read yet, if there is one.
                Ok(InputLine::TooLong(None)) => {}
                Ok(InputLine::TooLong(id) | InputLine::Skipped(id)) => {
                    let message = format!("message too long: at most {MAX_LINE} bytes");
                    let refusal = ErrorReply::new(ErrorCode::INVALID_REQUEST, message);
                    self.push(refusal.with_id(id.as_ref()).to_bytes());
                }
                Ok(InputLine::End) => return self.end().await,
                Err(error) => {
                    self.link.fail(ServeError::Read(error));
                    return self.end().await;
                }
            }
        }
    }

    /// Signals the end of input. The connection ends after the running calls have.
    async fn end(&mut self) -> ClientJsonRpcMessage {
        self.link.input_ended.cancel();
        pending().await
    }

    /// Queues the messages of a line, or answers a line that is not valid.
    fn read(&mut self, line: &[u8]) {
        let text = line.strip_prefix(BOM).unwrap_or(line).trim_ascii();
        if text.is_empty() {
            return;
        }
        let parsed = if text.starts_with(b"[") {
            self.read_batch(text)
        } else {
            parse::parse(text).map(|Parsed { value, cost }| self.enqueue(value, cost, None))
        };
        if let Err(error) = parsed {
            let reply = error.reply().with_id(decode::id_of(text).as_ref());
            self.push(reply.to_bytes());
        }
    }

    fn read_batch(&mut self, text: &[u8]) -> Result<(), ParseError> {
        let refuse =
            |message: String| ErrorReply::new(ErrorCode::INVALID_REQUEST, message).to_bytes();
        if !self.link.batches() {
            // Only parsed to report a syntax error if there is one.
            serde_json::from_slice::<IgnoredAny>(text)?;
            self.push(refuse(
                "invalid request: only protocol version 2025-03-26 has batches".to_owned(),
            ));
            return Ok(());
        }
        let Parsed { value, cost } = parse::parse(text)?;
        let Value::Array(values) = value else {
            return Ok(());
        };
        if values.is_empty() || values.len() > batch::MAX_MESSAGES {
            self.push(refuse(format!(
                "invalid request: a batch has 1 to {} messages",
                batch::MAX_MESSAGES
            )));
            return Ok(());
        }
        let bytes = cost / values.len();
        let batch = self.batches.open(values.len());
        for value in values {
            self.enqueue(value, bytes, Some(batch));
        }
        Ok(())
    }

    fn enqueue(&mut self, value: Value, bytes: usize, batch: Option<BatchId>) {
        match decode(value) {
            Decoded::Message(message) => self.queue.push_back(Incoming {
                message: *message,
                bytes,
                batch,
            }),
            Decoded::Invalid(refusal) => self.settle(batch, Some(refusal.to_bytes())),
            Decoded::Ignored => self.settle(batch, None),
        }
    }

    /// Accepts the message at the front of the queue.
    fn accept(&mut self, room: Option<OwnedSemaphorePermit>) -> Option<ClientJsonRpcMessage> {
        let Incoming {
            mut message, batch, ..
        } = self.queue.pop_front()?;
        let JsonRpcMessage::Request(request) = &mut message else {
            self.settle(batch, None);
            if let JsonRpcMessage::Notification(notification) = &message
                && let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                && let Some(id) = &cancelled.params.request_id
                && let Some(batch) = self.open.remove(id)
            {
                // rmcp no longer answers a cancelled request either.
                self.settle(batch, None);
            }
            return Some(message);
        };
        if self.open.contains_key(&request.id) {
            let refusal = ErrorReply::new(
                ErrorCode::INVALID_REQUEST,
                "invalid request: the id is in use by an unanswered request",
            )
            .with_id(Some(&request.id.clone().into_json_value()));
            self.settle(batch, Some(refusal.to_bytes()));
            return None;
        }
        self.open.insert(request.id.clone(), batch);
        if matches!(request.request, ClientRequest::InitializeRequest(_)) {
            self.initializing = Some(request.id.clone());
        }
        let ticket = matches!(request.request, ClientRequest::CallToolRequest(_))
            .then(|| self.call_order.next());
        if let Some(room) = room {
            let admission = Admission::new(room, ticket);
            request.request.extensions_mut().insert(admission);
        }
        Some(message)
    }

    /// Writes an answer, or stores it until its batch is complete.
    fn settle(&mut self, batch: Option<BatchId>, answer: Option<Vec<u8>>) {
        let answer = match batch {
            None => answer,
            Some(batch) => self.batches.settle(batch, answer),
        };
        if let Some(answer) = answer {
            self.push(answer);
        }
    }

    fn push(&self, message: Vec<u8>) {
        if let Some(outbox) = &self.outbox {
            outbox.push(message);
        }
    }
}

impl<R: AsyncRead + Send + Unpin> rmcp::transport::Transport<RoleServer> for Transport<R> {
    type Error = Infallible;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        let bytes = serde_json::to_vec(&message).unwrap_or_else(|error| {
            ErrorReply::new(ErrorCode::INTERNAL_ERROR, error.to_string())
                .with_id(id.map(|id| id.clone().into_json_value()).as_ref())
                .to_bytes()
        });
        let mut batch = None;
        if let Some(id) = id {
            batch = self.open.remove(id).flatten();
            if self.initializing.as_ref() == Some(id) {
                self.initializing = None;
            }
        }
        self.settle(batch, Some(bytes));
        ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let link = Arc::clone(&self.link);
        let message = async {
            tokio::select! {
                biased;
                () = link.closing.cancelled() => pending().await,
                message = self.next() => message,
            }
        };
        tokio::select! {
            biased;
            () = link.finished.cancelled() => None,
            message = message => Some(message),
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        // The writer ends once it has written all remaining messages.
        self.outbox = None;
        Ok(())
    }
}
