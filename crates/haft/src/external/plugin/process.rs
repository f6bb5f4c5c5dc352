//! One running plugin: a line in, messages out.

use super::desk::{Caller, Desk, Over, Then, lock};
use super::lines::{Arrived, Messages};
use super::pipe::{End, Pipe};
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

/// How long a plugin has between the request to end and its death.
const GRACE: Duration = Duration::from_millis(300);

/// How long one that has closed its output has to end by itself.
const BY_ITSELF: Duration = Duration::from_millis(500);

/// How long what one has written is waited for that has ended: its children may hold
/// its output open for ever.
const DRAIN: Duration = Duration::from_millis(150);

/// How many messages are then taken that are there already.
const MOST_LEFT: usize = 4_096;

/// How long one that is asked nothing may go on to write.
const AT_REST: Duration = Duration::from_millis(100);

/// How much noise is borne between two messages.
const MOST_NOISE: usize = 10_000;

/// How much of the last words of a plugin is told.
const LAST_WORDS: usize = 2_000;

/// A running plugin. Dropping it ends the program and its children.
pub(super) struct Process {
    pipe: Arc<Pipe>,
    /// One line at a time.
    writing: tokio::sync::Mutex<()>,
    desk: Arc<Mutex<Desk>>,
    newcomers: mpsc::Sender<Newcomer>,
    running: Running,
    /// Nobody may use it any more, although it has not ended yet.
    is_retired: AtomicBool,
}

/// Somebody who wants to wait for an answer, once nothing of those before is left.
struct Newcomer {
    call_id: String,
    caller: Caller,
    is_in: oneshot::Sender<()>,
}

impl Process {
    /// Takes over a program that has just begun, and gives every message to who
    /// asked for its introduction.
    pub(super) fn new(talk: Conversation) -> (Self, mpsc::Receiver<Map<String, Value>>) {
        // One is enough: who waits for it takes each at once.
        let (introduction, introduced) = mpsc::channel(1);
        let (newcomers, coming) = mpsc::channel(1);
        let pipe = Arc::new(Pipe::new(talk.input));
        let desk = Arc::new(Mutex::new(Desk::new(introduction, &pipe)));
        let reading = Reading {
            messages: Messages::new(BufReader::with_capacity(64 << 10, talk.output)),
            desk: Arc::clone(&desk),
            noise: 0,
        };
        tokio::spawn(reading.run(coming, talk.running.end()));
        let process = Self {
            pipe,
            writing: tokio::sync::Mutex::default(),
            desk,
            newcomers,
            running: talk.running,
            is_retired: AtomicBool::new(false),
        };
        (process, introduced)
    }

    /// The introduction is over: from now on messages are for callers. In the second
    /// protocol each says for which.
    pub(super) fn introduced(&self, is_second: bool) {
        let mut desk = lock(&self.desk);
        desk.introduction = None;
        desk.names_calls = is_second;
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
        let desk = lock(&self.desk);
        self.is_retired.load(Ordering::SeqCst)
            || desk.is_out_of_step
            || desk.over == Some(Over::Left)
    }

    /// Writes one line, and says where it ends.
    pub(super) async fn say(&self, message: &Value) -> Option<End> {
        self.write(message, |_| ()).await
    }

    /// The beginning of the first line that was not a message.
    pub(super) fn noise(&self) -> Option<String> {
        lock(&self.desk).noise.clone()
    }

    /// Writes the line of a call, and says where it ends.
    pub(super) async fn ask(&self, call: &Value, call_id: &str) -> Option<End> {
        self.write(call, |end| lock(&self.desk).writes(call_id, end))
            .await
    }

    async fn write(&self, message: &Value, before: impl FnOnce(End)) -> Option<End> {
        let mut line = message.to_string();
        line.push('\n');
        let _turn = self.writing.lock().await;
        let end = self.pipe.end_of(&line);
        before(end);
        self.pipe.write(&line).await?;
        Some(end)
    }

    /// Whether the program has taken a whole line out of its input.
    pub(super) fn has_read(&self, end: End) -> bool {
        self.pipe.has_read(end)
    }

    /// Somebody waits for the answer to a call from now on.
    pub(super) fn expect(&self, call_id: &str, caller: Caller) {
        lock(&self.desk).expect(call_id, caller);
    }

    /// The same once all it wrote before has been looked at, so that none of that is
    /// taken for the answer. False when it does not come to rest, or said more than it
    /// was asked.
    pub(super) async fn expect_at_rest(&self, call_id: &str, caller: Caller) -> bool {
        let (is_in, came_in) = oneshot::channel();
        let newcomer = Newcomer {
            call_id: call_id.to_owned(),
            caller,
            is_in,
        };
        if let Err(mpsc::error::SendError(newcomer)) = self.newcomers.send(newcomer).await {
            // Nobody reads any more: it says so.
            self.expect(call_id, newcomer.caller);
            return true;
        }
        let came_in = tokio::time::timeout(AT_REST, came_in).await;
        // The end of it says so too, by the answer.
        came_in.is_ok() && !lock(&self.desk).is_out_of_step
    }

