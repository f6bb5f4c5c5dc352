//! State that an agent shares with its handles, its runs and its sub-agents.

use super::files::FileRecorder;
use super::outermost::OutermostRecord;
use super::record::Record;
use crate::subagents::Background;
use crate::{AgentEvent, Event, EventKind, Message, Model, ToolCall, ToolResult, Usage};
use futures::Stream;
use haft::Runtime;
use haft_store::record::Redactor;
use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::task::{Context, Poll};
use std::time::SystemTime;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The agent is already working on a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent is busy; steer it, or wait until the run ends")]
pub struct Busy;

/// Events of a run; the last one is `agent_end`. Dropping the stream stops the run.
pub struct Events {
    pub(super) events: mpsc::UnboundedReceiver<Event>,
    pub(super) _stop: DropGuard,
}

impl Events {
    /// Returns the next event, or `None` at the end.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.events.poll_recv(cx)
    }
}

/// Events of sub-agents in the background: see [`Agent::watch_background`](crate::Agent). The
/// stream ends when the agent is dropped.
pub struct BackgroundEvents(mpsc::UnboundedReceiver<Event>);

impl Stream for BackgroundEvents {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.0.poll_recv(cx)
    }
}

/// Shared state of an agent.
pub(crate) struct Shared {
    pub(crate) runtime: Runtime,
    model: RwLock<Arc<dyn Model>>,
    /// Keys of all models that the agent has used, to redact them.
    secrets: RwLock<Arc<Redactor>>,
    conversation: Mutex<Conversation>,
    /// Sub-agents in the background.
    pub(crate) background: Arc<Background>,
    /// Receiver of the events of sub-agents in the background.
    watcher: Mutex<Option<mpsc::UnboundedSender<Event>>>,
    steering: Mutex<VecDeque<String>>,
    /// `None` between runs.
    run: Mutex<Option<CurrentRun>>,
    seq: AtomicU64,
}

/// The active run.
struct CurrentRun {
    stop: CancellationToken,
    events: mpsc::UnboundedSender<Event>,
    /// Usage of sub-agents that the run has not counted yet.
    spent: Usage,
    /// Total usage when the run started.
    before: Usage,
    /// Whether the last event was created. No events may follow it.
    is_over: bool,
}

/// The conversation and its usage.
#[derive(Default)]
pub(crate) struct Conversation {
    /// Requests share the list; it is copied only if it changes during a request.
    pub(crate) history: Arc<Vec<Arc<Message>>>,
    /// Ids in the record of the messages in `history`.
    pub(crate) ids: Vec<Option<i64>>,
    pub(crate) record: Record,
    /// Records the files that live in the session.
    pub(crate) files: Option<Arc<FileRecorder>>,
    /// Records the state of the outermost session.
    pub(super) outermost: Option<Arc<OutermostRecord>>,
    pub(crate) total: Usage,
    /// Final text of the last run, not redacted.
    pub(crate) text: String,
    /// Tokens of the last request and its answer.
    pub(crate) last: u64,
    /// Calls of the last answer, if some have no result yet.
    pub(crate) open: Option<OpenCalls>,
    /// The user's answers for calls of sub-agents, while the calls that wait for those
    /// sub-agents run again.
    pub(crate) answers_within: Vec<(String, haft::ApprovalAnswer)>,
    /// Undos that the model knows: the number of the last one of each session, its own and
    /// those of sub-agents, and the time of the last message when the session was resumed.
    pub(crate) told_undos: (HashMap<String, u64>, Option<SystemTime>),
    /// Ids of all calls in the session, including those that were compacted away.
    pub(crate) call_ids: HashSet<String>,
    /// Whether the conversation comes from a record with redacted secrets. The model sees the
    /// marks instead, and may repeat them.
    pub(crate) has_marks: bool,
}

impl Conversation {
    /// Returns the text of the last message, if it is an answer without calls.
    pub(super) fn last_answer(&self) -> Option<String> {
        match &**self.history.last()? {
            crate::Message::Assistant(answer) if answer.calls().next().is_none() => {
                Some(answer.text())
            }
            _ => None,
        }
    }
}

/// Calls of an answer, some of which have no result yet.
pub(crate) struct OpenCalls {
    /// All calls of the answer, in order.
    pub(crate) calls: Vec<ToolCall>,
    /// Results so far.
    pub(crate) done: Vec<ToolResult>,
    /// Calls that wait for approval.
    pub(crate) pending: Vec<PendingCall>,
    /// Start of the calls.
    pub(crate) since: SystemTime,
}

