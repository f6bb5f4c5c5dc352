//! The streams of a session: what was said on each, until a client has had the time to
//! come back for it.

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

/// After how many milliseconds a client that lost its stream should come back: well
/// before what it waits for is given up.
const BACK: u32 = 500;

/// How many events are kept of a stream that answers nothing.
const KEPT: usize = 64;
/// How much a session holds of what was said. What was read gives way first; while the
/// rest is more, nothing new is begun.
const HELD: usize = 8 << 20;
/// How many such streams a session has; the oldest gives way.
const STANDING: usize = 8;

/// Names a stream of a session.
pub(super) type Number = u64;

/// Which of the readers a stream had: only the newest counts.
pub(super) type Generation = u64;

/// All streams of one session.
pub(super) struct Streams {
    all: HashMap<Number, Stream>,
    last: Number,
    /// Requests of the client that are not answered, and where the answer goes.
    open: HashMap<RequestId, Number>,
    /// The progress of which calls goes where.
    progress: HashMap<ProgressToken, Number>,
    /// Where the server asked something itself.
    asked: HashMap<RequestId, Number>,
    /// Whether the client understands an event that says nothing.
    primes: bool,
    is_closed: bool,
    used: Instant,
}

struct Stream {
    kind: Kind,
    events: VecDeque<Event>,
    last: u64,
    /// The last event that somebody read.
    seen: u64,
    generation: Generation,
    is_read: bool,
    waker: Option<Waker>,
    /// Since when there is nothing more to come.
    ended: Option<Instant>,
    /// Since when nobody reads it.
    left: Option<Instant>,
}

enum Kind {
    /// Answers these requests.
    Answering {
        missing: Vec<RequestId>,
        progress: Vec<ProgressToken>,
        is_batch: bool,
    },
    /// For whatever the server says by itself.
    Standing,
}

struct Event {
    index: u64,
    json: Bytes,
    what: What,
}

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Answer,
    /// An answer too.
    Error(ErrorCode),
    /// Something else.
    Aside,
}

/// All that there is to say on a stream.
pub(super) struct Whole {
    pub(super) json: Bytes,
    /// What kind of error it is, if it is one.
    pub(super) error: Option<ErrorCode>,
}

impl Streams {
    pub(super) fn new() -> Self {
        Self {
            all: HashMap::new(),
            last: 0,
            open: HashMap::new(),
            progress: HashMap::new(),
            asked: HashMap::new(),
            primes: false,
            is_closed: false,
            used: Instant::now(),
        }
    }

