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
        }
    }

    /// Tells at once.
    pub(super) fn tell(&self, kind: AgentEvent) {
        let event = self.prepared(kind);
        self.send(event);
    }

    /// Tells pieces of one answer.
    pub(super) fn pieces(&self) -> Pieces {
        Pieces::new(self.shared.hidden())
    }

    /// The same with an event of a tool.
    pub(super) fn tell_tool(&self, kind: haft::EventKind) {
        let event = self.prepared_tool(kind);
        self.send(event);
    }

    /// An event that is recorded with the next transaction and told after it.
    pub(super) fn prepared(&self, kind: AgentEvent) -> Event {
        let passing = matches!(kind, AgentEvent::MessageUpdate { .. });
        self.kept(EventKind::Agent(kind), passing)
    }

    /// The same with an event of a tool.
    pub(super) fn prepared_tool(&self, kind: haft::EventKind) -> Event {
        let passing = matches!(kind, haft::EventKind::ToolUpdate { .. });
        self.kept(EventKind::Tool(kind), passing)
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

    fn lock(&self) -> MutexGuard<'_, Vec<(u64, String)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
