//! The streams of a session. Their events are kept until the client has had time to come
//! back for them.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use rmcp::model::{
    ClientJsonRpcMessage, ErrorCode, GetExtensions, GetMeta, JsonRpcMessage, ProgressToken,
    ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerNotification, ServerResult,
};
use rmcp::service::OriginatingRequestId;
use std::collections::{HashMap, VecDeque};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Milliseconds after which a client that lost its stream should reconnect: well before its
/// requests are cancelled.
const RETRY_MILLIS: u32 = 500;

/// Maximum number of events kept on a notification stream.
const MAX_EVENTS: usize = 64;
/// Maximum number of bytes that a session keeps. Events that were read are dropped first;
/// while the unread ones exceed the limit, no new request is accepted.
const MAX_BYTES: usize = 8 << 20;
/// Maximum number of notification streams of a session; the oldest is dropped.
const MAX_NOTIFICATION_STREAMS: usize = 8;

/// Identifies a stream of a session.
pub(super) type Number = u64;

/// Counts the readers of a stream; only the newest one may read.
pub(super) type Generation = u64;

/// All streams of one session.
pub(super) struct Streams {
    all: HashMap<Number, Stream>,
    last: Number,
    /// Unanswered requests of the client, and the streams for their replies.
    open: HashMap<RequestId, Number>,
    /// Streams for the progress of calls.
    progress: HashMap<ProgressToken, Number>,
    /// Streams on which the server sent its own requests.
    server_requests: HashMap<RequestId, Number>,
    /// Whether the client accepts an event without data.
    accepts_primer: bool,
    is_closed: bool,
    used: Instant,
}

struct Stream {
    kind: StreamKind,
    events: VecDeque<Event>,
    last: u64,
    /// Index of the last event that was read.
    seen: u64,
    generation: Generation,
    is_read: bool,
    waker: Option<Waker>,
    /// Time of the end of the stream.
    ended: Option<Instant>,
    /// Time when the last reader disconnected.
    reader_left: Option<Instant>,
}

enum StreamKind {
    /// Carries the replies to these requests.
    Replies {
        missing: Vec<RequestId>,
        progress: Vec<ProgressToken>,
        is_batch: bool,
    },
    /// Carries messages that belong to no request.
    Notifications,
}

struct Event {
    index: u64,
    json: Bytes,
    kind: EventKind,
}

/// Type of the message in an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventKind {
    Reply,
    /// An error reply.
    Error(ErrorCode),
    /// Not a reply: a request or notification of the server.
    Other,
}

/// All replies on a stream.
pub(super) struct CompleteReply {
    pub(super) json: Bytes,
    /// Error code, if the only reply is an error.
    pub(super) error: Option<ErrorCode>,
}

impl Streams {
    pub(super) fn new() -> Self {
        Self {
            all: HashMap::new(),
            last: 0,
            open: HashMap::new(),
            progress: HashMap::new(),
            server_requests: HashMap::new(),
            accepts_primer: false,
            is_closed: false,
            used: Instant::now(),
        }
    }

    fn add(&mut self, kind: StreamKind) -> (Number, Generation) {
        self.last += 1;
        self.used = Instant::now();
        let stream = Stream {
            kind,
            events: VecDeque::new(),
            last: 0,
            seen: 0,
            generation: 1,
            is_read: true,
            waker: None,
            ended: self.is_closed.then(Instant::now),
            reader_left: None,
        };
        self.all.insert(self.last, stream);
        (self.last, 1)
    }

