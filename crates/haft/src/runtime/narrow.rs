//! A session inside another one: the same files, rules and approver, but fewer tools and
//! its own state.

use super::recording::lock;
use super::{OuterCall, Runtime, Session};
use crate::Tools;
use crate::state::State;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Settings of a session inside another one, such as that of a sub-agent. It has the same
/// rules, paths and approver, so it can never do more than the outer session.
#[derive(Debug, Clone, Default)]
pub struct Narrow {
    /// Id of the session.
    pub id: String,
    /// Names of its tools. Those that the outer session lacks are left out.
    pub tools: Vec<String>,
    /// Names of tools to add although the preset of the outer session leaves them out.
    pub granted: Vec<String>,
    /// Further tools whose calls always need approval.
    pub interrupt_on: BTreeSet<String>,
    /// Name of the sub-agent, shown to the user in questions.
    pub agent: Option<String>,
}

impl Runtime {
    /// Creates a session inside this one.
    #[must_use]
    pub fn narrowed(&self, narrow: Narrow) -> Self {
        self.narrowed_within(narrow, None)
    }

    /// Creates a session in which one call does its work. The clock of that call stops
    /// while the user is asked.
    pub(crate) fn narrowed_within(&self, narrow: Narrow, around: Option<OuterCall>) -> Self {
        let outer = &*self.session;
        let tools = Tools::default();
        for entry in outer.tools.entries() {
            if narrow.tools.contains(&entry.tool.definition().name) {
                tools.take(entry);
            }
        }
        for entry in outer.shared.reserve.entries() {
            let name = &entry.tool.definition().name;
            if narrow.granted.contains(name) && tools.get(name).is_none() {
                tools.take(entry);
            }
        }
        let mut interrupt_on = outer.interrupt_on.clone();
        interrupt_on.extend(narrow.interrupt_on);
        let agent = match (&outer.agent, narrow.agent) {
            (Some(outer), Some(inner)) => Some(format!("{outer} > {inner}")),
            (outer, inner) => inner.or_else(|| outer.clone()),
        };
        let spill = outer.spill_beside(&narrow.id);
        let shared = Arc::clone(&outer.shared);
        let session = Session {
            inner_effects: Arc::clone(&outer.inner_effects),
            processes: Arc::clone(&outer.processes),
            journal: outer.journal.clone(),
            spill,
            state: Arc::new(State::within(&outer.state)),
            queue: outer.queue.clone(),
            approval: Arc::clone(&outer.approval),
            interrupt_on,
            agent,
            outer: around.or_else(|| outer.outer.clone()),
            ..Session::new(shared, narrow.id, tools, outer.files())
        };
        if let Some(effects) = &session.effects {
            lock(&outer.inner_effects).push(effects.clone());
        }
        session.start()
    }
}
