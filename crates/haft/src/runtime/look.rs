//! What there is to see of a session.

use super::Runtime;
use super::closing::Known;
use crate::state::State;
use crate::toolset::{CommandPlace, Layout};
use crate::{Access, Definition, Effect, Error, Offered, Paths, Tools, prompt};
use haft_ops::exec::Surroundings;
use haft_ops::spill::Spill;
use haft_ops::{Backend, FilePath, Scope};
use std::path::{Path, PathBuf};

impl Runtime {
    /// The tools, to look at and to change.
    #[must_use]
    pub fn tools(&self) -> &Tools {
        &self.session.tools
    }

    /// What a model sees of the tools, in order.
    #[must_use]
    pub fn definitions(&self) -> Vec<Definition> {
        self.session.tools.definitions()
    }

    /// The tools that a model has, for advice that names some of them.
    #[must_use]
    pub fn offered(&self) -> Offered {
        Offered::new(self.session.tools.names())
    }

    /// Checks a path as the file tools would: as the toolset writes paths, by the scope,
    /// and for reading by the rules of the policy too. For hosts that put a file before a
    /// model.
    ///
    /// # Errors
    /// When the scope or a rule does not admit it.
    pub fn resolve(&self, given: &str, access: Access) -> Result<FilePath, Error> {
        let session = &self.session;
        let path = session.paths.resolve(&session.scope, given, access)?;
        if access == Access::Read {
            let names = session.tools.names();
            let mut readers = names
                .iter()
                .filter(|name| self.effect_of(name) == Some(Effect::Read));
            let is_closed = |tool: &String| {
                let judged = session.judged(tool, path.clone(), Known::Found);
                judged.closed().is_some()
            };
            if readers.any(is_closed) {
                return Err(Error::Denied {
                    reason: format!("a rule closes {given} to the tools"),
                });
            }
        }
        Ok(path)
    }

    /// Where the files of the session live.
    #[must_use]
    pub fn backend(&self) -> &dyn Backend {
        &*self.session.backend
    }

    /// Whether paths are those of a tree of its own.
    #[must_use]
    pub fn has_a_tree(&self) -> bool {
        self.session.paths == Paths::Virtual
    }

    /// The section of a prompt that tells a model about the tools.
    #[must_use]
    pub fn prompt_section(&self) -> String {
        let definitions = self.definitions();
        let layout = self.layout(&definitions);
        prompt::section(&definitions, &self.session.toolset, &layout)
    }

    /// How to use the tools, beyond their descriptions: what each says, and what the
    /// toolset says of them together.
    #[must_use]
    pub fn guidance(&self) -> String {
        let definitions = self.definitions();
        let layout = self.layout(&definitions);
        prompt::guidance(&definitions, &self.session.toolset, &layout)
    }

    /// Where the files are, in the toolset's words; nothing without tools.
    fn layout(&self, definitions: &[Definition]) -> Vec<String> {
        let session = &self.session;
        let names = definitions.iter().map(|tool| tool.name.as_str());
        let tools: Vec<&str> = names.collect();
        if tools.is_empty() {
            return Vec::new();
        }
        (session.toolset.layout)(&Layout {
            scope: &session.scope,
            commands: match &session.surroundings {
                None => CommandPlace::Nowhere,
                Some(surroundings) if surroundings.elsewhere.is_some() => CommandPlace::Elsewhere,
                Some(_) => CommandPlace::Here,
            },
            tools: &tools,
        })
    }

    /// The work folder as the tools name it: `/` where they have a tree of their own.
    #[must_use]
    pub fn work_dir(&self) -> PathBuf {
        self.session.scope.named_work_dir()
    }

    /// What tools remember between calls.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.session.state
    }

    /// What a call can do to the world at most; nothing for a tool that is not there.
    #[must_use]
    pub fn effect_of(&self, tool: &str) -> Option<Effect> {
        Some(self.session.tools.get(tool)?.effect())
    }

    /// Effect of a tool that the session has in reserve: the toolset has it, and the
    /// preset leaves it out. [`Narrow::granted`](crate::Narrow::granted) can hand it out.
    #[must_use]
    pub fn reserved(&self, tool: &str) -> Option<Effect> {
        Some(self.session.reserve.get(tool)?.effect())
    }

    /// Where outputs are kept that a reply has only a part of.
    #[must_use]
    pub fn outputs(&self) -> Option<&Path> {
        self.session.spill.as_ref().map(Spill::folder)
    }

    /// How programs are run that are tools or bring some, where that was said.
    #[must_use]
    pub fn programs(&self) -> Option<&crate::Programs> {
        self.session.programs.as_ref()
    }

    /// The id of the session.
    #[must_use]
    pub fn session(&self) -> &str {
        &self.session.id
    }

    /// Which files there may be.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.session.scope
    }

    /// How commands run here; nothing when they cannot.
    #[must_use]
    pub fn surroundings(&self) -> Option<&Surroundings> {
        self.session.surroundings.as_ref()
    }

    /// The name of the toolset.
    #[must_use]
    pub fn toolset(&self) -> &'static str {
        self.session.toolset.name
    }
}