    /// Opens a stream for the replies to these messages. Also returns the ids of requests
    /// that are refused because an unanswered request has the same id.
    pub(super) fn open_for_requests<'a>(
        &mut self,
        messages: impl Iterator<Item = &'a ClientJsonRpcMessage>,
        is_batch: bool,
    ) -> (Number, Generation, Vec<RequestId>) {
        let (number, generation) = self.add(StreamKind::Replies {
            missing: Vec::new(),
            progress: Vec::new(),
            is_batch,
        });
        let (mut refused, mut wanted, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
        for message in messages {
            let JsonRpcMessage::Request(request) = message else {
                continue;
            };
            if self.open.contains_key(&request.id) {
                refused.push(request.id.clone());
                continue;
            }
            self.open.insert(request.id.clone(), number);
            wanted.push(request.id.clone());
            if let Some(token) = request.request.get_meta().get_progress_token() {
                self.progress.insert(token.clone(), number);
                tokens.push(token);
            }
        }
        if let Some(Stream {
            kind: StreamKind::Replies {
                missing, progress, ..
            },
            ..
        }) = self.all.get_mut(&number)
        {
            *missing = wanted;
            *progress = tokens;
        }
        (number, generation, refused)
    }

    /// Whether a new request may be accepted: not while too much is unread.
    pub(super) fn have_room(&mut self) -> bool {
        let mut size: usize = self.all.values().map(Stream::size).sum();
        while size > MAX_BYTES {
            let over = self.all.iter().filter(|(_, stream)| {
                stream.ended.is_some() && (stream.seen == stream.last || !stream.is_read)
            });
            let Some(oldest) = over.map(|(number, _)| *number).min() else {
                return false;
            };
            size -= self.all.remove(&oldest).map_or(0, |stream| stream.size());
        }
        true
    }

    /// Opens a stream for messages that belong to no request.
    pub(super) fn open_notifications(&mut self) -> (Number, Generation) {
        let is_standing = |stream: &&Number| {
            let stream = self.all.get(stream);
            stream.is_some_and(|stream| matches!(stream.kind, StreamKind::Notifications))
        };
        let mut open: Vec<_> = self.all.keys().filter(is_standing).copied().collect();
        open.sort_unstable();
        let surplus = (open.len() + 1).saturating_sub(MAX_NOTIFICATION_STREAMS);
        for number in open.into_iter().take(surplus) {
            self.end(number);
            self.all.remove(&number);
        }
        self.add(StreamKind::Notifications)
    }

    /// Resumes a stream after the event that the client read last.
    pub(super) fn resume(&mut self, number: Number, after: u64) -> Option<Generation> {
        self.used = Instant::now();
        let stream = self.all.get_mut(&number)?;
        let oldest = stream
            .events
            .front()
            .map_or(stream.last + 1, |event| event.index);
        // Events that were dropped cannot be sent again.
        if after > stream.last || after + 1 < oldest {
            return None;
        }
        stream.generation += 1;
        stream.is_read = true;
        stream.reader_left = None;
        // Wakes the previous reader, which ends.
        if let Some(waker) = stream.waker.take() {
            waker.wake();
        }
        Some(stream.generation)
    }

    /// Returns the next event in its wire format, or `None` at the end of the stream.
    pub(super) fn poll(
        &mut self,
        number: Number,
        generation: Generation,
        after: &mut u64,
        cx: &Context<'_>,
    ) -> Poll<Option<Bytes>> {
        let Some(stream) = self.all.get_mut(&number) else {
            return Poll::Ready(None);
        };
        if stream.generation != generation {
            return Poll::Ready(None);
        }
        if let Some(event) = stream.events.iter().find(|event| event.index > *after) {
            *after = event.index;
            stream.seen = stream.seen.max(event.index);
            return Poll::Ready(Some(event.to_wire(number)));
        }
        if stream.ended.is_some() {
            return Poll::Ready(None);
        }
        stream.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Waits until there is something to read or the stream has ended. The replies to a
    /// batch are read together, unless there is another message to send first.
    pub(super) fn poll_ready(&mut self, number: Number, cx: &Context<'_>) -> Poll<()> {
        let Some(stream) = self.all.get_mut(&number) else {
            return Poll::Ready(());
        };
        let is_ready = match stream.kind {
            _ if stream.ended.is_some() => true,
            StreamKind::Replies { is_batch: true, .. } => stream
                .events
                .iter()
                .any(|event| event.kind == EventKind::Other),
            _ => !stream.events.is_empty(),
        };
        if is_ready {
            return Poll::Ready(());
        }
        stream.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Takes the replies of a stream, if all have arrived and there was no other message.
    /// Removes the stream.
    pub(super) fn take_complete(&mut self, number: Number) -> Option<CompleteReply> {
        let stream = self.all.get(&number)?;
        stream.ended?;
        let StreamKind::Replies { is_batch, .. } = &stream.kind else {
            return None;
        };
        if stream.events.is_empty()
            || stream
                .events
                .iter()
                .any(|event| event.kind == EventKind::Other)
        {
            return None;
        }
        let mut error = None;
        let json = if *is_batch {
            let mut array = vec![b'['];
            for event in &stream.events {
                if array.len() > 1 {
                    array.push(b',');
                }
                array.extend_from_slice(&event.json);
            }
            array.push(b']');
            array.into()
        } else {
            let event = stream.events.front()?;
            if let EventKind::Error(code) = event.kind {
                error = Some(code);
            }
            event.json.clone()
        };
        self.all.remove(&number);
        Some(CompleteReply { json, error })
    }

    /// Returns an event without a message, which tells the client where to resume the
    /// stream.
    pub(super) fn primer(&self, number: Number) -> Bytes {
        // Older clients would take an event without data for an invalid message.
        let data = if self.accepts_primer { "data: \n" } else { "" };
        Bytes::from(format!("id: {number}-0\nretry: {RETRY_MILLIS}\n{data}\n"))
    }

    /// Records that a reader has disconnected. Returns whether requests wait for it to come
    /// back.
    pub(super) fn reader_left(&mut self, number: Number, generation: Generation) -> bool {
        self.used = Instant::now();
        match self.all.get_mut(&number) {
            Some(stream) if stream.generation == generation => {
                stream.is_read = false;
                stream.reader_left = Some(Instant::now());
                stream.ended.is_none() && matches!(stream.kind, StreamKind::Replies { .. })
            }
            _ => false,
        }
    }

    /// Removes a stream whose reader did not come back, and returns its unanswered
    /// requests.
    pub(super) fn take_abandoned(
        &mut self,
        number: Number,
        generation: Generation,
    ) -> Vec<RequestId> {
        let is_given_up = self
            .all
            .get(&number)
            .is_some_and(|stream| stream.generation == generation && !stream.is_read);
        if !is_given_up {
            return Vec::new();
        }
        self.used = Instant::now();
        let Some(stream) = self.all.remove(&number) else {
            return Vec::new();
        };
        let StreamKind::Replies {
            missing, progress, ..
        } = stream.kind
        else {
            return Vec::new();
        };
        for id in &missing {
            self.open.remove(id);
        }
        for token in progress {
            self.progress.remove(&token);
        }
        missing
    }

    /// Records that a request will not be answered.
    pub(super) fn settle(&mut self, id: &RequestId) {
        let Some(number) = self.open.remove(id) else {
            return;
        };
        self.record_reply(number, id);
    }

    fn record_reply(&mut self, number: Number, id: &RequestId) {
        self.used = Instant::now();
        let Some(stream) = self.all.get_mut(&number) else {
            return;
        };
        let StreamKind::Replies {
            missing, progress, ..
        } = &mut stream.kind
        else {
            return;
        };
        missing.retain(|missing| missing != id);
        if missing.is_empty() {
            for token in progress.drain(..) {
                self.progress.remove(&token);
            }
            self.server_requests
                .retain(|_, server_requests| *server_requests != number);
            self.end(number);
        }
    }

    fn end(&mut self, number: Number) {
        if let Some(stream) = self.all.get_mut(&number) {
            stream.ended.get_or_insert_with(Instant::now);
            if let Some(waker) = stream.waker.take() {
                waker.wake();
            }
        }
    }

    fn push(&mut self, number: Number, json: Bytes, kind: EventKind) {
        let Some(stream) = self.all.get_mut(&number) else {
            return;
        };
        stream.last += 1;
        stream.events.push_back(Event {
            index: stream.last,
            json,
            kind,
        });
        if matches!(stream.kind, StreamKind::Notifications) && stream.events.len() > MAX_EVENTS {
            stream.events.pop_front();
        }
        if let Some(waker) = stream.waker.take() {
            waker.wake();
        }
    }

    /// Adds an error reply that did not pass through the protocol loop.
    pub(super) fn refuse(&mut self, number: Number, json: Vec<u8>) {
        let kind = EventKind::Error(ErrorCode::INVALID_REQUEST);
        self.push(number, json.into(), kind);
        let is_over = self.all.get(&number).is_some_and(
            |stream| matches!(&stream.kind, StreamKind::Replies { missing, .. } if missing.is_empty()),
        );
        if is_over {
            self.end(number);
        }
    }

    /// Adds a message of the server to the stream it belongs to.
    pub(super) fn route(&mut self, message: &ServerJsonRpcMessage, json: Vec<u8>) {
        let json = Bytes::from(json);
        let mut kind = EventKind::Reply;
        let answers = match message {
            JsonRpcMessage::Response(response) => {
                if let ServerResult::InitializeResult(result) = &response.result {
                    self.accepts_primer = result.protocol_version >= ProtocolVersion::V_2025_11_25;
                }
                Some(&response.id)
            }
            JsonRpcMessage::Error(error) => {
                kind = EventKind::Error(error.error.code);
                error.id.as_ref()
            }
            _ => None,
        };
        if let Some(id) = answers {
            if let Some(number) = self.open.remove(id) {
                self.push(number, json, kind);
                self.record_reply(number, id);
            }
            return;
        }
        let number = match message {
            JsonRpcMessage::Request(request) => {
                let origin = request.request.extensions().get::<OriginatingRequestId>();
                let number = origin.and_then(|origin| self.open.get(&origin.0)).copied();
                if let Some(number) = number {
                    self.server_requests.insert(request.id.clone(), number);
                }
                number
            }
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                ServerNotification::ProgressNotification(progress) => {
                    self.progress.get(&progress.params.progress_token).copied()
                }
                ServerNotification::CancelledNotification(cancelled) => {
                    let id = cancelled.params.request_id.as_ref();
                    id.and_then(|id| self.server_requests.remove(id))
                }
                _ => None,
            },
            _ => return,
        };
        if let Some(number) = number.or_else(|| self.notification_stream()) {
            self.push(number, json, EventKind::Other);
        }
    }

    /// Returns the stream for messages that belong to no request: the newest one that has a
    /// reader, otherwise the newest one that could be resumed.
    fn notification_stream(&self) -> Option<Number> {
        let streams = self
            .all
            .iter()
            .filter(|(_, stream)| matches!(stream.kind, StreamKind::Notifications));
        let newest = streams.max_by_key(|(number, stream)| (stream.is_read, **number));
        newest.map(|(number, _)| *number)
    }

    /// Adds a message in a session of one request, where everything goes to the same
    /// stream.
    pub(super) fn route_to(
        &mut self,
        number: Number,
        message: &ServerJsonRpcMessage,
        json: Vec<u8>,
    ) {
        match message {
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => self.route(message, json),
            _ => self.push(number, json.into(), EventKind::Other),
        }
    }

    /// Whether no request is in progress and no stream has a reader.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.all.values().all(|stream| !stream.is_read)
    }

    /// Whether all requests are answered.
    pub(super) fn is_answered(&self) -> bool {
        self.open.is_empty()
    }

    /// Time of the last use of the session.
    pub(super) fn used(&self) -> Instant {
        self.used
    }

    /// Records a use of the session.
    pub(super) fn touch(&mut self) {
        self.used = Instant::now();
    }

    /// Drops streams that the client did not come back for in time.
    pub(super) fn sweep(&mut self, resume: Duration) {
        self.all.retain(|_, stream| {
            let since = match stream.kind {
                StreamKind::Replies { .. } => stream.ended,
                StreamKind::Notifications => stream.reader_left,
            };
            stream.is_read || since.is_none_or(|since| since.elapsed() < resume)
        });
    }

    /// Ends all streams.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        let numbers: Vec<_> = self.all.keys().copied().collect();
        for number in numbers {
            self.end(number);
        }
    }
}

impl Stream {
    fn size(&self) -> usize {
        self.events.iter().map(|event| event.json.len()).sum()
    }
}

impl Event {
    fn to_wire(&self, number: Number) -> Bytes {
        let mut bytes = format!("id: {number}-{}\ndata: ", self.index).into_bytes();
        bytes.extend_from_slice(&self.json);
        bytes.extend_from_slice(b"\n\n");
        bytes.into()
    }
}
