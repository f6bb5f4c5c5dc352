//! Agents that work for an agent, each a tool of it. One starts with nothing but what
//! it is asked, works on its own, and its last text is the reply.
//!
//! A sub-agent works in a session within that of the agent that asked it
//! ([`haft::Runtime::narrowed`]), under the same rules and the same person. It has the
//! tools it was given among those of that agent, and more only where the user says so
//! ([`SubagentSpec::may_exceed`]).

mod background;
mod control;
mod drive;
mod follow;
mod names;
mod reply;
mod start;
mod tasks;
mod team;
mod tool;
mod within;

pub(crate) use background::{Background, News};
pub use names::{GENERAL_PURPOSE, tool_name};
pub use team::{SubagentError, TASK_TOOLS};
pub use within::Waits;

use crate::{Agent, Model, ModelId};
use haft::Runtime;
use haft_store::sessions::Session;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A sub-agent as a configuration describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubagentSpec {
    /// Its name; its tool has it in the letters that names of tools are made of.
    pub name: String,
    /// What it is for: the model that may ask it reads this.
    pub description: String,
    /// What it is told first.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// Its model, by name; else that of the agent that asks it.
    #[serde(default)]
    pub model: Option<String>,
    /// Its tools, by name, among those of the agent that asks it; else the file and
    /// todo tools of the toolset.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// Whether `tools` may also name tools that the preset keeps from the agent itself.
    /// That is for the user to decide, so the text of a configuration cannot set it.
    #[serde(skip)]
    pub may_exceed: bool,
    /// A JSON Schema that its last message must satisfy.
    #[serde(default)]
    pub response_format: Option<serde_json::Value>,
    /// Folders of skills of its own.
    #[serde(default)]
    pub skills: Vec<PathBuf>,
    /// Tools whose calls wait for a person, besides those that do anyway.
    #[serde(default)]
    pub interrupt_on: BTreeMap<String, bool>,
}

/// A sub-agent.
#[derive(Clone)]
pub enum Subagent {
    /// Made from a description.
    Spec(SubagentSpec),
    /// Made by the program.
    Built {
        /// Its name.
        name: String,
        /// What it is for.
        description: String,
        /// Makes it, each time anew.
        make: MakeAgent,
    },
}

impl From<SubagentSpec> for Subagent {
    fn from(spec: SubagentSpec) -> Self {
        Self::Spec(spec)
    }
}

/// Makes an agent that works for another one. An error is what the other one is told.
pub type MakeAgent = Arc<dyn Fn(Start) -> Result<Agent, String> + Send + Sync>;

/// What an agent that works for another one is made from.
#[derive(Clone)]
pub struct Start {
    /// A session within that of the other one, with its file and todo tools. An agent
    /// that works in another session than this is not bound by the other one's rights.
    pub runtime: Runtime,
    /// The model of the other one.
    pub model: Arc<dyn Model>,
}

/// Finds a model by its name.
pub type ModelByName = Arc<dyn Fn(&str) -> Result<Arc<dyn Model>, String> + Send + Sync>;

/// The sub-agents of an agent.
#[derive(Clone)]
pub struct Subagents {
    /// Which. `general_purpose` is there too, unless one of them has its name.
    pub agents: Vec<Subagent>,
    /// Finds the models that they name.
    pub model_by_name: Option<ModelByName>,
    /// Where what is said in them is recorded.
    pub records: Option<Arc<dyn Records>>,
    /// What each of them is told besides: where it works, what the project wants.
    pub surroundings: String,
    /// How deeply they may ask each other: at 1, sub-agents have none of their own.
    pub max_depth: usize,
    /// How many of one depth work at once; the others wait for their turn. As many more
    /// may work in the background.
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

/// A sub-agent at work, as a record knows it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Child {
    /// The id of its session.
    pub id: String,
    /// The session of the agent that asked it.
    pub parent: String,
    /// The call of that one that started it.
    pub call_id: String,
    /// Which sub-agent it is, by the name of its tool.
    pub kind: String,
    /// The model.
    pub model: ModelId,
    /// What it was told first.
    pub system: String,
}

/// Where conversations of sub-agents are recorded.
pub trait Records: Send + Sync {
    /// Begins the record of a new one; nothing, if it is not to be recorded.
    ///
    /// # Errors
    /// When it cannot be: then the sub-agent does not start.
    fn begin(&self, child: &Child) -> Result<Option<Session>, String>;

    /// Gives an agent that was just made what was said in its session before.
    ///
    /// # Errors
    /// When there is no such session, when `child.parent` did not start it, or when it
    /// cannot be read.
    fn restore(&self, agent: Agent, child: &Child) -> Result<Agent, String>;
}

impl Agent {
    /// Gives it sub-agents: a tool for each, `task`, which starts one or goes on with one,
    /// and the tools for those in the background. They work as this agent is set up now, so say this last. The texts are
    /// warnings about their skills.
    ///
    /// # Errors
    /// When a sub-agent names tools that are not there, or its name is taken.
    pub async fn subagents(
        self,
        subagents: Subagents,
    ) -> Result<(Self, Vec<String>), SubagentError> {
        let (team, warnings) = team::Team::gather(subagents, self.runtime()).await?;
        tool::seat(&Arc::new(team), &self, 0, None)?;
        Ok((self, warnings))
    }
}
