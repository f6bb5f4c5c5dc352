//! One JSON message a line, over any pair of streams.
//!
//! rmcp's transport leaves what it cannot parse unanswered. This one answers
//! it, counts what is under way, and keeps the order of calls.

pub(crate) mod batch;
pub(crate) mod decode;
mod id;
mod lines;
mod outbox;
pub(crate) mod parse;

pub(crate) use lines::{Line, Lines};
pub(crate) use outbox::{Outbox, Queue, pump};

use crate::ServeError;
use crate::link::Link;
use crate::turn::{Admission, Turns};
use batch::{BatchId, Batches};
use decode::{Decoded, Refusal, decode};
use lines::LONGEST;
use parse::{Parsed, Unread};
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

/// What some editors put before a text.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// The transport of one connection.
pub(crate) struct Transport<R> {
    lines: Lines<R>,
    outbox: Option<Outbox>,
    link: Arc<Link>,
    /// Decoded, but not taken on yet.
    queue: VecDeque<Incoming>,
    /// The requests that are not answered, and the batches they belong to.
    open: HashMap<RequestId, Option<BatchId>>,
    batches: Batches,
    /// Until it is answered nothing else is begun: what follows may depend on
    /// the version it agrees on.
    initializing: Option<RequestId>,
    turns: Turns,
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
            turns: Turns::default(),
        }
    }

    /// The next message. It may be dropped at any time and asked for again.
    async fn next(&mut self) -> ClientJsonRpcMessage {
        loop {
            if self.initializing.is_some() {
                // Its answer wakes the loop, which asks again.
                return pending().await;
            }
            if let Some(incoming) = self.queue.front() {
                let room = if matches!(incoming.message, JsonRpcMessage::Request(_)) {
                    if let Some(outbox) = &self.outbox {
                        outbox.room().await;
                    }
                    self.link.room(incoming.bytes).await
                } else {
                    None
                };
                if let Some(message) = self.take_on(room) {
                    return message;
                }
                continue;
            }
            match self.lines.next().await {
                Ok(Line::Whole(line)) => self.read(&line),
                // Its id is still to come, if it has one.
                Ok(Line::TooLong(None)) => {}
                Ok(Line::TooLong(id) | Line::Skipped(id)) => {
                    let said = format!("message too long: at most {LONGEST} bytes");
                    let refusal = Refusal::new(ErrorCode::INVALID_REQUEST, said);
                    self.push(refusal.of(id.as_ref()).to_bytes());
                }
                Ok(Line::End) => return self.end().await,
                Err(error) => {
                    self.link.fail(ServeError::Read(error));
                    return self.end().await;
                }
            }
        }
    }

    /// The end is reported when the calls that run have ended.
    async fn end(&mut self) -> ClientJsonRpcMessage {
        self.link.ended.cancel();
        pending().await
    }

    /// Queues the messages of a line, or answers it.
    fn read(&mut self, line: &[u8]) {
        let text = line.strip_prefix(BOM).unwrap_or(line).trim_ascii();
        if text.is_empty() {
            return;
        }
        let parsed = if text.starts_with(b"[") {
            self.read_batch(text)
        } else {
            parse::parse(text).map(|Parsed { value, cost }| self.sort(value, cost, None))
        };
        if let Err(unread) = parsed {
            let refusal = unread.refusal().of(decode::id_of(text).as_ref());
            self.push(refusal.to_bytes());
        }
    }

    fn read_batch(&mut self, text: &[u8]) -> Result<(), Unread> {
        let refuse = |message: String| Refusal::new(ErrorCode::INVALID_REQUEST, message).to_bytes();
        if !self.link.batches() {
            // It is not kept, only looked at, to tell what is wrong with it.
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
        if values.is_empty() || values.len() > batch::MOST {
            self.push(refuse(format!(
                "invalid request: a batch has 1 to {} messages",
                batch::MOST
            )));
            return Ok(());
        }
        let bytes = cost / values.len();
        let batch = self.batches.open(values.len());
        for value in values {
            self.sort(value, bytes, Some(batch));
        }
        Ok(())
    }

    fn sort(&mut self, value: Value, bytes: usize, batch: Option<BatchId>) {
        match decode(value) {
            Decoded::Message(message) => self.queue.push_back(Incoming {
                message: *message,
                bytes,
                batch,
            }),
            Decoded::Refused(refusal) => self.settle(batch, Some(refusal.to_bytes())),
            Decoded::Nothing => self.settle(batch, None),
        }
    }

    /// Takes on the message at the front.
    fn take_on(&mut self, room: Option<OwnedSemaphorePermit>) -> Option<ClientJsonRpcMessage> {
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
                // rmcp does not answer it either, from now on.
                self.settle(batch, None);
            }
            return Some(message);
        };
        if self.open.contains_key(&request.id) {
            let refusal = Refusal::new(
                ErrorCode::INVALID_REQUEST,
                "invalid request: the id is in use by a request that is not answered",
            )
            .of(Some(&request.id.clone().into_json_value()));
            self.settle(batch, Some(refusal.to_bytes()));
            return None;
        }
        self.open.insert(request.id.clone(), batch);
        if matches!(request.request, ClientRequest::InitializeRequest(_)) {
            self.initializing = Some(request.id.clone());
        }
        let turn =
            matches!(request.request, ClientRequest::CallToolRequest(_)).then(|| self.turns.next());
        if let Some(room) = room {
            let admission = Admission::new(room, turn);
            request.request.extensions_mut().insert(admission);
        }
        Some(message)
    }

    /// Writes an answer, or keeps it until its batch is complete.
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
            Refusal::new(ErrorCode::INTERNAL_ERROR, error.to_string())
                .of(id.map(|id| id.clone().into_json_value()).as_ref())
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
            () = link.over.cancelled() => None,
            message = message => Some(message),
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        // The writer ends when it has written what is left.
        self.outbox = None;
        Ok(())
    }
}
