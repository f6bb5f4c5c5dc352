//! The loop between a model and the tools: the model answers, its calls run, their
//! results go back, until it has nothing more to call.
//!
//! A [`Model`] is whoever answers; everything below it (protocols, streams, keys) is
//! behind that trait. A conversation is a list of [`Said`].

mod agent;
mod event;
mod format;
mod hooks;
mod instructions;
mod memory;
mod message;
mod model;
mod prompt;
pub mod provider;
mod shape;
mod skills;
mod subagents;
mod usage;

pub use agent::{Agent, Asked, BackgroundEvents, Busy, Events, Handle, LoadError, Resumed};
pub use event::{
    AgentEvent, Event, EventKind, Limit, VERSION as EVENTS_VERSION, schema as events_schema,
};
pub use format::ResponseFormat;
pub use hooks::{Hooks, NoHooks};
pub use instructions::{Instructions, instructions};
pub use memory::{Memory, MemoryFile, memory};
pub use message::{Answer, LeftOut, Message, Origin, Part, Said, Stop, ToolCall, ToolResult};
pub use model::{Model, ModelError, ModelId, Piece, Request, Trouble};
pub use prompt::{Prompt, system_prompt};
pub use skills::{SKILL as SKILL_TOOL, Skill, SkillFolder, Skills};
pub use subagents::{
    Child, GENERAL_PURPOSE, MakeAgent, ModelByName, Records, Start, Subagent, SubagentError,
    SubagentSpec, Subagents, TASK_TOOLS, Waits, tool_name,
};
pub use usage::{Price, Usage};
