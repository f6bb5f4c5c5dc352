//! A session beside another: the same tools, rules and places, and nothing else in
//! common.

use super::build::{BuildError, Factory, is_plain, session_id};
use super::files::{Backing, Files, Ground};
use super::{Runtime, Session, closing};
use crate::journal::Journal;
use crate::queue::Queue;
use crate::state::State;
use crate::toolset::Toolset;
use haft_ops::exec::Surroundings;
use haft_ops::spill::Spill;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

/// What a session beside another has of its own.
#[derive(Clone, Default)]
pub struct Sibling {
    /// Its id; without it, it is given one.
    pub id: Option<String>,
    /// Where its calls are recorded; without it, nowhere.
    pub journal: Option<Arc<dyn Journal>>,
}

/// What the files of a session were made from.
pub(super) struct Origin {
    pub(super) ground: Ground,
    pub(super) place: Place,
}

/// Where they are.
pub(super) enum Place {
    Given(Backing),
    Made(Factory),
}

impl Origin {
    pub(super) fn files(&self, id: &str, toolset: &Toolset) -> Result<Files, BuildError> {
        let backing = match &self.place {
            Place::Given(backing) => backing.clone(),
            Place::Made(make) => make(id).map_err(BuildError::Backend)?,
        };
        self.ground.clone().files(backing, toolset)
    }

    /// Whether another session has other files.
    fn is_of_a_session(&self) -> bool {
        match &self.place {
            Place::Given(backing) => backing.is_of_a_session(),
            Place::Made(_) => true,
        }
    }
}

impl Runtime {
    /// A session beside this one. Tools, programs that bring some, rules and places are
    /// the same; what tools remember, processes, files in memory, outputs, the record and
    /// what a person allowed for a session are its own. This one lives as long as it.
    ///
    /// # Errors
    /// When files of its own cannot be made, or nothing can be named after its id.
    pub fn sibling(&self, sibling: Sibling) -> Result<Self, BuildError> {
        let elder = self.session.elder.as_ref().unwrap_or(self);
        let older = &*elder.session;
        let id = match sibling.id {
            Some(id) if is_plain(&id) => id,
            Some(id) => return Err(BuildError::Session(id)),
            None => session_id(),
        };
        let files = if older.origin.is_of_a_session() {
            older.origin.files(&id, &older.toolset)?
        } else {
            Files {
                backend: Arc::clone(&older.backend),
                held: older.held.clone(),
                scope: older.scope.clone(),
                surroundings: older.surroundings.clone(),
                plugins: older.programs.clone(),
            }
        };
        let spill = older.spill.as_ref().map(|spill| {
            let called = spill.called_folder().with_file_name(&id);
            Spill::new(spill.folder().with_file_name(&id)).called(called)
        });
        let policy = older.approval.policy();
        let programs = closing::programs(files.plugins, &policy, &older.bases, &files.scope);
        let session = Session {
            tools: older.tools.clone(),
            reserve: older.reserve.clone(),
            backend: files.backend,
            held: files.held,
            scope: files.scope,
            paths: older.paths,
            bases: older.bases.clone(),
            surroundings: files.surroundings.as_ref().map(Surroundings::part),
            processes: Arc::new(OnceLock::new()),
            toolset: Arc::clone(&older.toolset),
            journal: sibling.journal,
            spill,
            state: Arc::new(State::default()),
            messenger: Arc::clone(&older.messenger),
            queue: Queue::default(),
            timeout: older.timeout,
            concurrency: older.concurrency,
            watch: older.watch.clone(),
            approval: Arc::new(older.approval.anew()),
            interrupt_on: older.interrupt_on.clone(),
            agent: None,
            clock: None,
            events: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            programs,
            plugins: Vec::new(),
            executables: Vec::new(),
            sources: Vec::new(),
            met: tokio::sync::OnceCell::new(),
            elder: Some(elder.clone()),
            origin: Arc::clone(&older.origin),
            id,
        };
        Ok(Self {
            session: Arc::new(session),
        })
    }
}
