//! Emits events after they are recorded, so that everything a front end has shown survives a
//! killed process.

use super::handle::Shared;
use super::redact::ChunkRedactor;
use super::{Settings, redact, stamped};
use crate::{AgentEvent, Event, EventKind};
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Emits the events of one run. Clones share their state.
#[derive(Clone)]
pub(super) struct Emitter {
    shared: Arc<Shared>,
    settings: Arc<Settings>,
    sender: mpsc::UnboundedSender<Event>,
    /// Events that the next transaction records, as number and JSON.
    unrecorded: Arc<Mutex<Vec<(u64, String)>>>,
    is_recorded: bool,
    order: Arc<Mutex<Order>>,
    outbox: Arc<Mutex<Outbox>>,
}

/// Events to send, in order. An event that must be recorded waits until it is, and so do the
/// events behind it.
#[derive(Default)]
struct Outbox {
    queue: VecDeque<Event>,
    /// Numbers of events that are not recorded yet.
    unrecorded: HashSet<u64>,
    /// Whether a task is recording events.
    is_recording: bool,
    /// Whether new events wait for the transaction of the current answer.
    is_deferred: bool,
    /// Set if recording failed. Then events are sent immediately, and the run ends.
    is_broken: bool,
}

/// Keeps numbers in the order of sending: while prepared events wait for their transaction,
/// other events do not get a number.
#[derive(Default)]
struct Order {
    holding: usize,
    waiting: Vec<(EventKind, bool)>,
}

/// While this exists, only prepared events are sent.
pub(super) struct Holding<'a>(&'a Emitter);

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        let mut order = self.0.order();
        order.holding -= 1;
        if order.holding == 0 {
            for (kind, is_transient) in std::mem::take(&mut order.waiting) {
                let event = self.0.create(kind, is_transient);
                self.0.send(event);
            }
            self.0.record();
        }
    }
}

