//! A session next to another one: it shares tools, rules and folders, and nothing else.

use super::build::{BuildError, Factory, is_plain, session_id};
use super::files::{Backing, FileSetup, Files};
use super::{Runtime, Session, hidden_paths};
use crate::journal::Journal;
use crate::queue::Queue;
use crate::state::State;
use crate::toolset::Toolset;
use haft_ops::exec::ExecContext;
use haft_ops::spill::Spill;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

/// Settings of a sibling session.
#[derive(Clone, Default)]
pub struct Sibling {
    /// Id of the session; `None` for a new one.
    pub id: Option<String>,
    /// Journal of its calls; `None` to record nothing.
    pub journal: Option<Arc<dyn Journal>>,
}

/// Source of a session's files.
pub(super) struct Origin {
    pub(super) setup: FileSetup,
    pub(super) place: BackingSource,
}

/// The backing, or the function that creates it.
pub(super) enum BackingSource {
    Given(Backing),
    Made(Factory),
}

impl Origin {
    pub(super) fn files(&self, id: &str, toolset: &Toolset) -> Result<Files, BuildError> {
        let backing = match &self.place {
            BackingSource::Given(backing) => backing.clone(),
            BackingSource::Made(make) => make(id).map_err(BuildError::Backend)?,
        };
        self.setup.clone().files(backing, toolset)
    }

    /// Whether another session would have other files.
    fn is_of_a_session(&self) -> bool {
        match &self.place {
            BackingSource::Given(backing) => backing.is_of_a_session(),
            BackingSource::Made(_) => true,
        }
    }
}

impl Runtime {
    /// Creates a sibling of this session. Tools, plugins, rules and folders are shared.
    /// State, processes, files in memory, outputs, the journal and the user's answers are
    /// its own. This session lives at least as long as its siblings.
    ///
    /// # Errors
    /// When its files cannot be created, or its id cannot be used in file names.
    pub fn sibling(&self, sibling: Sibling) -> Result<Self, BuildError> {
        let tools_from = self.session.tools_from.as_ref().unwrap_or(self);
        let older = &*tools_from.session;
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
                memory_files: older.memory_files.clone(),
                scope: older.scope.clone(),
                exec_context: older.exec_context.clone(),
                plugins: older.programs.clone(),
            }
        };
        let spill = older.spill.as_ref().map(|spill| {
            let called = spill.called_folder().with_file_name(&id);
            Spill::new(spill.folder().with_file_name(&id)).called(called)
        });
        let policy = older.approval.policy();
        let programs = hidden_paths::programs(files.plugins, &policy, &older.bases, &files.scope);
        let session = Session {
            tools: older.tools.clone(),
            reserve: older.reserve.clone(),
            backend: files.backend,
            memory_files: files.memory_files,
            scope: files.scope,
            paths: older.paths,
            bases: older.bases.clone(),
            exec_context: files.exec_context.as_ref().map(ExecContext::part),
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
            approval: Arc::new(older.approval.for_new_session()),
            interrupt_on: older.interrupt_on.clone(),
            agent: None,
            outer: None,
            events: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            programs,
            plugins: Vec::new(),
            executables: Vec::new(),
            sources: Vec::new(),
            loaded: tokio::sync::OnceCell::new(),
            tools_from: Some(tools_from.clone()),
            origin: Arc::clone(&older.origin),
            id,
        };
        Ok(Self {
            session: Arc::new(session),
        })
    }
}
