//! A session next to another one: it shares tools, rules and folders, and nothing else.

use super::build::{BuildError, Factory, is_plain, session_id};
use super::files::{Backing, FileSetup, Files};
use super::{Runtime, Session, hidden_paths};
use crate::journal::Journal;
use crate::toolset::Toolset;
use haft_ops::exec::ExecContext;
use std::sync::Arc;

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
        let mut files = match older.shared.origin.is_of_a_session() {
            true => older.shared.origin.files(&id, &older.shared.toolset)?,
            false => older.files(),
        };
        let policy = older.approval.policy();
        let bases = &older.shared.bases;
        files.programs = hidden_paths::programs(files.programs, &policy, bases, &files.scope);
        files.exec_context = files.exec_context.as_ref().map(ExecContext::part);
        let spill = older.spill_beside(&id);
        let shared = Arc::clone(&older.shared);
        let session = Session {
            journal: sibling.journal,
            spill,
            approval: Arc::new(older.approval.for_new_session()),
            interrupt_on: older.interrupt_on.clone(),
            tools_from: Some(tools_from.clone()),
            ..Session::new(shared, id, older.tools.clone(), files)
        };
        Ok(session.start())
    }
}
