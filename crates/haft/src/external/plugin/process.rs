//! One running plugin: a line in, messages out, and who waits for which.

use super::lines::{Arrived, DEEPEST, Messages};
use super::message::{self, Outcome};
use crate::Content;
use haft_ops::executor::{Conversation, Exit, Running, Stream};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::unix::pipe::Sender;
use tokio::sync::{mpsc, oneshot};

/// How long a plugin has between the request to end and its death.
const GRACE: Duration = Duration::from_millis(300);

/// How long one that has closed its output has to end by itself.
const BY_ITSELF: Duration = Duration::from_millis(500);

/// How much noise is borne between two messages.
const MOST_NOISE: usize = 10_000;

/// How much of the last words of a plugin is told.
const LAST_WORDS: usize = 2_000;

/// A running plugin. Dropping it ends the program and its children.
pub(super) struct Process {
    input: tokio::sync::Mutex<Input>,
    desk: Arc<Mutex<Desk>>,
    running: Running,
    /// Nobody may use it any more, although it has not ended yet.
    is_retired: AtomicBool,
}

/// Where lines for the plugin go.
struct Input {
    pipe: Sender,
    /// How many bytes went in so far.
    written: u64,
}

/// Where in the input a line ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct End(u64);

/// Who waits for what.
#[derive(Default)]
struct Desk {
    calls: HashMap<String, Caller>,
    /// Who waits for the introduction, and gets every message until then.
    introduction: Option<mpsc::UnboundedSender<Map<String, Value>>>,
    over: Option<Over>,
}

/// Why nothing more comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// It closed its output, as by ending.
    Ended,
    /// It wrote a line without end, or nothing but noise.
    Babbling,
}

/// Somebody who waits for the answer to a call.
pub(super) struct Caller {
    pub(super) answer: oneshot::Sender<Result<Outcome, Over>>,
    pub(super) meanwhile: mpsc::UnboundedSender<Meanwhile>,
}

/// What comes before an answer.
#[derive(Debug)]
pub(super) enum Meanwhile {
    /// How far it is.
    Update(Vec<Content>),
    /// It wants another tool to be called for it.
    HostCall {
        id: Value,
        name: String,
        params: Value,
    },
}

impl Process {
    /// Takes over a program that has just begun, and gives every message to who
    /// asked for its introduction.
    pub(super) fn new(talk: Conversation) -> (Self, mpsc::UnboundedReceiver<Map<String, Value>>) {
        let (introduction, introduced) = mpsc::unbounded_channel();
        let desk = Arc::new(Mutex::new(Desk {
            introduction: Some(introduction),
            ..Desk::default()
        }));
        let reading = Arc::clone(&desk);
        let output = BufReader::with_capacity(64 << 10, talk.output);
        tokio::spawn(async move {
            let mut messages = Messages::new(output);
            let mut noise = 0;
            let over = loop {
                match messages.next().await {
                    None => break Over::Ended,
                    Some(Arrived::TooLong) => break Over::Babbling,
                    Some(Arrived::Noise(line)) => {
                        noise += 1;
                        tracing::info!(line, "a plugin wrote what is no message");
                        if noise > MOST_NOISE {
                            break Over::Babbling;
                        }
                    }
                    Some(Arrived::TooDeep) => lock(&reading).deliver(too_deep()),
                    Some(Arrived::Message(message)) => {
                        noise = 0;
                        lock(&reading).deliver(message);
                    }
                }
            };
            lock(&reading).close(over);
        });
        let process = Self {
            input: tokio::sync::Mutex::new(Input {
                pipe: talk.input,
                written: 0,
            }),
            desk,
            running: talk.running,
            is_retired: AtomicBool::new(false),
        };
        (process, introduced)
    }

    /// The introduction is over: from now on messages are for callers.
    pub(super) fn introduced(&self) {
        lock(&self.desk).introduction = None;
    }

    /// Whether nothing more will come.
    pub(super) fn over(&self) -> Option<Over> {
        lock(&self.desk).over
    }