    fn add(&mut self, kind: Kind) -> (Number, Generation) {
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
            left: None,
        };
        self.all.insert(self.last, stream);
        (self.last, 1)
    }

    /// A stream for the answers of these messages. The ids of those that cannot be taken
    /// on, because one of that id is under way, come back.
    pub(super) fn answering<'a>(
        &mut self,
        messages: impl Iterator<Item = &'a ClientJsonRpcMessage>,
        is_batch: bool,
    ) -> (Number, Generation, Vec<RequestId>) {
        let (number, generation) = self.add(Kind::Answering {
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
            kind: Kind::Answering {
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

    /// Whether something new may be begun: not while too much waits to be read.
    pub(super) fn have_room(&mut self) -> bool {
        let mut held: usize = self.all.values().map(Stream::held).sum();
        while held > HELD {
            let over = self.all.iter().filter(|(_, stream)| {
                stream.ended.is_some() && (stream.seen == stream.last || !stream.is_read)
            });
            let Some(oldest) = over.map(|(number, _)| *number).min() else {
                return false;
            };
            held -= self.all.remove(&oldest).map_or(0, |stream| stream.held());
        }
        true
    }

    /// A stream for what the server says by itself.
    pub(super) fn standing(&mut self) -> (Number, Generation) {
        let is_standing = |stream: &&Number| {
            let stream = self.all.get(stream);
            stream.is_some_and(|stream| matches!(stream.kind, Kind::Standing))
        };
        let mut standing: Vec<_> = self.all.keys().filter(is_standing).copied().collect();
        standing.sort_unstable();
        let surplus = (standing.len() + 1).saturating_sub(STANDING);
        for number in standing.into_iter().take(surplus) {
            self.end(number);
            self.all.remove(&number);
        }
        self.add(Kind::Standing)
    }

    /// Takes up a stream where somebody left it.
    pub(super) fn resumed(&mut self, number: Number, after: u64) -> Option<Generation> {
        self.used = Instant::now();
        let stream = self.all.get_mut(&number)?;
        let oldest = stream
            .events
            .front()
            .map_or(stream.last + 1, |event| event.index);
        // What is not kept any more cannot be made up for.
        if after > stream.last || after + 1 < oldest {
            return None;
        }
        stream.generation += 1;
        stream.is_read = true;
        stream.left = None;
        // Whoever read it until now has seen the last of it.
        if let Some(waker) = stream.waker.take() {
            waker.wake();
        }
        Some(stream.generation)
    }

    /// The next event after one, as it is written; nothing when there is no more to come.
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
            return Poll::Ready(Some(event.written(number)));
        }
        if stream.ended.is_some() {
            return Poll::Ready(None);
        }
        stream.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Whether there is something to read on a stream, or nothing more to come. The
    /// answers of a batch are read together, if there is nothing else to read.
    pub(super) fn poll_ready(&mut self, number: Number, cx: &Context<'_>) -> Poll<()> {
        let Some(stream) = self.all.get_mut(&number) else {
            return Poll::Ready(());
        };
        let is_ready = match stream.kind {
            _ if stream.ended.is_some() => true,
            Kind::Answering { is_batch: true, .. } => {
                stream.events.iter().any(|event| event.what == What::Aside)
            }
            _ => !stream.events.is_empty(),
        };
        if is_ready {
            return Poll::Ready(());
        }
        stream.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The answers of a stream, if they are all there and there was nothing else. The
    /// stream is over then.
    pub(super) fn whole(&mut self, number: Number) -> Option<Whole> {
        let stream = self.all.get(&number)?;
        stream.ended?;
        let Kind::Answering { is_batch, .. } = &stream.kind else {
            return None;
        };
        if stream.events.is_empty() || stream.events.iter().any(|event| event.what == What::Aside) {
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
            if let What::Error(code) = event.what {
                error = Some(code);
            }
            event.json.clone()
        };
        self.all.remove(&number);
        Some(Whole { json, error })
    }

    /// What an event is that says nothing, but where the stream can be taken up.
    pub(super) fn primer(&self, number: Number) -> Bytes {
        // Older clients take an event without data for a message that is none.
        let data = if self.primes { "data: \n" } else { "" };
        Bytes::from(format!("id: {number}-0\nretry: {BACK}\n{data}\n"))
    }

    /// Its reader is gone. Says whether somebody should look later if one has come back.
    pub(super) fn left(&mut self, number: Number, generation: Generation) -> bool {
        self.used = Instant::now();
        match self.all.get_mut(&number) {
            Some(stream) if stream.generation == generation => {
                stream.is_read = false;
                stream.left = Some(Instant::now());
                stream.ended.is_none() && matches!(stream.kind, Kind::Answering { .. })
            }
            _ => false,
        }
    }

    /// The requests of a stream to which nobody came back. It is gone then.
    pub(super) fn given_up(&mut self, number: Number, generation: Generation) -> Vec<RequestId> {
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
        let Kind::Answering {
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

    /// A request will not be answered.
    pub(super) fn settle(&mut self, id: &RequestId) {
        let Some(number) = self.open.remove(id) else {
            return;
        };
        self.answered(number, id);
    }

    fn answered(&mut self, number: Number, id: &RequestId) {
        self.used = Instant::now();
        let Some(stream) = self.all.get_mut(&number) else {
            return;
        };
        let Kind::Answering {
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
            self.asked.retain(|_, asked| *asked != number);
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

    fn push(&mut self, number: Number, json: Bytes, what: What) {
        let Some(stream) = self.all.get_mut(&number) else {
            return;
        };
        stream.last += 1;
        stream.events.push_back(Event {
            index: stream.last,
            json,
            what,
        });
        if matches!(stream.kind, Kind::Standing) && stream.events.len() > KEPT {
            stream.events.pop_front();
        }
        if let Some(waker) = stream.waker.take() {
            waker.wake();
        }
    }

    /// An answer that needs no protocol loop.
    pub(super) fn refuse(&mut self, number: Number, json: Vec<u8>) {
        let what = What::Error(ErrorCode::INVALID_REQUEST);
        self.push(number, json.into(), what);
        let is_over = self.all.get(&number).is_some_and(
            |stream| matches!(&stream.kind, Kind::Answering { missing, .. } if missing.is_empty()),
        );
        if is_over {
            self.end(number);
        }
    }

    /// Puts what the server says where it belongs.
    pub(super) fn route(&mut self, message: &ServerJsonRpcMessage, json: Vec<u8>) {
        let json = Bytes::from(json);
        let mut what = What::Answer;
        let answers = match message {
            JsonRpcMessage::Response(response) => {
                if let ServerResult::InitializeResult(result) = &response.result {
                    self.primes = result.protocol_version >= ProtocolVersion::V_2025_11_25;
                }
                Some(&response.id)
            }
            JsonRpcMessage::Error(error) => {
                what = What::Error(error.error.code);
                error.id.as_ref()
            }
            _ => None,
        };
        if let Some(id) = answers {
            if let Some(number) = self.open.remove(id) {
                self.push(number, json, what);
                self.answered(number, id);
            }
            return;
        }
        let number = match message {
            JsonRpcMessage::Request(request) => {
                let origin = request.request.extensions().get::<OriginatingRequestId>();
                let number = origin.and_then(|origin| self.open.get(&origin.0)).copied();
                if let Some(number) = number {
                    self.asked.insert(request.id.clone(), number);
                }
                number
            }
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                ServerNotification::ProgressNotification(progress) => {
                    self.progress.get(&progress.params.progress_token).copied()
                }
                ServerNotification::CancelledNotification(cancelled) => {
                    let id = cancelled.params.request_id.as_ref();
                    id.and_then(|id| self.asked.remove(id))
                }
                _ => None,
            },
            _ => return,
        };
        if let Some(number) = number.or_else(|| self.by_itself()) {
            self.push(number, json, What::Aside);
        }
    }

    /// Where the server says something by itself: on the newest stream for that which is
    /// read, or which could be again. Where there is but one stream, it is the only place.
    fn by_itself(&self) -> Option<Number> {
        let standing = self
            .all
            .iter()
            .filter(|(_, stream)| matches!(stream.kind, Kind::Standing));
        let newest = standing.max_by_key(|(number, stream)| (stream.is_read, **number));
        newest.map(|(number, _)| *number)
    }

    /// For a session of one request: all that is said goes to it.
    pub(super) fn route_to(
        &mut self,
        number: Number,
        message: &ServerJsonRpcMessage,
        json: Vec<u8>,
    ) {
        match message {
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => self.route(message, json),
            _ => self.push(number, json.into(), What::Aside),
        }
    }

    /// Whether nothing is under way and nobody reads.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.all.values().all(|stream| !stream.is_read)
    }

    /// Whether no request is unanswered.
    pub(super) fn is_answered(&self) -> bool {
        self.open.is_empty()
    }

    /// When it was last used.
    pub(super) fn used(&self) -> Instant {
        self.used
    }

    /// Somebody asked something.
    pub(super) fn touch(&mut self) {
        self.used = Instant::now();
    }

    /// Lets go of what nobody has come back for.
    pub(super) fn sweep(&mut self, resume: Duration) {
        self.all.retain(|_, stream| {
            let since = match stream.kind {
                Kind::Answering { .. } => stream.ended,
                Kind::Standing => stream.left,
            };
            stream.is_read || since.is_none_or(|since| since.elapsed() < resume)
        });
    }

    /// Nothing more will be said.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        let numbers: Vec<_> = self.all.keys().copied().collect();
        for number in numbers {
            self.end(number);
        }
    }
}

impl Stream {
    fn held(&self) -> usize {
        self.events.iter().map(|event| event.json.len()).sum()
    }
}

impl Event {
    fn written(&self, number: Number) -> Bytes {
        let mut written = format!("id: {number}-{}\ndata: ", self.index).into_bytes();
        written.extend_from_slice(&self.json);
        written.extend_from_slice(b"\n\n");
        written.into()
    }
}
