//! The loop between a model and the tools: the model answers, its calls run, their results
//! go back to the model, until an answer has no calls.
//!
//! [`Model`] hides protocols, streams and keys of the providers. A conversation is a list of
//! [`Message`]s.

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
mod skills;
mod subagents;
mod tool_reply;
mod usage;

/// The port to the record of a session, and what is recorded.
pub use haft_store::record;

pub use agent::{
    Agent, ApprovalQuestion, BackgroundEvents, Busy, Events, Handle, LoadError, Resumed,
};
pub use event::{
    AgentEvent, Event, EventKind, Limit, VERSION as EVENTS_VERSION, schema as events_schema,
};
pub use format::ResponseFormat;
pub use hooks::{Hooks, NoHooks};
pub use instructions::{Instructions, instructions};
pub use memory::{Memory, MemoryFile, memory};
pub use message::{
    Message, ModelAnswer, OmissionReason, OmittedPicture, Origin, Part, Stop, ToolCall, ToolResult,
    UserInput,
};
pub use model::{Chunk, Model, ModelError, ModelErrorKind, ModelId, Request};
pub use prompt::{PLAN_NOTE, Prompt, system_prompt};
pub use skills::{SKILL as SKILL_TOOL, Skill, SkillFolder, Skills};
pub use subagents::{
    Child, GENERAL_PURPOSE, MakeAgent, ModelByName, PendingApproval, Records, Subagent,
    SubagentError, SubagentSetup, SubagentSpec, Subagents, TASK_TOOLS, tool_name,
};
pub use usage::{Price, Usage};
