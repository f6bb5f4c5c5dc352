//! Telling whoever watches, once it is recorded: what somebody has seen is there after
//! this process was killed.

use super::handle::Shared;
use super::hide::Pieces;
use super::{Settings, hide, stamped};
use crate::{AgentEvent, Event, EventKind};
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Tells events of one run. Clones are the same one.
#[derive(Clone)]
pub(super) struct Teller {
    shared: Arc<Shared>,
    settings: Arc<Settings>,
    sender: mpsc::UnboundedSender<Event>,
    /// Events that the next transaction records.
    kept: Arc<Mutex<Vec<(u64, String)>>>,
    keeps: bool,
    order: Arc<Mutex<Order>>,
    out: Arc<Mutex<Out>>,
}

/// Events on their way out, in order. One that is to be recorded waits until it is, and
/// those behind it with it.
#[derive(Default)]
struct Out {
    queue: VecDeque<Event>,
    /// The numbers of those that are not recorded yet.
    unrecorded: HashSet<u64>,
    /// Somebody is recording what was told.
    is_noting: bool,
    /// What is told belongs to an answer that is recorded soon, and is recorded with it.
    is_awaited: bool,
    /// Something could not be recorded: then all is told as it comes, and the run ends.
    is_broken: bool,
}

/// Events are numbered and sent in one go, so that numbers rise. While some have their
/// number and wait for their transaction, others wait for theirs.
#[derive(Default)]
struct Order {
    holding: usize,
    waiting: Vec<(EventKind, bool)>,
}

/// While it lives, nothing is told but what is sent.
pub(super) struct Holding<'a>(&'a Teller);

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        let mut order = self.0.order();
        order.holding -= 1;
        if order.holding == 0 {
            for (kind, passing) in std::mem::take(&mut order.waiting) {
                let event = self.0.kept(kind, passing);
                self.0.send(event);
            }
            self.0.note();
        }
    }
}

impl Teller {
    pub(super) fn new(
        shared: &Arc<Shared>,
        settings: &Arc<Settings>,
        sender: mpsc::UnboundedSender<Event>,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            settings: Arc::clone(settings),
            sender,
            kept: Arc::default(),
            keeps: shared.lock().record.is_on(),
            order: Arc::default(),
            out: Arc::default(),
        }
    }

    /// Tells as soon as it is recorded.
    pub(super) fn tell(&self, kind: AgentEvent) {
        let passing = matches!(kind, AgentEvent::MessageUpdate { .. });
        self.tell_now(EventKind::Agent(kind), passing);
    }

    /// Tells pieces of one answer.
    pub(super) fn pieces(&self) -> Pieces {
        Pieces::new(self.shared.hidden())
    }

    /// The same with an event of a tool.
    pub(super) fn tell_tool(&self, kind: haft::EventKind) {
        let passing = matches!(kind, haft::EventKind::ToolUpdate { .. });
        self.tell_now(EventKind::Tool(kind), passing);
    }

    fn tell_now(&self, kind: EventKind, passing: bool) {
        let mut order = self.order();
        if order.holding > 0 {
            order.waiting.push((kind, passing));
        } else {
            let event = self.kept(kind, passing);
            self.send(event);
            self.note();
        }
    }

    /// Records what was told, beside whoever tells, so that it gets out.
    fn note(&self) {
        let mut out = self.out();
        if out.is_noting || out.is_awaited || out.is_broken || !self.has_told(&out) {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            out.is_broken = true;
            return self.release(out);
        };
        out.is_noting = true;
        drop(out);
        let teller = self.clone();
        runtime.spawn(async move {
            while let Some(events) = teller.next_to_note() {
                let numbers: Vec<u64> = events.iter().map(|(number, _)| *number).collect();
                let record = teller.shared.lock().record.clone();
                match record.note(events).await {
                    Ok(()) => teller.recorded(numbers),
                    Err(error) => {
                        tracing::error!(%error, "events");
                        teller.not_recorded();
                    }
                }
            }
        });
    }

    /// Whether something was told that nobody has taken to record it.
    fn has_told(&self, out: &Out) -> bool {
        let kept = self.lock();
        let mut told = out.queue.iter().map(|event| event.seq);
        told.any(|number| kept.iter().any(|(kept, _)| *kept == number))
    }

    /// What was told and is to be recorded. What is only prepared belongs to somebody's
    /// transaction.
    fn next_to_note(&self) -> Option<Vec<(u64, String)>> {
        let mut out = self.out();
        let mut events = Vec::new();
        if !out.is_awaited {
            let told: HashSet<u64> = out.queue.iter().map(|event| event.seq).collect();
            let mut kept = self.lock();
            let all = std::mem::take(&mut *kept).into_iter();
            (events, *kept) = all.partition(|(number, _)| told.contains(number));
        }
        out.is_noting = !events.is_empty();
        out.is_noting.then_some(events)
    }

    /// What is told from now on is recorded together with an answer, or not any more.
    pub(super) fn awaits(&self, is_awaited: bool) {
        self.out().is_awaited = is_awaited;
        if !is_awaited {
            self.note();
        }
    }

    /// These are recorded, so they may be told.
    pub(super) fn recorded(&self, numbers: impl IntoIterator<Item = u64>) {
        let mut out = self.out();
        for number in numbers {
            out.unrecorded.remove(&number);
        }
        self.release(out);
    }

    /// Nothing can be recorded any more: whoever was told of a beginning is to be told of
    /// the end.
    pub(super) fn not_recorded(&self) {
        let mut out = self.out();
        out.is_broken = true;
        self.release(out);
    }

    fn release(&self, mut out: MutexGuard<'_, Out>) {
        while let Some(event) = out.queue.front() {
            if !out.is_broken && out.unrecorded.contains(&event.seq) {
                return;
            }
            if let Some(event) = out.queue.pop_front() {
                // Nobody may be listening any more.
                let _ = self.sender.send(event);
            }
        }
    }

    /// Lets others wait until what is prepared from now on has been sent.
    pub(super) fn hold(&self) -> Holding<'_> {
        self.order().holding += 1;
        Holding(self)
    }

    /// An event that is recorded with the next transaction and told after it.
    pub(super) fn prepared(&self, kind: AgentEvent) -> Event {
        self.kept(EventKind::Agent(kind), false)
    }

    /// The same with an event of a tool.
    pub(super) fn prepared_tool(&self, kind: haft::EventKind) -> Event {
        self.kept(EventKind::Tool(kind), false)
    }

    fn kept(&self, mut kind: EventKind, passing: bool) -> Event {
        hide::from(&mut kind, &self.shared.hidden());
        let event = stamped(&self.shared, &self.settings, kind);
        if self.keeps && !passing {
            let text = serde_json::to_string(&event).unwrap_or_default();
            self.out().unrecorded.insert(event.seq);
            self.lock().push((event.seq, text));
        }
        event
    }

    /// Tells what was prepared, behind what was told before.
    pub(super) fn send(&self, event: Event) {
        let mut out = self.out();
        out.queue.push_back(event);
        self.release(out);
    }

    /// What is to be recorded now.
    pub(super) fn take(&self) -> Vec<(u64, String)> {
        std::mem::take(&mut *self.lock())
    }

    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn out(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, String)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
