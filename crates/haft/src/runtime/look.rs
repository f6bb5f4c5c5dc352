//! What there is to see of a session.

use super::Runtime;
use crate::state::State;
use crate::{Definition, Effect, Tools, prompt};
use haft_ops::Scope;
use haft_ops::exec::Surroundings;
use haft_ops::spill::Spill;
use std::path::Path;

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

    /// The section of a prompt that tells a model about the tools.
    #[must_use]
    pub fn prompt_section(&self) -> String {
        prompt::section(&self.definitions(), &self.session.toolset)
    }

    /// How to use the tools, beyond their descriptions: what each says, and what the
    /// toolset says of them together.
    #[must_use]
    pub fn guidance(&self) -> String {
        prompt::guidance(&self.definitions(), &self.session.toolset)
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