impl Emitter {
    pub(super) fn new(
        shared: &Arc<Shared>,
        settings: &Arc<Settings>,
        sender: mpsc::UnboundedSender<Event>,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            settings: Arc::clone(settings),
            sender,
            unrecorded: Arc::default(),
            is_recorded: shared.lock().record.is_on(),
            order: Arc::default(),
            outbox: Arc::default(),
        }
    }

    /// Emits an event as soon as it is recorded.
    pub(super) fn emit(&self, kind: AgentEvent) {
        let is_transient = matches!(kind, AgentEvent::MessageUpdate { .. });
        self.emit_now(EventKind::Agent(kind), is_transient);
    }

    /// Creates the redactor for the chunks of one answer.
    pub(super) fn chunks(&self) -> ChunkRedactor {
        ChunkRedactor::new(self.shared.secrets())
    }

    /// Emits an event of a tool as soon as it is recorded.
    pub(super) fn emit_tool(&self, kind: haft::EventKind) {
        let is_transient = matches!(kind, haft::EventKind::ToolUpdate { .. });
        self.emit_now(EventKind::Tool(kind), is_transient);
    }

    /// Transient events are not recorded.
    fn emit_now(&self, kind: EventKind, is_transient: bool) {
        let mut order = self.order();
        if order.holding > 0 {
            order.waiting.push((kind, is_transient));
        } else {
            let event = self.create(kind, is_transient);
            self.send(event);
            self.record();
        }
    }

    /// Records queued events in a separate task, so that they can be sent.
    fn record(&self) {
        let mut outbox = self.outbox();
        let is_blocked = outbox.is_recording || outbox.is_deferred || outbox.is_broken;
        if is_blocked || !self.has_unrecorded(&outbox) {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            outbox.is_broken = true;
            return self.release(outbox);
        };
        outbox.is_recording = true;
        drop(outbox);
        let emitter = self.clone();
        runtime.spawn(async move {
            while let Some(events) = emitter.take_queued() {
                let numbers: Vec<u64> = events.iter().map(|(number, _)| *number).collect();
                let record = emitter.shared.lock().record.clone();
                match record.commit_events(events).await {
                    Ok(()) => emitter.recorded(numbers),
                    Err(error) => {
                        tracing::error!(%error, "cannot record events");
                        emitter.not_recorded();
                    }
                }
            }
        });
    }

    /// Whether an event in the queue is not recorded and not in a transaction yet.
    fn has_unrecorded(&self, outbox: &Outbox) -> bool {
        let unrecorded = self.unrecorded();
        let mut queued = outbox.queue.iter().map(|event| event.seq);
        queued.any(|number| unrecorded.iter().any(|(seq, _)| *seq == number))
    }

    /// Takes the queued events that must be recorded. Events that are only prepared belong to
    /// the transaction of their creator.
    fn take_queued(&self) -> Option<Vec<(u64, String)>> {
        let mut outbox = self.outbox();
        let mut events = Vec::new();
        if !outbox.is_deferred {
            let queued: HashSet<u64> = outbox.queue.iter().map(|event| event.seq).collect();
            let mut unrecorded = self.unrecorded();
            let all = std::mem::take(&mut *unrecorded).into_iter();
            (events, *unrecorded) = all.partition(|(number, _)| queued.contains(number));
        }
        outbox.is_recording = !events.is_empty();
        outbox.is_recording.then_some(events)
    }

    /// Sets whether events wait for the transaction of the current answer.
    pub(super) fn defer_recording(&self, is_deferred: bool) {
        self.outbox().is_deferred = is_deferred;
        if !is_deferred {
            self.record();
        }
    }

    /// Marks events as recorded and sends those that waited for it.
    pub(super) fn recorded(&self, numbers: impl IntoIterator<Item = u64>) {
        let mut outbox = self.outbox();
        for number in numbers {
            outbox.unrecorded.remove(&number);
        }
        self.release(outbox);
    }

    /// After a failed transaction, sends all events anyway, so that each start event gets its
    /// end event.
    pub(super) fn not_recorded(&self) {
        let mut outbox = self.outbox();
        outbox.is_broken = true;
        self.release(outbox);
    }

    fn release(&self, mut outbox: MutexGuard<'_, Outbox>) {
        while let Some(event) = outbox.queue.front() {
            if !outbox.is_broken && outbox.unrecorded.contains(&event.seq) {
                return;
            }
            if let Some(event) = outbox.queue.pop_front() {
                // The receiver may be gone.
                let _ = self.sender.send(event);
            }
        }
    }

    /// Holds back other events until the events prepared from now on are sent.
    pub(super) fn hold(&self) -> Holding<'_> {
        self.order().holding += 1;
        Holding(self)
    }

    /// Creates an event that the next transaction records. The caller sends it afterwards.
    pub(super) fn prepare(&self, kind: AgentEvent) -> Event {
        self.create(EventKind::Agent(kind), false)
    }

    /// Like `prepare`, for an event of a tool.
    pub(super) fn prepare_tool(&self, kind: haft::EventKind) -> Event {
        self.create(EventKind::Tool(kind), false)
    }

    fn create(&self, mut kind: EventKind, is_transient: bool) -> Event {
        redact::event(&mut kind, &self.shared.secrets());
        let event = stamped(&self.shared, &self.settings, kind);
        if self.is_recorded && !is_transient {
            let text = serde_json::to_string(&event).unwrap_or_default();
            self.outbox().unrecorded.insert(event.seq);
            self.unrecorded().push((event.seq, text));
        }
        event
    }

    /// Sends a prepared event after the events before it.
    pub(super) fn send(&self, event: Event) {
        let mut outbox = self.outbox();
        outbox.queue.push_back(event);
        self.release(outbox);
    }

    /// Takes the events that the next transaction records.
    pub(super) fn take_unrecorded(&self) -> Vec<(u64, String)> {
        std::mem::take(&mut *self.unrecorded())
    }

    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unrecorded(&self) -> MutexGuard<'_, Vec<(u64, String)>> {
        let unrecorded = self.unrecorded.lock();
        unrecorded.unwrap_or_else(PoisonError::into_inner)
    }
}
