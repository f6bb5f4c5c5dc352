//! Access to the parts of a session.

use super::hidden_paths::Known;
use super::{Runtime, exceptions};
use crate::journal::Journal;
use crate::state::State;
use crate::toolset::{CommandPlace, Layout, ReplyForm};
use crate::{Access, Definition, Effect, Error, Offered, Paths, Tools, prompt};
use haft_ops::exec::ExecContext;
use haft_ops::spill::Spill;
use haft_ops::{Backend, FilePath, Scope};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Runtime {
    /// Returns the registry of tools, which can be changed.
    #[must_use]
    pub fn tools(&self) -> &Tools {
        &self.session.tools
    }

    /// Returns the journal of the session, if there is one.
    #[must_use]
    pub fn journal(&self) -> Option<&Arc<dyn Journal>> {
        self.session.journal.as_ref()
    }

    /// Returns the definitions of all tools as the model sees them, in order.
    #[must_use]
    pub fn definitions(&self) -> Vec<Definition> {
        self.definitions_for(false)
    }

    /// Same as [`Runtime::definitions`], for a caller that brings its own approver for each
    /// call, if `asks`. Where the user can be asked, tools that run commands have a parameter
    /// to request access beyond the sandbox.
    #[must_use]
    pub fn definitions_for(&self, asks: bool) -> Vec<Definition> {
        let mut definitions = self.session.tools.definitions();
        for definition in &mut definitions {
            let entry = self.session.tools.entry(&definition.name);
            if entry.is_some_and(|entry| self.offers_exceptions(&entry, asks)) {
                definition.parameters = exceptions::with_parameter(&definition.parameters);
            }
        }
        definitions
    }

    /// Returns the tools that the model has, for advice that mentions some of them.
    #[must_use]
    pub fn offered(&self) -> Offered {
        Offered::new(self.session.tools.names())
    }

    /// Checks a path as the file tools do: in the toolset's style, against the scope, and
    /// for reading also against the policy. For hosts that show a file to the model.
    ///
    /// # Errors
    /// When the scope or a rule does not allow it.
    pub fn resolve(&self, given: &str, access: Access) -> Result<FilePath, Error> {
        let session = &self.session;
        let path = session
            .shared
            .toolset
            .paths
            .resolve(&session.scope, given, access)?;
        if access == Access::Read {
            let names = session.tools.names();
            let mut readers = names
                .iter()
                .filter(|name| self.effect_of(name) == Some(Effect::Read));
            let is_closed = |tool: &String| {
                let judged = session.judged(tool, path.clone(), Known::Found);
                judged.exclusion().is_some()
            };
            if readers.any(is_closed) {
                return Err(Error::Denied {
                    reason: format!("a rule denies tools access to {given}"),
                });
            }
        }
        Ok(path)
    }

    /// Returns the backend, where files live.
    #[must_use]
    pub fn backend(&self) -> &dyn Backend {
        &*self.session.backend
    }

    /// Whether paths belong to a virtual tree.
    #[must_use]
    pub fn has_virtual_paths(&self) -> bool {
        self.session.shared.toolset.paths == Paths::Virtual
    }

    /// Returns the section of the system prompt about the tools.
    #[must_use]
    pub fn prompt_section(&self) -> String {
        let definitions = self.definitions();
        let layout = self.layout(&definitions);
        prompt::section(&definitions, &self.session.shared.toolset, &layout)
    }

    /// Returns guidance on using the tools, in addition to their descriptions: that of each
    /// tool, then that of the toolset.
    #[must_use]
    pub fn guidance(&self) -> String {
        let definitions = self.definitions();
        let layout = self.layout(&definitions);
        prompt::guidance(&definitions, &self.session.shared.toolset, &layout)
    }

    /// Returns the prompt lines about where files are and what the sandbox allows; empty
    /// without tools.
    fn layout(&self, definitions: &[Definition]) -> Vec<String> {
        let session = &self.session;
        let names = definitions.iter().map(|tool| tool.name.as_str());
        let tools: Vec<&str> = names.collect();
        if tools.is_empty() {
            return Vec::new();
        }
        let mut lines = (session.shared.toolset.layout)(&Layout {
            scope: &session.scope,
            commands: match &session.exec_context {
                None => CommandPlace::Nowhere,
                Some(exec_context) if exec_context.remote_folder.is_some() => {
                    CommandPlace::Elsewhere
                }
                Some(_) => CommandPlace::Here,
            },
            tools: &tools,
        });
        lines.extend(self.sandbox_lines());
        lines
    }

    /// Returns the work folder as tools name it: `/` in a virtual tree.
    #[must_use]
    pub fn work_dir(&self) -> PathBuf {
        self.session.scope.named_work_dir()
    }

    /// Returns the values that tools store between calls.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.session.state
    }

    /// Returns the most that a call of this tool can do, if the tool exists.
    #[must_use]
    pub fn effect_of(&self, tool: &str) -> Option<Effect> {
        Some(self.session.tools.get(tool)?.effect())
    }

    /// Returns the effect of a reserved tool: one that the toolset has but the preset
    /// leaves out. [`Narrow::granted`](crate::Narrow::granted) can grant it.
    #[must_use]
    pub fn reserved(&self, tool: &str) -> Option<Effect> {
        Some(self.session.shared.reserve.get(tool)?.effect())
    }

    /// Returns the folder with the full outputs of truncated replies.
    #[must_use]
    pub fn outputs(&self) -> Option<&Path> {
        self.session.spill.as_ref().map(Spill::folder)
    }

    /// Returns how to run programs that are tools or provide tools, if the session can.
    #[must_use]
    pub fn programs(&self) -> Option<&crate::Programs> {
        self.session.programs.as_ref()
    }

    /// Returns the record of what calls of this session changed, if they are recorded.
    #[must_use]
    pub fn effects(&self) -> Option<&haft_ops::effects::Session> {
        self.session.effects.as_ref()
    }

    /// Returns the id of the session.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.session.id
    }

    /// Returns the scope: the roots and path rules of the session.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.session.scope
    }

    /// Returns how commands are run, if the session can run them.
    #[must_use]
    pub fn exec_context(&self) -> Option<&ExecContext> {
        self.session.exec_context.as_ref()
    }

    /// Returns the form of all replies of the toolset.
    #[must_use]
    pub fn reply_form(&self) -> ReplyForm {
        self.session.shared.toolset.replies
    }

    /// Returns the name of the toolset.
    #[must_use]
    pub fn toolset(&self) -> &'static str {
        self.session.shared.toolset.name
    }
}
