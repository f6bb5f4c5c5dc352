//! Sub-agents: agents that are tools of another agent. A sub-agent starts with an empty
//! conversation and a prompt, works on its own, and its last text is the reply.
//!
//! A sub-agent works in a session within its parent's session
//! ([`haft::Runtime::narrowed`]), under the same rules and with the same user. It has some of
//! the parent's tools, and others only if the user allows that
//! ([`SubagentSpec::may_exceed`]).

mod background;
mod background_run;
mod control;
mod dispatcher;
mod names;
mod observe;
mod pending;
mod reply;
mod tasks;
mod team;
mod tool;

pub(crate) use background::{Background, TaskUpdate};
pub use names::{GENERAL_PURPOSE, tool_name};
pub use pending::PendingApproval;
pub use team::{SubagentError, TASK_TOOLS};

use crate::{Agent, Model, ModelId};
use haft::Runtime;
use haft_store::record::SessionRecord;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Description of a sub-agent in the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubagentSpec {
    /// Name. The name of its tool is derived from it: see [`tool_name`].
    pub name: String,
    /// Purpose, for the model that may call it.
    pub description: String,
    /// Start of its system prompt.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// Name of its model. Default: the parent's model.
    #[serde(default)]
    pub model: Option<String>,
    /// Names of its tools, which the parent must have. Default: the file and todo tools of
    /// the toolset.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// Whether `tools` may include tools that the preset hides from the parent. Only the user
    /// can decide that, so it is not read from the configuration text.
    #[serde(skip)]
    pub may_exceed: bool,
    /// A JSON Schema that its last message must satisfy.
    #[serde(default)]
    pub response_format: Option<serde_json::Value>,
    /// Folders with skills for this sub-agent.
    #[serde(default)]
    pub skills: Vec<PathBuf>,
    /// Tools whose calls wait for approval, in addition to those that the rules ask about.
    #[serde(default)]
    pub interrupt_on: BTreeMap<String, bool>,
}

/// A sub-agent.
#[derive(Clone)]
pub enum Subagent {
    /// Created from a description.
    Spec(SubagentSpec),
    /// Created by the embedding program.
    Built {
        /// Name, from which the name of the tool is derived.
        name: String,
        /// Purpose, for the model that may call it.
        description: String,
        /// Creates the agent for each task.
        make: MakeAgent,
    },
}

impl From<SubagentSpec> for Subagent {
    fn from(spec: SubagentSpec) -> Self {
        Self::Spec(spec)
    }
}

/// Creates a sub-agent. The parent's model receives the error.
pub type MakeAgent = Arc<dyn Fn(SubagentSetup) -> Result<Agent, String> + Send + Sync>;

/// Input for creating a sub-agent.
#[derive(Clone)]
pub struct SubagentSetup {
    /// Session within the parent's, with its file and todo tools. An agent that uses a
    /// different runtime is not limited to the parent's rights.
    pub runtime: Runtime,
    /// The parent's model.
    pub model: Arc<dyn Model>,
}

/// Finds a model by its name.
pub type ModelByName = Arc<dyn Fn(&str) -> Result<Arc<dyn Model>, String> + Send + Sync>;

/// Configuration of an agent's sub-agents.
#[derive(Clone)]
pub struct Subagents {
    /// The sub-agents. `general_purpose` is added unless one of them has this name.
    pub agents: Vec<Subagent>,
    /// Finds models by the names in the descriptions.
    pub model_by_name: Option<ModelByName>,
    /// Records their conversations.
    pub records: Option<Arc<dyn Records>>,
    /// Added to each system prompt: the work folder and the project's instructions.
    pub surroundings: String,
    /// Maximum nesting depth. At 1, sub-agents cannot have sub-agents.
    pub max_depth: usize,
    /// Maximum number of sub-agents per depth that work in parallel; others wait. The same
    /// number may work in the background.
    pub max_at_once: usize,
}

impl Default for Subagents {
    fn default() -> Self {
        Self {
            agents: Vec::new(),
            model_by_name: None,
            records: None,
            surroundings: String::new(),
            max_depth: 2,
            max_at_once: 4,
        }
    }
}

/// The session of a sub-agent, for the record.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Child {
    /// Session id.
    pub id: String,
    /// Session id of the parent.
    pub parent: String,
    /// Call of the parent that started it.
    pub call_id: String,
    /// Name of the sub-agent's tool.
    pub kind: String,
    /// Provider and name of its model.
    pub model: ModelId,
    /// System prompt.
    pub system: String,
}

/// Records conversations of sub-agents.
pub trait Records: Send + Sync {
    /// Creates a session for a new sub-agent, or returns `None` to not record it.
    ///
    /// # Errors
    /// When the session cannot be created. Then the sub-agent does not start.
    fn begin(&self, child: &Child) -> Result<Option<Arc<dyn SessionRecord>>, String>;

    /// Restores the conversation of a recorded sub-agent into a new agent.
    ///
    /// # Errors
    /// When the session does not exist, cannot be read, or was not started by
    /// `child.parent`.
    fn restore(&self, agent: Agent, child: &Child) -> Result<Agent, String>;
}

impl Agent {
    /// Adds sub-agents: a tool for each of them, `task`, which starts or continues one, and the
    /// tools for background tasks. Sub-agents inherit the current settings, so call this
    /// last. Returns warnings about their skills.
    ///
    /// # Errors
    /// When a sub-agent uses unknown tools, or its name is taken.
    pub async fn subagents(
        self,
        subagents: Subagents,
    ) -> Result<(Self, Vec<String>), SubagentError> {
        let (team, warnings) = team::Team::gather(subagents, self.runtime()).await?;
        tool::add_tools(&Arc::new(team), &self, 0, None)?;
        Ok((self, warnings))
    }
}