    /// From now on nobody uses it: an answer may come late.
    pub(super) fn retire(&self) {
        self.is_retired.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::SeqCst)
    }

    /// Writes one line, and says where it ends. What could not be written was read
    /// by nobody, as a line is only whole with its end.
    pub(super) async fn say(&self, message: &Value) -> Option<End> {
        let mut line = message.to_string();
        line.push('\n');
        let mut input = self.input.lock().await;
        input.pipe.write_all(line.as_bytes()).await.ok()?;
        input.written += line.len() as u64;
        Some(End(input.written))
    }

    /// Whether the program has taken a whole line out of its input. One that has
    /// ended may have left it there, and then it did nothing of what the line asks.
    pub(super) async fn has_read(&self, end: End) -> bool {
        let input = self.input.lock().await;
        let left = haft_ops::executor::unread(&input.pipe).unwrap_or(0);
        input.written.saturating_sub(left) >= end.0
    }

    /// Somebody waits for the answer to a call from now on.
    pub(super) fn expect(&self, call_id: &str, caller: Caller) {
        let mut desk = lock(&self.desk);
        match desk.over {
            None => {
                desk.calls.insert(call_id.to_owned(), caller);
            }
            Some(over) => {
                let _ = caller.answer.send(Err(over));
            }
        }
    }

    /// Nobody waits any more. Says whether the answer was still to come.
    pub(super) fn forget(&self, call_id: &str) -> bool {
        lock(&self.desk).calls.remove(call_id).is_some()
    }

    /// Ends it and all it started.
    pub(super) async fn end(&self) {
        self.running.kill(GRACE).await;
    }

    /// How it ended, if it did so by itself, and the last it said to the log. After
    /// that it and all it started are ended in any case.
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

/// What stands for a message that is not read, so that nobody waits for it.
fn too_deep() -> Map<String, Value> {
    let message = format!("it wrote a message with more than {DEEPEST} levels");
    let fields = [("type", "invalid".to_owned()), ("message", message)];
    let fields = fields.map(|(name, value)| (name.to_owned(), value.into()));
    fields.into_iter().collect()
}

fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Desk {
    fn deliver(&mut self, message: Map<String, Value>) {
        if let Some(introduction) = &self.introduction {
            let _ = introduction.send(message);
            return;
        }
        let call_id = message::call_id(&message);
        match message.get("type").and_then(Value::as_str) {
            Some("update") => {
                let content = message
                    .get("content")
                    .map(message::blocks)
                    .unwrap_or_default();
                self.tell(call_id.as_deref(), Meanwhile::Update(content));
            }
            Some("host_call") => {
                let text = |name: &str| message.get(name).and_then(Value::as_str);
                let asked = Meanwhile::HostCall {
                    id: message.get("id").cloned().unwrap_or_default(),
                    name: text("name").unwrap_or_default().to_owned(),
                    params: message.get("params").cloned().unwrap_or_default(),
                };
                self.tell(call_id.as_deref(), asked);
            }
            _ => self.answer(call_id, &message),
        }
    }

    fn tell(&self, call_id: Option<&str>, what: Meanwhile) {
        if let Some(caller) = call_id.and_then(|id| self.calls.get(id)) {
            let _ = caller.meanwhile.send(what);
        }
    }

    /// An answer without an id can only be for the one call there is. One with
    /// another id is late, and for nobody.
    fn answer(&mut self, call_id: Option<String>, message: &Map<String, Value>) {
        let Some(outcome) = message::outcome(message) else {
            tracing::info!("a plugin wrote a message that is no answer");
            return;
        };
        let id = match call_id {
            Some(id) => Some(id),
            None if self.calls.len() == 1 => self.calls.keys().next().cloned(),
            None => None,
        };
        match id.and_then(|id| self.calls.remove(&id)) {
            Some(caller) => {
                let _ = caller.answer.send(Ok(outcome));
            }
            None => tracing::info!("a plugin answered a call that nobody waits for"),
        }
    }

    fn close(&mut self, over: Over) {
        self.over = Some(over);
        self.introduction = None;
        for (_, caller) in self.calls.drain() {
            let _ = caller.answer.send(Err(over));
        }
    }
}
