//! A session within a session: the same files, rules and person, with fewer tools and
//! its own memory.

use super::clock::Clock;
use super::{Runtime, Session};
use crate::Tools;
use crate::state::State;
use haft_ops::spill::Spill;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// What a session within another has. Its calls are judged by the same rules, in the same
/// places, by the same person, so they can never do more than that one's could.
#[derive(Debug, Clone, Default)]
pub struct Narrow {
    /// Its id.
    pub id: String,
    /// The names of its tools; those that the outer session lacks are left out.
    pub tools: Vec<String>,
    /// The names of tools it has although the outer session's preset leaves them out.
    pub granted: Vec<String>,
    /// More tools whose calls wait for a person.
    pub interrupt_on: BTreeSet<String>,
    /// Who works in it: a person who is asked about a call is told.
    pub agent: Option<String>,
}

impl Runtime {
    /// A session within this one.
    #[must_use]
    pub fn narrowed(&self, narrow: Narrow) -> Self {
        self.narrowed_within(narrow, None)
    }

    /// The same for the work of one call, whose clock stops while a person is asked.
    pub(crate) fn narrowed_within(&self, narrow: Narrow, clock: Option<&Clock>) -> Self {
        let outer = &*self.session;
        let tools = Tools::default();
        for entry in outer.tools.entries() {
            if narrow.tools.contains(&entry.tool.definition().name) {
                tools.take(entry);
            }
        }
        for entry in outer.reserve.entries() {
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
        let spill = outer.spill.as_ref().map(|spill| beside(spill, &narrow.id));
        let session = Session {
            id: narrow.id,
            tools,
            reserve: outer.reserve.clone(),
            interrupt_on,
            agent,
            clock: clock.or(outer.clock.as_ref()).cloned(),
            backend: Arc::clone(&outer.backend),
            held: outer.held.clone(),
            scope: outer.scope.clone(),
            paths: outer.paths,
            bases: outer.bases.clone(),
            surroundings: outer.surroundings.clone(),
            processes: Arc::clone(&outer.processes),
            toolset: Arc::clone(&outer.toolset),
            journal: outer.journal.clone(),
            spill,
            state: Arc::new(State::within(&outer.state)),
            messenger: Arc::clone(&outer.messenger),
            queue: outer.queue.clone(),
            timeout: outer.timeout,
            concurrency: outer.concurrency,
            watch: outer.watch.clone(),
            approval: Arc::clone(&outer.approval),
            events: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            programs: outer.programs.clone(),
            plugins: Vec::new(),
            executables: Vec::new(),
            sources: Vec::new(),
            met: tokio::sync::OnceCell::new(),
            elder: None,
            origin: Arc::clone(&outer.origin),
        };
        let session = Arc::new(session);
        session.tools.belong_to(&session);
        Self { session }
    }
}

/// Outputs of a session within another lie beside those of the outer one.
fn beside(spill: &Spill, id: &str) -> Spill {
    let called = spill.called_folder().with_file_name(id);
    Spill::new(spill.folder().with_file_name(id)).called(called)
}
