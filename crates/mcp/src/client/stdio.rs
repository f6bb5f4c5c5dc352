//! Communicates with a server that is a program: one JSON message per line, over its
//! standard streams.

use super::dispatcher::StreamEnd;
use crate::transport::decode::id_of;
use crate::transport::{InputLine, Lines};
use rmcp::model::{
    ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerNotification,
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

/// Number of invalid lines accepted between two messages.
const MAX_NOISE: usize = 10_000;

/// Number of notifications and requests accepted per second; the others are dropped.
const MAX_PER_SECOND: u32 = 1_000;

/// Number of the server's requests that may wait for a response. A server that keeps asking
/// without reading the responses is stopped.
const MAX_UNREAD: usize = 64;

/// Accepts or drops incoming messages; shared by both kinds of streams.
pub(super) struct MessageFilter {
    queue: VecDeque<ServerJsonRpcMessage>,
    /// Our unanswered requests; other responses are dropped.
    open: HashSet<RequestId>,
    recent: (Instant, u32),
    /// Number of the server's requests whose responses are not written yet.
    unread: Arc<AtomicUsize>,
}

/// Counts a response as written when dropped.
pub(super) struct ReplyGuard(Arc<AtomicUsize>);

impl Drop for ReplyGuard {
    fn drop(&mut self) {
        // A response to a request that was dropped is not counted, so the count may be
        // zero.
        let _ = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |unread| {
                unread.checked_sub(1)
            });
    }
}

impl MessageFilter {
    pub(super) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            open: HashSet::new(),
            recent: (Instant::now(), 0),
            unread: Arc::default(),
        }
    }

    /// Whether too many responses are unread.
    pub(super) fn is_flooded(&self) -> bool {
        self.unread.load(Ordering::SeqCst) > MAX_UNREAD
    }

    /// Records an outgoing message. The returned guard must live until the message is
    /// written.
    pub(super) fn sent(&mut self, message: &ClientJsonRpcMessage) -> Option<ReplyGuard> {
        let request = match message {
            JsonRpcMessage::Request(request) => request,
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {
                return Some(ReplyGuard(Arc::clone(&self.unread)));
            }
            JsonRpcMessage::Notification(_) => return None,
        };
        self.open.insert(request.id.clone());
        None
    }

    /// Parses an incoming text. Returns whether it contained a message.
    pub(super) fn take(&mut self, text: &[u8]) -> bool {
        let mut any = false;
        for message in messages(text) {
            any = true;
            if self.accepts(&message) {
                self.queue.push_back(message);
            }
        }
        any
    }

    pub(super) fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        self.queue.pop_front()
    }

    fn accepts(&mut self, message: &ServerJsonRpcMessage) -> bool {
        let id = match message {
            JsonRpcMessage::Response(response) => &response.id,
            JsonRpcMessage::Error(error) => match &error.id {
                Some(id) => id,
                None => return false,
            },
            JsonRpcMessage::Request(_) => {
                let accepts = self.is_within_rate();
                if accepts {
                    self.unread.fetch_add(1, Ordering::SeqCst);
                }
                return accepts;
            }
            JsonRpcMessage::Notification(recent) => {
                let is_for_us = matches!(
                    recent.notification,
                    ServerNotification::ProgressNotification(_)
                        | ServerNotification::ToolListChangedNotification(_)
                        | ServerNotification::SubscriptionsAcknowledgedNotification(_)
                        | ServerNotification::CancelledNotification(_)
                );
                return is_for_us && self.is_within_rate();
            }
        };
        self.open.remove(id)
    }

    fn is_within_rate(&mut self) -> bool {
        let (since, count) = &mut self.recent;
        if since.elapsed() > Duration::from_secs(1) {
            (*since, *count) = (Instant::now(), 0);
        }
        *count += 1;
        if *count == MAX_PER_SECOND {
            tracing::warn!("an MCP server sends too many notifications or requests: dropping some");
        }
        *count < MAX_PER_SECOND
    }
}

