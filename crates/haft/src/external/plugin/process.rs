//! One running plugin process: writes lines to it and dispatches its messages.

use super::dispatcher::{Caller, Dispatcher, Over, Then, lock};
use super::lines::{Arrived, Messages};
use super::pipe::{End, Pipe};
use super::trace::{Trace, TraceEvent};
use futures::FutureExt;
use haft_ops::executor::{Conversation, Exit, Finished, Running, Stream};
use serde_json::{Map, Value};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::BufReader;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{mpsc, oneshot, watch};

/// Time between the request to end and killing the process.
const GRACE: Duration = Duration::from_millis(300);

/// Time for a process that closed its output to exit by itself.
const BY_ITSELF: Duration = Duration::from_millis(500);

/// Time to read the remaining output of a process that has exited: its children may keep
/// the output open forever.
const DRAIN: Duration = Duration::from_millis(150);

/// Maximum number of messages that are read after that.
const MAX_REMAINING: usize = 4_096;

/// Time for a process without a pending call to stop writing.
const AT_REST: Duration = Duration::from_millis(100);

/// Maximum number of noise lines between two messages.
const MAX_NOISE: usize = 10_000;

/// Maximum length of the quoted end of a log, in bytes.
const LAST_WORDS: usize = 2_000;

/// A running plugin. Dropping it ends the program and its children.
pub(super) struct Process {
    pipe: Arc<Pipe>,
    /// Held while a line is written.
    writing: tokio::sync::Mutex<()>,
    dispatcher: Arc<Mutex<Dispatcher>>,
    waiting_calls: mpsc::Sender<WaitingCall>,
    running: Running,
    trace: Trace,
    /// Whether no new call may use it, although it has not ended yet.
    is_retired: AtomicBool,
}

/// A call that wants to wait for its answer, once all earlier output has been handled.
struct WaitingCall {
    call_id: String,
    caller: Caller,
    is_in: oneshot::Sender<()>,
}

impl Process {
    /// Takes over a program that has just started. Until the handshake is complete, all
    /// messages go to the returned receiver.
    pub(super) fn new(
        talk: Conversation,
        trace: &Trace,
    ) -> (Self, mpsc::Receiver<Map<String, Value>>) {
        // A capacity of one is enough, because the receiver takes each message at once.
        let (introduction, introduced) = mpsc::channel(1);
        let (waiting_calls, coming) = mpsc::channel(1);
        let pipe = Arc::new(Pipe::new(talk.input));
        trace.started(&pipe, &talk.running);
        let dispatcher = Dispatcher::new(introduction, &pipe, trace.clone());
        let dispatcher = Arc::new(Mutex::new(dispatcher));
        let reading = Reading {
            messages: Messages::new(
                BufReader::with_capacity(64 << 10, talk.output),
                trace.clone(),
            ),
            trace: trace.clone(),
            dispatcher: Arc::clone(&dispatcher),
            noise: 0,
        };
        tokio::spawn(reading.run(coming, talk.running.end()));
        let process = Self {
            pipe,
            writing: tokio::sync::Mutex::default(),
            dispatcher,
            waiting_calls,
            running: talk.running,
            trace: trace.clone(),
            is_retired: AtomicBool::new(false),
        };
        (process, introduced)
    }

    /// Ends the handshake: from now on messages go to calls. In version 2 of the protocol,
    /// each message names its call.
    pub(super) fn introduced(&self, is_second: bool) {
        let mut dispatcher = lock(&self.dispatcher);
        dispatcher.introduction = None;
        dispatcher.names_calls = is_second;
    }

    /// Returns why no more messages will come, if so.
    pub(super) fn over(&self) -> Option<Over> {
        lock(&self.dispatcher).over
    }