    /// Nobody waits any more. Says whether the answer was still to come.
    pub(super) fn forget(&self, call_id: &str) -> bool {
        lock(&self.desk).calls.remove(call_id).is_some()
    }

    /// Nobody waits for a call any more, which the plugin is still to be told.
    pub(super) fn give_up(&self, call_id: &str) {
        lock(&self.desk).give_up(call_id);
    }

    /// Whether nobody waits for anything of it.
    pub(super) fn is_idle(&self) -> bool {
        lock(&self.desk).calls.is_empty()
    }

    /// Waits until it has answered what nobody waits for.
    pub(super) async fn settled(&self) {
        self.until(|desk| !desk.is_doubtful()).await;
    }

    /// Waits for the end of its output, and not for long.
    pub(super) async fn closed(&self) -> Option<Over> {
        let closed = self.until(|desk| desk.over.is_some());
        let _ = tokio::time::timeout(BY_ITSELF, closed).await;
        self.over()
    }

    async fn until(&self, is_so: impl Fn(&Desk) -> bool) {
        let changed = lock(&self.desk).changed();
        loop {
            let mut change = pin!(changed.notified());
            change.as_mut().enable();
            if is_so(&lock(&self.desk)) {
                return;
            }
            change.await;
        }
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

type Ending = watch::Receiver<Option<Arc<haft_ops::Result<Finished>>>>;

/// Who reads what the plugin writes.
struct Reading {
    messages: Messages<BufReader<Receiver>>,
    desk: Arc<Mutex<Desk>>,
    noise: usize,
}

impl Reading {
    async fn run(mut self, mut coming: mpsc::Receiver<Newcomer>, mut end: Ending) {
        let gone = async move {
            let _ = end.wait_for(Option::is_some).await;
            tokio::time::sleep(DRAIN).await;
        };
        let mut gone = pin!(gone);
        let mut newcomer = None;
        let over = loop {
            newcomer = newcomer.and_then(|newcomer| self.let_in(newcomer));
            tokio::select! {
                biased;
                () = &mut gone => break self.rest(),
                arrived = self.messages.next() => {
                    if let Some(over) = self.take(arrived).await {
                        break over;
                    }
                }
                Some(next) = coming.recv(), if newcomer.is_none() => newcomer = Some(next),
            }
            // A flood keeps nobody else from running.
            tokio::task::consume_budget().await;
        };
        lock(&self.desk).close(over);
        // Who came last is told that nobody will answer.
        coming.close();
        while let Some(last) = newcomer.take().or_else(|| coming.try_recv().ok()) {
            self.let_in(last);
        }
    }

    /// Lets somebody wait for an answer, unless something is still on its way.
    fn let_in(&self, newcomer: Newcomer) -> Option<Newcomer> {
        let mut desk = lock(&self.desk);
        let is_at_rest = desk.over.is_some()
            || self.messages.at_rest().is_some_and(|reader| {
                let left = haft_ops::executor::unread(reader.get_ref()).unwrap_or(0);
                reader.buffer().is_empty() && left == 0
            });
        if newcomer.is_in.is_closed() {
            return None;
        }
        if !is_at_rest {
            return Some(newcomer);
        }
        desk.expect(&newcomer.call_id, newcomer.caller);
        let _ = newcomer.is_in.send(());
        None
    }

    /// Gives something to whom it is for, once they have room for it. Says when nothing
    /// after it counts.
    async fn take(&mut self, arrived: Option<Arrived>) -> Option<Over> {
        match self.sort(arrived) {
            Ok(Then::Nothing) => {}
            Ok(Then::Close(over)) => return Some(over),
            Ok(Then::Introduce(introduction, message)) => {
                let _ = introduction.send(message).await;
            }
            Ok(Then::Ask(teller, ask)) => teller.ask(ask).await,
            Err(over) => return Some(over),
        }
        None
    }

    /// What is there already, when the program has ended.
    fn rest(&mut self) -> Over {
        for _ in 0..MOST_LEFT {
            let Some(arrived) = self.messages.next().now_or_never() else {
                break;
            };
            match self.sort(arrived) {
                Ok(Then::Introduce(introduction, message)) => {
                    let _ = introduction.try_send(message);
                }
                Ok(Then::Close(over)) => return over,
                // Nobody is there to be answered.
                Ok(Then::Ask(..) | Then::Nothing) => {}
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
                tracing::info!(line, "a plugin wrote what is no message");
                lock(&self.desk).noise.get_or_insert(line);
                if self.noise > MOST_NOISE {
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
        Ok(lock(&self.desk).deliver(message))
    }
}

/// What stands for a message that is not read, so that nobody waits for it.
fn unread(call_id: Option<String>, why: &str) -> Map<String, Value> {
    let message = format!("it wrote a message with {why}, which is not read");
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