/// Parses one message or an array of messages. A response that cannot be parsed becomes an
/// error response, so that its request does not wait forever.
pub(super) fn messages(text: &[u8]) -> impl Iterator<Item = ServerJsonRpcMessage> {
    let text = String::from_utf8_lossy(text);
    let parsed = match haft::json::excess(text.as_bytes()) {
        None => serde_json::from_str(&text).ok(),
        Some(_) => None,
    };
    let count = match parsed {
        Some(Value::Array(count)) => count,
        Some(one @ Value::Object(_)) => vec![one],
        Some(_) => Vec::new(),
        // A text that is too deep or too large to parse may still be a response.
        None => id_of(text.as_bytes())
            .map(|id| json!({ "id": id }))
            .into_iter()
            .collect(),
    };
    count.into_iter().filter_map(message)
}

fn message(mut value: Value) -> Option<ServerJsonRpcMessage> {
    keep_execution(&mut value);
    let id = value.get("id").cloned();
    let is_answer = value.get("method").is_none() && !matches!(id, None | Some(Value::Null));
    if let Ok(message) = serde_json::from_value(value) {
        return Some(message);
    }
    is_answer.then_some(())?;
    let error = json!({ "code": -32603, "message": "the response is not valid" });
    serde_json::from_value(json!({ "jsonrpc": "2.0", "id": id, "error": error })).ok()
}

/// Name under which `_meta` of a listed tool keeps its `execution`, which rmcp drops.
pub(super) const EXECUTION: &str = "haft/execution";

/// Keeps how the tools of a list are called.
fn keep_execution(value: &mut Value) {
    let tools = value.pointer_mut("/result/tools");
    for tool in tools.and_then(Value::as_array_mut).into_iter().flatten() {
        let execution = tool.get("execution").cloned();
        if let (Some(execution), Some(tool)) = (execution, tool.as_object_mut()) {
            let meta = tool.entry("_meta").or_insert_with(|| json!({}));
            if let Some(meta) = meta.as_object_mut() {
                meta.insert(EXECUTION.to_owned(), execution);
            }
        }
    }
}

/// The transport of one program.
pub(super) struct Stdio<R, W> {
    input: Arc<Mutex<W>>,
    lines: Lines<R>,
    noise: usize,
    filter: MessageFilter,
    stream_end: Arc<OnceLock<StreamEnd>>,
}

impl<R: AsyncRead + Unpin, W> Stdio<R, W> {
    pub(super) fn new(input: W, output: R, stream_end: Arc<OnceLock<StreamEnd>>) -> Self {
        Self {
            input: Arc::new(Mutex::new(input)),
            lines: Lines::new(output),
            noise: 0,
            filter: MessageFilter::new(),
            stream_end,
        }
    }

    async fn next(&mut self) -> Result<ServerJsonRpcMessage, StreamEnd> {
        loop {
            if let Some(message) = self.filter.next() {
                return Ok(message);
            }
            let line = match self.lines.next().await {
                Ok(InputLine::Complete(line)) => line,
                Ok(InputLine::TooLong(_) | InputLine::Skipped(_)) => {
                    return Err(StreamEnd::Garbage);
                }
                Ok(InputLine::End) | Err(_) => return Err(StreamEnd::Ended),
            };
            if self.filter.take(&line) {
                self.noise = 0;
                if self.filter.is_flooded() {
                    tracing::warn!(
                        "an MCP server does not read responses to its requests: stopping it"
                    );
                    return Err(StreamEnd::Garbage);
                }
                // A server that never pauses must not starve other tasks.
                tokio::task::yield_now().await;
                continue;
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            self.noise += 1;
            tracing::info!(
                bytes = line.len(),
                "an MCP server wrote a line that is not a valid message"
            );
            if self.noise > MAX_NOISE {
                return Err(StreamEnd::Garbage);
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
        let guard = self.filter.sent(&message);
        let input = Arc::clone(&self.input);
        async move {
            let _guard = guard;
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            input.lock().await.write_all(&line).await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        match self.next().await {
            Ok(message) => Some(message),
            Err(stream_end) => {
                let _ = self.stream_end.set(stream_end);
                None
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Closing its input makes a program exit.
        match self.input.try_lock() {
            Ok(mut input) => input.shutdown().await,
            Err(_) => Ok(()),
        }
    }
}
