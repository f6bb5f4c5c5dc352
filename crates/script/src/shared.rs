//! What the three threads of a worker share: the output, the call that runs, and what
//! came for it while it ran.

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::exit;
use crate::protocol::{Answer, Block};

/// How late a call may be until it is answered for it.
const GRACE: Duration = Duration::from_millis(200);
/// How long what was asked may still be answered after the input ended.
const LINGER: Duration = Duration::from_secs(1);
/// How long the last answer may wait for a reader.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Writes a line to standard error, where haft keeps what plugins say.
pub(crate) fn note(text: &str) {
    // There is nobody to tell that this failed.
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Whom an answer is for.
#[derive(Clone, Debug)]
pub(crate) enum Asker {
    Loading,
    Call(Value),
}

/// What the thread of Lua works on.
struct Task {
    asker: Asker,
    /// Nothing while the task waits for haft.
    due: Option<Instant>,
    /// What to say when it is overdue.
    late: String,
}

/// The answer to a call of another tool.
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) error: bool,
}

#[derive(Default)]
struct State {
    task: Option<Task>,
    /// Calls that wait for their turn, and whether they were cancelled.
    queued: Vec<(Value, bool)>,
    waiting_for: Option<u64>,
    replies: HashMap<u64, Reply>,
    ended: Option<Instant>,
    finished: Option<u8>,
}

pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    cancelled: AtomicBool,
    output: Mutex<Option<Box<dyn Write + Send>>>,
}

impl Shared {
    pub(crate) fn new(output: impl Write + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            cancelled: AtomicBool::new(false),
            output: Mutex::new(Some(Box::new(output))),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes one line. A reader that has gone is the end, as that of the input is.
    pub(crate) fn write(&self, mut line: String) {
        line.push('\n');
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(stream) = output.as_mut() else {
            return;
        };
        if stream
            .write_all(line.as_bytes())
            .and_then(|()| stream.flush())
            .is_err()
        {
            *output = None;
            drop(output);
            self.end();
        }
    }

    // Said by the thread that reads.

    pub(crate) fn queue(&self, call_id: Value) {
        self.state().queued.push((call_id, false));
    }

    pub(crate) fn cancel(&self, call_id: &Value) {
        let mut state = self.state();
        if let Some(task) = &mut state.task
            && matches!(&task.asker, Asker::Call(running) if running == call_id)
        {
            task.due = Some(Instant::now());
            task.late = "cancelled".to_owned();
            self.cancelled.store(true, Ordering::Relaxed);
        }
        for (queued, cancelled) in &mut state.queued {
            *cancelled |= queued == call_id;
        }
        self.changed.notify_all();
    }

    pub(crate) fn reply(&self, id: u64, reply: Reply) {
        let mut state = self.state();
        if state.waiting_for == Some(id) {
            state.replies.insert(id, reply);
            self.changed.notify_all();
        } else {
            drop(state);
            note(&format!(
                "an answer to host call {id} came that nobody waits for"
            ));
        }
    }

    pub(crate) fn end(&self) {
        self.state().ended.get_or_insert_with(Instant::now);
        self.changed.notify_all();
    }

    // Said by the thread of Lua.

    /// Begins to load.
    pub(crate) fn begin_loading(&self, due: Instant, late: String) {
        self.state().task = Some(Task {
            asker: Asker::Loading,
            due: Some(due),
            late,
        });
        self.changed.notify_all();
    }

    /// Begins the call that was queued first, unless it was cancelled meanwhile.
    pub(crate) fn begin_call(&self, call_id: Value, due: Instant, late: String) -> bool {
        let mut state = self.state();
        if let Some(at) = state
            .queued
            .iter()
            .position(|(queued, _)| *queued == call_id)
            && state.queued.remove(at).1
        {
            return false;
        }
        self.cancelled.store(false, Ordering::Relaxed);
        state.task = Some(Task {
            asker: Asker::Call(call_id),
            due: Some(due),
            late,
        });
        self.changed.notify_all();
        true
    }

    /// Ends the task. False if it was overdue and has been answered.
    pub(crate) fn complete(&self) -> bool {
        self.state().task.take().is_some()
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// The id of the call that runs.
    pub(crate) fn call_id(&self) -> Option<Value> {
        match self.state().task.as_ref().map(|task| &task.asker) {
            Some(Asker::Call(call_id)) => Some(call_id.clone()),
            _ => None,
        }
    }

    /// Sends a question to haft and waits for its answer. Nothing when the call was
    /// cancelled, or nobody is there to answer.
    pub(crate) fn ask(&self, id: u64, line: String) -> Option<Reply> {
        self.state().waiting_for = Some(id);
        self.write(line);
        let mut state = self.state();
        // A cancel that came already has made the call due.
        if !self.is_cancelled()
            && let Some(task) = &mut state.task
        {
            task.due = None;
        }
        let reply = loop {
            if let Some(reply) = state.replies.remove(&id) {
                break Some(reply);
            }
            if self.is_cancelled() || state.ended.is_some() {
                break None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        };
        state.waiting_for = None;
        reply
    }

    /// Says when the call is due after it waited.
    pub(crate) fn resume(&self, due: Instant) {
        let mut state = self.state();
        // A cancel has made the call due already, and it stays so.
        if !self.is_cancelled()
            && let Some(task) = &mut state.task
        {
            task.due = Some(due);
            self.changed.notify_all();
        }
    }

    pub(crate) fn finish(&self, code: u8) {
        self.state().finished.get_or_insert(code);
        self.changed.notify_all();
    }

    // The thread that watches.

    /// Waits for the end and returns how the process ends. Answers in the place of a
    /// task that is overdue.
    pub(crate) fn watch(self: &Arc<Self>) -> u8 {
        let mut state = self.state();
        loop {
            let now = Instant::now();
            let overdue = state
                .task
                .as_ref()
                .and_then(|task| task.due)
                .map(|due| due + GRACE);
            let closing = state.ended.map(|ended| ended + LINGER);
            let code = if let Some(code) = state.finished {
                code
            } else if overdue.is_some_and(|at| at <= now) {
                exit::OVERDUE
            } else if closing.is_some_and(|at| at <= now) {
                return exit::DONE;
            } else {
                let next = [overdue, closing].into_iter().flatten().min();
                state = match next {
                    Some(at) => {
                        let waited = self.changed.wait_timeout(state, at - now);
                        waited.unwrap_or_else(PoisonError::into_inner).0
                    }
                    None => self
                        .changed
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner),
                };
                continue;
            };
            let task = state.task.take();
            drop(state);
            if let Some(task) = task {
                let failed = "the worker of the tool failed".to_owned();
                self.last_words(
                    task.asker,
                    if code == exit::OVERDUE {
                        task.late
                    } else {
                        failed
                    },
                );
            }
            return code;
        }
    }

    /// Answers and lets nobody write after that. Another thread does it: the module
    /// may hold the output, or nobody may be reading.
    fn last_words(self: &Arc<Self>, asker: Asker, message: String) {
        let shared = Arc::clone(self);
        let (said, heard) = mpsc::channel();
        std::thread::spawn(move || {
            shared.write(match &asker {
                Asker::Loading => Answer::Invalid { message: &message }.line(),
                Asker::Call(call_id) => Answer::Result {
                    call_id,
                    content: &[Block::text(&*message)],
                    error: true,
                    last: true,
                }
                .line(),
            });
            shared
                .output
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            let _ = said.send(());
        });
        let _ = heard.recv_timeout(LAST_WORDS);
    }
}