impl OpenCalls {
    /// Returns the pending call with this id.
    pub(crate) fn pending(&self, id: &str) -> Option<&PendingCall> {
        self.pending.iter().find(|one| one.call_id == id)
    }
}

/// A call that waits for the user.
#[derive(Clone)]
pub(crate) struct PendingCall {
    pub(crate) call_id: String,
    /// Question for the user.
    pub(crate) question: String,
    /// Whether the call had started and asks while it runs. Otherwise the question is whether
    /// it may run.
    pub(crate) has_begun: bool,
    /// The reply of a call that has run, as JSON, if the question is whether to keep its
    /// changes.
    pub(crate) held: Option<serde_json::Value>,
}

impl Shared {
    pub(super) fn new(model: Arc<dyn Model>, runtime: Runtime) -> Self {
        let shared = Self {
            runtime,
            model: RwLock::new(Arc::clone(&model)),
            secrets: RwLock::default(),
            conversation: Mutex::default(),
            background: Arc::default(),
            watcher: Mutex::default(),
            steering: Mutex::default(),
            run: Mutex::default(),
            seq: AtomicU64::new(0),
        };
        shared.redact_key(&*model);
        shared
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Conversation> {
        lock(&self.conversation)
    }

    /// Returns the calls that wait for approval.
    pub(crate) fn pending_calls(&self) -> Vec<ToolCall> {
        let conversation = self.lock();
        let Some(open) = &conversation.open else {
            return Vec::new();
        };
        let is_pending = |call: &&ToolCall| open.pending(&call.id).is_some();
        open.calls.iter().filter(is_pending).cloned().collect()
    }

    pub(crate) fn model(&self) -> Arc<dyn Model> {
        Arc::clone(&self.model.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets where the conversation is recorded.
    pub(super) fn record(&self, record: Record) {
        {
            let mut conversation = self.lock();
            let files = || FileRecorder::new(self.runtime.memory_files(), &record).map(Arc::new);
            conversation.files = conversation.files.take().or_else(files);
            let outermost = || OutermostRecord::new(&record).map(Arc::new);
            conversation.outermost = conversation.outermost.take().or_else(outermost);
            conversation.record = record;
        }
        self.redact_key(&*self.model());
    }

    /// Redacts the key of a model from events and from the record.
    pub(crate) fn redact_key(&self, model: &dyn Model) {
        let Some(secret) = model.secret() else {
            return;
        };
        let mut secrets = self.secrets.write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut secrets).add([secret.expose().to_owned()]);
        self.lock().record.redact(secret);
    }

    /// Returns the redactor for events.
    pub(super) fn secrets(&self) -> Arc<Redactor> {
        Arc::clone(&self.secrets.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_model(&self, model: Arc<dyn Model>) {
        self.redact_key(&*model);
        *self.model.write().unwrap_or_else(PoisonError::into_inner) = model;
    }

    pub(super) fn next_seq(&self) -> u64 {
        self.seq.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Continues the numbers of events after `seq`.
    pub(super) fn continue_after(&self, seq: u64) {
        self.seq.fetch_max(seq, Ordering::Relaxed);
    }

    /// Creates the stream that receives events of sub-agents in the background.
    pub(super) fn watch_background(&self) -> BackgroundEvents {
        let (sender, events) = mpsc::unbounded_channel();
        *lock(&self.watcher) = Some(sender);
        BackgroundEvents(events)
    }

    pub(super) fn take_steering(&self) -> Vec<String> {
        lock(&self.steering).drain(..).collect()
    }

    pub(super) fn has_steering(&self) -> bool {
        !lock(&self.steering).is_empty()
    }

    /// Marks the agent as busy.
    pub(super) fn start(
        &self,
        events: mpsc::UnboundedSender<Event>,
    ) -> Result<CancellationToken, Busy> {
        let before = self.lock().total;
        let mut run = lock(&self.run);
        if run.is_some() {
            return Err(Busy);
        }
        let stop = CancellationToken::new();
        *run = Some(CurrentRun {
            stop: stop.clone(),
            events,
            spent: Usage::default(),
            before,
            is_over: false,
        });
        Ok(stop)
    }

    /// Takes the usage of sub-agents that the run has not counted yet.
    pub(super) fn take_spent(&self) -> Usage {
        let mut run = lock(&self.run);
        let spent = run.as_mut().map(|run| std::mem::take(&mut run.spent));
        spent.unwrap_or_default()
    }

    /// Stops forwarding events of sub-agents to the run.
    pub(super) fn stop_forwarding(&self) {
        if let Some(run) = &mut *lock(&self.run) {
            run.is_over = true;
        }
    }

    pub(super) fn end(&self) {
        *lock(&self.run) = None;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Steers and stops an agent. Clones refer to the same agent.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

impl Handle {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
        }
    }

    /// Queues a message that the model receives before the next turn.
    pub fn steer(&self, text: impl Into<String>) {
        lock(&self.shared.steering).push_back(text.into());
    }

    /// Takes back the queued messages that the model has not received.
    #[must_use]
    pub fn take_steering(&self) -> Vec<String> {
        self.shared.take_steering()
    }

    /// Stops the current run.
    pub fn abort(&self) {
        if let Some(run) = &*lock(&self.shared.run) {
            run.stop.cancel();
        }
    }

    /// Forwards an event of a sub-agent to the events of the current run.
    pub fn forward(&self, event: Event) {
        let run = lock(&self.shared.run);
        if let Some(run) = run.as_ref().filter(|run| !run.is_over) {
            let _ = run.events.send(event);
        }
    }

    /// Forwards an event of a sub-agent in the background, to its own stream if there is one.
    pub(crate) fn forward_background(&self, event: Event) {
        if let Some(event) = self.send_to_watcher(event) {
            self.forward(event);
        }
    }

    /// Emits an event to the stream of background events only.
    pub(crate) fn emit_background(&self, event: AgentEvent) {
        // Without a receiver, the event must not use up a number.
        if lock(&self.shared.watcher).is_some() {
            self.send_to_watcher(Event {
                kind: EventKind::Agent(event),
                session: self.shared.runtime.session().to_owned(),
                parent: None,
                seq: self.shared.next_seq(),
                time: haft::ops::text::moment::to_millis(SystemTime::now()),
            });
        }
    }

    /// Returns the event if there is no receiver.
    fn send_to_watcher(&self, event: Event) -> Option<Event> {
        let watcher = lock(&self.shared.watcher);
        match watcher.as_ref() {
            Some(watcher) => watcher.send(event).err().map(|unsent| unsent.0),
            None => Some(event),
        }
    }

    /// Adds the usage of a sub-agent to that of this agent.
    pub fn add_usage(&self, usage: &Usage) {
        self.shared.lock().total.add(usage);
        if let Some(run) = &mut *lock(&self.shared.run) {
            run.spent.add(usage);
        }
    }

    /// Returns the tokens and the cost in USD of the current run, including sub-agents.
    #[must_use]
    pub fn run_usage(&self) -> (u64, f64) {
        let total = self.shared.lock().total;
        let before = lock(&self.shared.run).as_ref().map(|run| run.before);
        let before = before.unwrap_or(total);
        let cost = total.cost.unwrap_or(0.0) - before.cost.unwrap_or(0.0);
        (total.total().saturating_sub(before.total()), cost)
    }

    /// Returns a weak handle for the agent's own tools, which would otherwise keep the agent
    /// alive forever.
    pub(crate) fn weak(&self) -> WeakHandle {
        WeakHandle(Arc::downgrade(&self.shared))
    }

    /// Lets a sub-agent record its changes to files and state in the outermost session.
    pub(crate) fn share_session_with(&self, shared: &Shared) {
        let (files, outermost) = {
            let conversation = self.shared.lock();
            (conversation.files.clone(), conversation.outermost.clone())
        };
        let mut conversation = shared.lock();
        conversation.files = files;
        conversation.outermost = outermost;
    }

    /// Returns the user's answers for calls of sub-agents, by `SESSION/ID`.
    pub(crate) fn answers_within(&self) -> Vec<(String, haft::ApprovalAnswer)> {
        self.shared.lock().answers_within.clone()
    }

    /// Redacts the key of a sub-agent's model.
    pub(crate) fn redact_key(&self, model: &dyn Model) {
        self.shared.redact_key(model);
    }

    /// Returns the sub-agents in the background.
    pub(crate) fn background(&self) -> Arc<Background> {
        Arc::clone(&self.shared.background)
    }

    /// Returns the runtime that runs the calls.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    /// Returns the model.
    #[must_use]
    pub fn model(&self) -> Arc<dyn Model> {
        self.shared.model()
    }

    /// Whether a run is active.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        lock(&self.shared.run).is_some()
    }
}

/// A handle that does not keep the agent alive.
#[derive(Clone)]
pub(crate) struct WeakHandle(Weak<Shared>);

impl WeakHandle {
    /// Returns the handle, if the agent still exists.
    pub(crate) fn upgrade(&self) -> Option<Handle> {
        self.0.upgrade().map(|shared| Handle { shared })
    }
}