    /// Accepts no more calls, because an answer may come late.
    pub(super) fn retire(&self) {
        self.is_retired.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_retired(&self) -> bool {
        let dispatcher = lock(&self.dispatcher);
        self.is_retired.load(Ordering::SeqCst)
            || dispatcher.is_out_of_step
            || dispatcher.over == Some(Over::Left)
    }

    /// Writes one line and returns its end position.
    pub(super) async fn say(&self, message: &Value) -> Option<End> {
        self.write(message, |_| ()).await
    }

    /// Returns the start of the first line that was not a message.
    pub(super) fn noise(&self) -> Option<String> {
        lock(&self.dispatcher).noise.clone()
    }

    /// Writes the line of a call and returns its end position.
    pub(super) async fn ask(&self, call: &Value, call_id: &str) -> Option<End> {
        self.write(call, |end| lock(&self.dispatcher).writes(call_id, end))
            .await
    }

    async fn write(&self, message: &Value, before: impl FnOnce(End)) -> Option<End> {
        let mut line = message.to_string();
        let _turn = self.writing.lock().await;
        self.trace.emit(|| TraceEvent::Sent(&line));
        line.push('\n');
        let end = self.pipe.end_of(&line);
        before(end);
        self.pipe.write(&line).await?;
        Some(end)
    }

    /// Whether the program has read its input up to this position.
    pub(super) fn has_read(&self, end: End) -> bool {
        self.pipe.has_read(end)
    }

    /// Registers a call that waits for its answer.
    pub(super) fn expect(&self, call_id: &str, caller: Caller) {
        lock(&self.dispatcher).expect(call_id, caller);
    }

    /// Registers a call after all earlier output has been handled, so that none of it is
    /// taken for the answer. Returns false if the plugin does not stop writing, or has sent
    /// more than it was asked for.
    pub(super) async fn expect_at_rest(&self, call_id: &str, caller: Caller) -> bool {
        let (is_in, came_in) = oneshot::channel();
        let waiting = WaitingCall {
            call_id: call_id.to_owned(),
            caller,
            is_in,
        };
        if let Err(mpsc::error::SendError(waiting)) = self.waiting_calls.send(waiting).await {
            // The reader has ended; the call learns that from the dispatcher.
            self.expect(call_id, waiting.caller);
            return true;
        }
        let came_in = tokio::time::timeout(AT_REST, came_in).await;
        // If the reader ended in the meantime, the call learns that as well.
        came_in.is_ok() && !lock(&self.dispatcher).is_out_of_step
    }

    /// Removes a call. Returns whether it was still pending.
    pub(super) fn forget(&self, call_id: &str) -> bool {
        lock(&self.dispatcher).calls.remove(call_id).is_some()
    }

    /// Marks a call as cancelled, which the plugin does not know yet.
    pub(super) fn give_up(&self, call_id: &str) {
        lock(&self.dispatcher).give_up(call_id);
    }

    /// Whether no calls are pending.
    pub(super) fn is_idle(&self) -> bool {
        lock(&self.dispatcher).calls.is_empty()
    }

    /// Waits until the plugin has answered all cancelled calls.
    pub(super) async fn settled(&self) {
        self.until(|dispatcher| !dispatcher.is_doubtful()).await;
    }

    /// Waits a short time for the end of its output.
    pub(super) async fn closed(&self) -> Option<Over> {
        let closed = self.until(|dispatcher| dispatcher.over.is_some());
        let _ = tokio::time::timeout(BY_ITSELF, closed).await;
        self.over()
    }

    async fn until(&self, is_so: impl Fn(&Dispatcher) -> bool) {
        let changed = lock(&self.dispatcher).changed();
        loop {
            let mut change = pin!(changed.notified());
            change.as_mut().enable();
            if is_so(&lock(&self.dispatcher)) {
                return;
            }
            change.await;
        }
    }

    /// Closes its input and waits a short time for the end of its output.
    pub(super) async fn hang_up(&self) {
        self.pipe.close();
        self.trace.emit(|| TraceEvent::InputClosed);
        self.closed().await;
    }

    /// Ends the process and everything it started.
    pub(super) async fn end(&self) {
        self.running.kill(GRACE).await;
    }

    /// Ends the process and everything it started. Returns its exit status, if it ended by
    /// itself, and the end of its log.
    pub(super) async fn last_words(&self, over: Option<Over>) -> (Option<Exit>, String) {
        let mut status = None;
        if over == Some(Over::Ended) {
            let mut end = self.running.end();
            let ended = tokio::time::timeout(BY_ITSELF, end.wait_for(Option::is_some)).await;
            if let Ok(Ok(ended)) = ended {
                let ended = ended
                    .as_ref()
                    .and_then(|ended| ended.as_ref().as_ref().ok());
                status = ended.map(|finished| finished.status);
            }
        }
        self.end().await;
        let log = self.running.log(Stream::Error);
        let words = log
            .and_then(|log| log.tail(LAST_WORDS).ok())
            .unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        let plain = words
            .chars()
            .filter(|c| !c.is_control() || *c == '\n' || *c == '\t');
        (status, plain.collect::<String>().trim().to_owned())
    }
}

type Ending = watch::Receiver<Option<Arc<haft_ops::Result<Finished>>>>;

/// Reads and dispatches the plugin's messages.
struct Reading {
    messages: Messages<BufReader<Receiver>>,
    dispatcher: Arc<Mutex<Dispatcher>>,
    noise: usize,
    trace: Trace,
}

impl Reading {
    async fn run(mut self, mut coming: mpsc::Receiver<WaitingCall>, mut end: Ending) {
        let gone = async move {
            let _ = end.wait_for(Option::is_some).await;
            tokio::time::sleep(DRAIN).await;
        };
        let mut gone = pin!(gone);
        let mut waiting = None;
        let over = loop {
            waiting = waiting.and_then(|waiting| self.admit(waiting));
            tokio::select! {
                biased;
                () = &mut gone => break self.rest(),
                arrived = self.messages.next() => {
                    if let Some(over) = self.take(arrived).await {
                        break over;
                    }
                }
                Some(next) = coming.recv(), if waiting.is_none() => waiting = Some(next),
            }
            // Yields to other tasks even if the plugin never stops writing.
            tokio::task::consume_budget().await;
        };
        lock(&self.dispatcher).close(over);
        // Tells the last calls that no answer will come.
        coming.close();
        while let Some(last) = waiting.take().or_else(|| coming.try_recv().ok()) {
            self.admit(last);
        }
    }

