//! A server that is a program: one JSON message a line, over its streams.

use super::desk::Over;
use crate::transport::decode::id_of;
use crate::transport::{Line, Lines};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage, ServerNotification,
};
use rmcp::service::RoleClient;
use serde_json::{Value, json};
use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How much noise is borne between two messages.
const MOST_NOISE: usize = 10_000;

/// How many notifications and requests a second are heard; what is beyond them is
/// dropped.
const MOST_NEWS: u32 = 1_000;

/// How many of its requests may wait for their answers: one who asks on and reads
/// nothing is ended.
const MOST_OWED: usize = 64;

/// How long a server has to say that it does not know the newest protocol. Some say
/// nothing at all to what they do not know.
const PATIENCE: Duration = Duration::from_secs(3);

/// What both kinds of streams have in common: what is heard, and what is not.
pub(super) struct Sieve {
    queue: VecDeque<ServerJsonRpcMessage>,
    /// The question for the newest protocol, until it is answered.
    asked: Option<(RequestId, Instant)>,
    /// The requests that are not answered: what answers another one is for nobody.
    open: HashSet<RequestId>,
    news: (Instant, u32),
    /// The requests of the server whose answers are not written yet.
    owed: Arc<AtomicUsize>,
}

/// An answer on its way to a server.
pub(super) struct Owed(Arc<AtomicUsize>);

impl Drop for Owed {
    fn drop(&mut self) {
        // What was never asked for leaves nothing to take away.
        let _ = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |owed| {
                owed.checked_sub(1)
            });
    }
}

impl Sieve {
    pub(super) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            asked: None,
            open: HashSet::new(),
            news: (Instant::now(), 0),
            owed: Arc::default(),
        }
    }

    /// Whether the server asks more than it takes answers to.
    pub(super) fn is_flooded(&self) -> bool {
        self.owed.load(Ordering::SeqCst) > MOST_OWED
    }

    /// A message goes out; what is given is kept until it is written.
    pub(super) fn sent(&mut self, message: &ClientJsonRpcMessage) -> Option<Owed> {
        let request = match message {
            JsonRpcMessage::Request(request) => request,
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {
                return Some(Owed(Arc::clone(&self.owed)));
            }
            JsonRpcMessage::Notification(_) => return None,
        };
        self.open.insert(request.id.clone());
        if matches!(request.request, ClientRequest::DiscoverRequest(_)) {
            self.asked = Some((request.id.clone(), Instant::now() + PATIENCE));
        }
        None
    }

    /// A text came in; says whether anything in it was a message.
    pub(super) fn take(&mut self, text: &[u8]) -> bool {
        let mut any = false;
        for message in messages(text) {
            any = true;
            if self.is_heard(&message) {
                self.queue.push_back(message);
            }
        }
        any
    }

    pub(super) fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        self.queue.pop_front()
    }

    /// Waits for as long as the question may stand, and then answers it itself.
    pub(super) async fn give_up(&mut self) -> ServerJsonRpcMessage {
        let Some((id, until)) = self.asked.clone() else {
            return std::future::pending().await;
        };
        tokio::time::sleep_until(until).await;
        self.asked = None;
        // Should it come after all, it is late.
        self.open.remove(&id);
        let unknown = ErrorData::invalid_request("the server does not answer it", None);
        ServerJsonRpcMessage::error(unknown, Some(id))
    }

    fn is_heard(&mut self, message: &ServerJsonRpcMessage) -> bool {
        let id = match message {
            JsonRpcMessage::Response(response) => &response.id,
            JsonRpcMessage::Error(error) => match &error.id {
                Some(id) => id,
                None => return false,
            },
            JsonRpcMessage::Request(_) => {
                let is_heard = self.has_room();
                if is_heard {
                    self.owed.fetch_add(1, Ordering::SeqCst);
                }
                return is_heard;
            }
            JsonRpcMessage::Notification(news) => {
                let is_for_us = matches!(
                    news.notification,
                    ServerNotification::ProgressNotification(_)
                        | ServerNotification::ToolListChangedNotification(_)
                        | ServerNotification::SubscriptionsAcknowledgedNotification(_)
                        | ServerNotification::CancelledNotification(_)
                );
                return is_for_us && self.has_room();
            }
        };
        if self.asked.as_ref().is_some_and(|(asked, _)| asked == id) {
            self.asked = None;
        }
        self.open.remove(id)
    }

    fn has_room(&mut self) -> bool {
        let (since, many) = &mut self.news;
        if since.elapsed() > Duration::from_secs(1) {
            (*since, *many) = (Instant::now(), 0);
        }
        *many += 1;
        if *many == MOST_NEWS {
            tracing::warn!(
                "an MCP server sends notifications or requests faster than they are heard"
            );
        }
        *many < MOST_NEWS
    }
}

