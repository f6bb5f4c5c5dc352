//! What an agent shares with whoever steers it.

use super::keeper::Keeper;
use super::outer::Outer;
use super::record::Record;
use crate::subagents::Background;
use crate::{AgentEvent, Event, EventKind, Model, Said, ToolCall, ToolResult, Usage};
use futures::Stream;
use haft::Runtime;
use haft_store::sessions::Redactor;
use std::collections::{HashSet, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::task::{Context, Poll};
use std::time::SystemTime;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// An agent works on one prompt at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent is at work; steer it, or wait until it is done")]
pub struct Busy;

/// What happens while an agent works; ends with `agent_end`. Dropping it stops the
/// agent.
pub struct Events {
    pub(super) events: mpsc::UnboundedReceiver<Event>,
    pub(super) _stop: DropGuard,
}

impl Events {
    /// The next one.
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

/// What sub-agents in the background do: see [`Agent::watch_background`](crate::Agent). It
/// ends with the agent.
pub struct BackgroundEvents(mpsc::UnboundedReceiver<Event>);

impl Stream for BackgroundEvents {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.0.poll_recv(cx)
    }
}

/// What the parts of an agent share.
pub(crate) struct Shared {
    pub(crate) runtime: Runtime,
    model: RwLock<Arc<dyn Model>>,
    /// The keys of all models it had: nobody is shown them.
    hidden: RwLock<Arc<Redactor>>,
    conversation: Mutex<Conversation>,
    /// Sub-agents that work while it does something else, or nothing.
    pub(crate) background: Arc<Background>,
    /// Who watches those.
    watcher: Mutex<Option<mpsc::UnboundedSender<Event>>>,
    steering: Mutex<VecDeque<String>>,
    /// The work that goes on now.
    work: Mutex<Option<Work>>,
    seq: AtomicU64,
}

/// Work that goes on.
struct Work {
    stop: CancellationToken,
    events: mpsc::UnboundedSender<Event>,
    /// What others took on its behalf.
    spent: Usage,
    /// What all work before it took.
    before: Usage,
    /// The last event is on its way: nothing is told behind it.
    is_over: bool,
}

/// What was said and what it took.
#[derive(Default)]
pub(crate) struct Conversation {
    /// Who asks holds all of it for the while; it is copied only if it grows meanwhile.
    pub(crate) history: Arc<Vec<Arc<Said>>>,
    /// The number in the record of each message of the history.
    pub(crate) ids: Vec<Option<i64>>,
    pub(crate) record: Record,
    /// Where the files are recorded that the session holds.
    pub(crate) keeper: Option<Arc<Keeper>>,
    /// Where the memory of the outermost session is recorded.
    pub(super) outer: Option<Arc<Outer>>,
    pub(crate) total: Usage,
    /// The text that the last run ended with, as it was said.
    pub(crate) text: String,
    /// Tokens of the last request and its answer.
    pub(crate) last: u64,
    /// Calls of the last answer that have no results yet.
    pub(crate) open: Option<Open>,
    /// Answers to questions of those that work for it, while its calls are made that
    /// wait for them.
    pub(crate) answers_within: Vec<(String, haft::Answer)>,
    /// The ids of all calls there ever were, also of those that only the record has.
    pub(crate) call_ids: HashSet<String>,
    /// It comes from a record that has marks where secrets were. The model cannot know
    /// what they stand for, and may repeat them.
    pub(crate) has_marks: bool,
}

impl Conversation {
    /// The text of the last answer, if nothing came after it and it calls nothing.
    pub(super) fn last_answer(&self) -> Option<String> {
        match &self.history.last()?.message {
            crate::Message::Assistant(answer) if answer.calls().next().is_none() => {
                Some(answer.text())
            }
            _ => None,
        }
    }
}

/// Calls of an answer that are not all done.
pub(crate) struct Open {
    /// All of them, in order.
    pub(crate) calls: Vec<ToolCall>,
    /// What came of those that are done.
    pub(crate) done: Vec<ToolResult>,
    /// Those that wait for a person.
    pub(crate) waiting: Vec<Waiting>,
    /// When they began.
    pub(crate) since: SystemTime,
}

impl Open {
    /// What a call waits for, if it does.
    pub(crate) fn waits(&self, id: &str) -> Option<&Waiting> {
        self.waiting.iter().find(|one| one.call_id == id)
    }
}

/// A call that waits for a person.
#[derive(Clone)]
pub(crate) struct Waiting {
    pub(crate) call_id: String,
    /// What they are asked.
    pub(crate) question: String,
    /// It ran, and has asked for something; else it is asked whether it may run.
    pub(crate) has_begun: bool,
}

impl Shared {
    pub(super) fn new(model: Arc<dyn Model>, runtime: Runtime) -> Self {
        let shared = Self {
            runtime,
            model: RwLock::new(Arc::clone(&model)),
            hidden: RwLock::default(),
            conversation: Mutex::default(),
            background: Arc::default(),
            watcher: Mutex::default(),
            steering: Mutex::default(),
            work: Mutex::default(),
            seq: AtomicU64::new(0),
        };
        shared.hide(&*model);
        shared
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Conversation> {
        lock(&self.conversation)
    }

    /// The calls that wait for a person.
    pub(crate) fn waiting(&self) -> Vec<ToolCall> {
        let conversation = self.lock();
        let Some(open) = &conversation.open else {
            return Vec::new();
        };
        let waits = |call: &&ToolCall| open.waits(&call.id).is_some();
        open.calls.iter().filter(waits).cloned().collect()
    }

    pub(crate) fn model(&self) -> Arc<dyn Model> {
        Arc::clone(&self.model.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Everything is recorded there from now on.
    pub(super) fn record(&self, record: Record) {
        {
            let mut conversation = self.lock();
            let keeper = || Keeper::new(self.runtime.held_files(), &record).map(Arc::new);
            conversation.keeper = conversation.keeper.take().or_else(keeper);
            let outer = || Outer::new(&record).map(Arc::new);
            conversation.outer = conversation.outer.take().or_else(outer);
            conversation.record = record;
        }
        self.hide(&*self.model());
    }

    /// The key of a model is shown to nobody, and no record has it.
    pub(crate) fn hide(&self, model: &dyn Model) {
        let Some(secret) = model.secret() else {
            return;
        };
        let mut hidden = self.hidden.write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut hidden).add([secret.expose().to_owned()]);
        self.lock().record.hide(secret);
    }

    /// What is shown to nobody.
    pub(super) fn hidden(&self) -> Arc<Redactor> {
        Arc::clone(&self.hidden.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_model(&self, model: Arc<dyn Model>) {
        self.hide(&*model);
        *self.model.write().unwrap_or_else(PoisonError::into_inner) = model;
    }

    pub(super) fn next_seq(&self) -> u64 {
        self.seq.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Numbers go on from there.
    pub(super) fn continue_after(&self, seq: u64) {
        self.seq.fetch_max(seq, Ordering::Relaxed);
    }

    /// Has what sub-agents in the background do told there.
    pub(super) fn watch_background(&self) -> BackgroundEvents {
        let (sender, events) = mpsc::unbounded_channel();
        *lock(&self.watcher) = Some(sender);
        BackgroundEvents(events)
    }

    pub(super) fn steered(&self) -> Vec<String> {
        lock(&self.steering).drain(..).collect()
    }

    pub(super) fn is_steered(&self) -> bool {
        !lock(&self.steering).is_empty()
    }

    /// Begins to work, unless it does already.
    pub(super) fn start(
        &self,
        events: mpsc::UnboundedSender<Event>,
    ) -> Result<CancellationToken, Busy> {
        let before = self.lock().total;
        let mut work = lock(&self.work);
        if work.is_some() {
            return Err(Busy);
        }
        let stop = CancellationToken::new();
        *work = Some(Work {
            stop: stop.clone(),
            events,
            spent: Usage::default(),
            before,
            is_over: false,
        });
        Ok(stop)
    }

    /// What others took on behalf of the work that goes on, since this was asked last.
    pub(super) fn spent(&self) -> Usage {
        let mut work = lock(&self.work);
        let spent = work.as_mut().map(|work| std::mem::take(&mut work.spent));
        spent.unwrap_or_default()
    }

    /// What others do is not told any more.
    pub(super) fn is_ending(&self) {
        if let Some(work) = &mut *lock(&self.work) {
            work.is_over = true;
        }
    }

    pub(super) fn end(&self) {
        *lock(&self.work) = None;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Steers and stops an agent. Clones are the same one.
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

    /// Says something while it works; it hears it before its next turn.
    pub fn steer(&self, text: impl Into<String>) {
        lock(&self.shared.steering).push_back(text.into());
    }

    /// Takes back what was said and not heard yet.
    #[must_use]
    pub fn unsay(&self) -> Vec<String> {
        self.shared.steered()
    }

    /// Stops it.
    pub fn abort(&self) {
        if let Some(work) = &*lock(&self.shared.work) {
            work.stop.cancel();
        }
    }

    /// Tells those who watch it what an agent that works for it does.
    pub fn pass_on(&self, event: Event) {
        let work = lock(&self.shared.work);
        if let Some(work) = work.as_ref().filter(|work| !work.is_over) {
            let _ = work.events.send(event);
        }
    }

    /// The same of one that works in the background.
    pub(crate) fn pass_on_background(&self, event: Event) {
        if let Some(event) = self.tell_watcher(event) {
            self.pass_on(event);
        }
    }

    /// Tells whoever watches its sub-agents in the background, and nobody else.
    pub(crate) fn tell_of_background(&self, event: AgentEvent) {
        // Nothing is numbered for nobody.
        if lock(&self.shared.watcher).is_some() {
            self.tell_watcher(Event {
                kind: EventKind::Agent(event),
                session: self.shared.runtime.session().to_owned(),
                parent: None,
                seq: self.shared.next_seq(),
                time: haft::ops::text::moment::to_millis(SystemTime::now()),
            });
        }
    }

    /// Gives the event back if nobody watches.
    fn tell_watcher(&self, event: Event) -> Option<Event> {
        let watcher = lock(&self.shared.watcher);
        match watcher.as_ref() {
            Some(watcher) => watcher.send(event).err().map(|unsent| unsent.0),
            None => Some(event),
        }
    }

    /// Counts what an agent that works for it took as its own.
    pub fn spend(&self, usage: &Usage) {
        self.shared.lock().total.add(usage);
        if let Some(work) = &mut *lock(&self.shared.work) {
            work.spent.add(usage);
        }
    }

    /// Tokens and USD that its work on the present prompt took so far, with that of
    /// agents that work for it.
    #[must_use]
    pub fn taken(&self) -> (u64, f64) {
        let total = self.shared.lock().total;
        let before = lock(&self.shared.work).as_ref().map(|work| work.before);
        let before = before.unwrap_or(total);
        let cost = total.cost.unwrap_or(0.0) - before.cost.unwrap_or(0.0);
        (total.total().saturating_sub(before.total()), cost)
    }

    /// The same for somebody who is part of it: tools that hold on to the agent whose
    /// tools they are would keep it for ever.
    pub(crate) fn weak(&self) -> WeakHandle {
        WeakHandle(Arc::downgrade(&self.shared))
    }

    /// The files of one that works for it are those of its own session, and so is what they
    /// remember of each other.
    pub(crate) fn shares_session_with(&self, shared: &Shared) {
        let (keeper, outer) = {
            let conversation = self.shared.lock();
            (conversation.keeper.clone(), conversation.outer.clone())
        };
        let mut conversation = shared.lock();
        conversation.keeper = keeper;
        conversation.outer = outer;
    }

    /// Answers to questions of those that work for it, as `SESSION/ID`.
    pub(crate) fn answers_within(&self) -> Vec<(String, haft::Answer)> {
        self.shared.lock().answers_within.clone()
    }

    /// The key of a model that works for it is shown to nobody either.
    pub(crate) fn hide(&self, model: &dyn Model) {
        self.shared.hide(model);
    }

    /// The sub-agents that it has in the background.
    pub(crate) fn background(&self) -> Arc<Background> {
        Arc::clone(&self.shared.background)
    }

    /// The session of tools it works with.
    pub(crate) fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    /// The model it asks.
    #[must_use]
    pub fn model(&self) -> Arc<dyn Model> {
        self.shared.model()
    }

    /// Whether it works on something now.
    #[must_use]
    pub fn is_at_work(&self) -> bool {
        lock(&self.shared.work).is_some()
    }
}

/// A handle that keeps nothing alive.
#[derive(Clone)]
pub(crate) struct WeakHandle(Weak<Shared>);

impl WeakHandle {
    /// The handle, while the agent is there.
    pub(crate) fn upgrade(&self) -> Option<Handle> {
        self.0.upgrade().map(|shared| Handle { shared })
    }
}
