//! Telling whoever watches, and remembering what is to be recorded of it.

use super::handle::Shared;
use super::hide::Pieces;
use super::{Settings, hide, stamped};
use crate::{AgentEvent, Event, EventKind};
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
        }
    }

    /// Tells at once.
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
            self.lock().push((event.seq, text));
        }
        event
    }

    /// Tells what was prepared. Nobody may be listening any more.
    pub(super) fn send(&self, event: Event) {
        let _ = self.sender.send(event);
    }

    /// What is to be recorded now.
    pub(super) fn take(&self) -> Vec<(u64, String)> {
        std::mem::take(&mut *self.lock())
    }

    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, String)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