/// The messages that a text is: one, or several in an array. An answer that cannot be
/// read is an answer all the same, so that nobody waits for it.
pub(super) fn messages(text: &[u8]) -> impl Iterator<Item = ServerJsonRpcMessage> {
    let text = String::from_utf8_lossy(text);
    let parsed = match haft::json::excess(text.as_bytes()) {
        None => serde_json::from_str(&text).ok(),
        Some(_) => None,
    };
    let many = match parsed {
        Some(Value::Array(many)) => many,
        Some(one @ Value::Object(_)) => vec![one],
        Some(_) => Vec::new(),
        // What is too deep or too much to be read may still be somebody's answer.
        None => id_of(text.as_bytes())
            .map(|id| json!({ "id": id }))
            .into_iter()
            .collect(),
    };
    many.into_iter().filter_map(message)
}

fn message(value: Value) -> Option<ServerJsonRpcMessage> {
    let id = value.get("id").cloned();
    let is_answer = value.get("method").is_none() && !matches!(id, None | Some(Value::Null));
    if let Ok(message) = serde_json::from_value(value) {
        return Some(message);
    }
    is_answer.then_some(())?;
    let error = json!({ "code": -32603, "message": "the answer cannot be read" });
    serde_json::from_value(json!({ "jsonrpc": "2.0", "id": id, "error": error })).ok()
}

/// The transport of one program.
pub(super) struct Stdio<R, W> {
    input: Arc<Mutex<W>>,
    lines: Lines<R>,
    noise: usize,
    sieve: Sieve,
    over: Arc<OnceLock<Over>>,
}

impl<R: AsyncRead + Unpin, W> Stdio<R, W> {
    pub(super) fn new(input: W, output: R, over: Arc<OnceLock<Over>>) -> Self {
        Self {
            input: Arc::new(Mutex::new(input)),
            lines: Lines::new(output),
            noise: 0,
            sieve: Sieve::new(),
            over,
        }
    }

    async fn next(&mut self) -> Result<ServerJsonRpcMessage, Over> {
        loop {
            if let Some(message) = self.sieve.next() {
                return Ok(message);
            }
            let line = tokio::select! {
                line = self.lines.next() => line,
                answer = self.sieve.give_up() => return Ok(answer),
            };
            let line = match line {
                Ok(Line::Whole(line)) => line,
                Ok(Line::TooLong(_) | Line::Skipped(_)) => return Err(Over::Babbling),
                Ok(Line::End) | Err(_) => return Err(Over::Ended),
            };
            if self.sieve.take(&line) {
                self.noise = 0;
                if self.sieve.is_flooded() {
                    tracing::warn!("an MCP server asks and reads no answers: it is ended");
                    return Err(Over::Babbling);
                }
                // One that never pauses leaves room for others.
                tokio::task::yield_now().await;
                continue;
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            self.noise += 1;
            tracing::info!(bytes = line.len(), "an MCP server wrote what is no message");
            if self.noise > MOST_NOISE {
                return Err(Over::Babbling);
            }
        }
    }
}

impl<R, W> rmcp::transport::Transport<RoleClient> for Stdio<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let owed = self.sieve.sent(&message);
        let input = Arc::clone(&self.input);
        async move {
            let _owed = owed;
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            input.lock().await.write_all(&line).await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        match self.next().await {
            Ok(message) => Some(message),
            Err(over) => {
                let _ = self.over.set(over);
                None
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // A program that is done with its input ends by itself.
        match self.input.try_lock() {
            Ok(mut input) => input.shutdown().await,
            Err(_) => Ok(()),
        }
    }
}
