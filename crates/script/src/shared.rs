//! State shared by the three threads of a worker: the output, the current call, and the
//! messages for it.

use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::exit;
use crate::protocol::{Block, WorkerMessage};

/// Time after which the watchdog answers for a late call.
const GRACE: Duration = Duration::from_millis(200);
/// Time to answer pending calls after the input ended.
const LINGER: Duration = Duration::from_secs(1);
/// Time for the last answer to be read.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Writes a line to standard error, which haft saves as the plugin's log.
pub(crate) fn note(text: &str) {
    // A failure cannot be reported anywhere.
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// The recipient of an answer.
#[derive(Clone, Debug)]
pub(crate) enum Recipient {
    Loading,
    Call(Value),
}

/// The current work of the Lua thread.
struct Task {
    asker: Recipient,
    /// `None` while the task waits for haft.
    due: Option<Instant>,
    /// Message if it is overdue.
    late: String,
}

/// The reply to a call of another tool.
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) error: bool,
}

#[derive(Default)]
struct State {
    task: Option<Task>,
    /// Waiting calls, and whether they were cancelled.
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

    /// Writes one line. If the reader is gone, the worker ends, as at the end of its input.
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

    // Called by the thread that reads.

    pub(crate) fn queue(&self, call_id: Value) {
        self.state().queued.push((call_id, false));
    }

    pub(crate) fn cancel(&self, call_id: &Value) {
        let mut state = self.state();
        if let Some(task) = &mut state.task
            && matches!(&task.asker, Recipient::Call(running) if running == call_id)
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
            note(&format!("received an unexpected answer to host call {id}"));
        }
    }

    pub(crate) fn end(&self) {
        self.state().ended.get_or_insert_with(Instant::now);
        self.changed.notify_all();
    }

    // Called by the Lua thread.

    /// Starts the time limit for loading a module.
    pub(crate) fn begin_loading(&self, due: Instant, late: String) {
        self.state().task = Some(Task {
            asker: Recipient::Loading,
            due: Some(due),
            late,
        });
        self.changed.notify_all();
    }

    /// Starts the first queued call, unless it was cancelled in the meantime.
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
            asker: Recipient::Call(call_id),
            due: Some(due),
            late,
        });
        self.changed.notify_all();
        true
    }

    /// Ends the task. Returns false if it was overdue and has been answered already.
    pub(crate) fn complete(&self) -> bool {
        self.state().task.take().is_some()
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Returns the id of the current call.
    pub(crate) fn call_id(&self) -> Option<Value> {
        match self.state().task.as_ref().map(|task| &task.asker) {
            Some(Recipient::Call(call_id)) => Some(call_id.clone()),
            _ => None,
        }
    }

    /// Sends a request to haft and waits for its answer. `None` if the call was cancelled,
    /// or the input has ended.
    pub(crate) fn ask(&self, id: u64, line: String) -> Option<Reply> {
        self.state().waiting_for = Some(id);
        self.write(line);
        let mut state = self.state();
        // If the call was cancelled already, it is due.
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

    /// Sets when the call is due after waiting.
    pub(crate) fn resume(&self, due: Instant) {
        let mut state = self.state();
        // If the call was cancelled, it stays due.
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

    // Called by the watchdog thread.

    /// Waits for the end and returns the exit code. Answers for a task that is overdue.
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

    /// Writes the last answer. Runs in another thread, because the module may hold the
    /// output, or the reader may not read.
    fn last_words(self: &Arc<Self>, asker: Recipient, message: String) {
        let shared = Arc::clone(self);
        let (said, heard) = mpsc::channel();
        std::thread::spawn(move || {
            shared.write(match &asker {
                Recipient::Loading => WorkerMessage::Invalid { message: &message }.line(),
                Recipient::Call(call_id) => WorkerMessage::Result {
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