    /// Registers a waiting call, unless there is still output to handle.
    fn admit(&self, waiting: WaitingCall) -> Option<WaitingCall> {
        let mut dispatcher = lock(&self.dispatcher);
        let is_at_rest = dispatcher.over.is_some()
            || self.messages.at_rest().is_some_and(|reader| {
                let left = haft_ops::executor::unread(reader.get_ref()).unwrap_or(0);
                reader.buffer().is_empty() && left == 0
            });
        if waiting.is_in.is_closed() {
            return None;
        }
        if !is_at_rest {
            return Some(waiting);
        }
        dispatcher.expect(&waiting.call_id, waiting.caller);
        let _ = waiting.is_in.send(());
        None
    }

    /// Delivers a message, waiting until the receiver has room. Returns why no more
    /// messages count, if so.
    async fn take(&mut self, arrived: Option<Arrived>) -> Option<Over> {
        match self.sort(arrived) {
            Ok(Then::Nothing) => {}
            Ok(Then::Close(over)) => return Some(over),
            Ok(Then::Introduce(introduction, message)) => {
                let _ = introduction.send(message).await;
            }
            Ok(Then::ToolRequest(progress, request)) => progress.request(request).await,
            Err(over) => return Some(over),
        }
        None
    }

    /// Handles the output that is left when the program has ended.
    fn rest(&mut self) -> Over {
        for _ in 0..MAX_REMAINING {
            let Some(arrived) = self.messages.next().now_or_never() else {
                break;
            };
            match self.sort(arrived) {
                Ok(Then::Introduce(introduction, message)) => {
                    let _ = introduction.try_send(message);
                }
                Ok(Then::Close(over)) => return over,
                // The call has ended, so its request is not answered.
                Ok(Then::ToolRequest(..) | Then::Nothing) => {}
                Err(over) => return over,
            }
        }
        Over::Ended
    }

    fn sort(&mut self, arrived: Option<Arrived>) -> Result<Then, Over> {
        let message = match arrived {
            None => return Err(Over::Ended),
            Some(Arrived::TooLong) => return Err(Over::Babbling),
            Some(Arrived::Noise(line)) => {
                self.noise += 1;
                tracing::info!(line, "a plugin wrote a line that is not a message");
                lock(&self.dispatcher).noise.get_or_insert(line);
                if self.noise > MAX_NOISE {
                    self.trace.emit(|| TraceEvent::TooMuchOutput);
                    return Err(Over::Babbling);
                }
                return Ok(Then::Nothing);
            }
            Some(Arrived::Refused { call_id, why }) => unread(call_id, why),
            Some(Arrived::Message(message)) => {
                self.noise = 0;
                message
            }
        };
        Ok(lock(&self.dispatcher).deliver(message))
    }
}

/// Returns a message that replaces one that is too costly to parse, so that no call waits
/// for it.
fn unread(call_id: Option<String>, why: &str) -> Map<String, Value> {
    let message = format!("it wrote a message with {why}, which is too much");
    let fields = [
        ("type", Some("invalid".to_owned())),
        ("message", Some(message)),
        ("call_id", call_id),
    ];
    let fields = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    fields.collect()
}
