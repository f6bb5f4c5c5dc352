//! The tool layer for language-model agents.
//!
//! A [`Runtime`] holds a toolset and the tools you add to it. Every call takes the same
//! path: find the tool, repair and validate the arguments, check the policy, ask the user
//! if a rule says so, record the intent, run the tool under a deadline, truncate the reply
//! (the full output stays in a file), and record the outcome.
//!
//! ```
//! # use serde_json::json;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), haft::BuildError> {
//! let runtime = haft::Runtime::builder().dir(".").toolset("standard").build()?;
//! let reply = runtime.call("read", json!({ "path": "Cargo.toml" })).await;
//! assert!(reply.text().contains("[package]"));
//! # Ok(())
//! # }
//! ```
//!
//! To write a tool, implement [`Tool`] for a struct and pass it to [`Builder::tool`]. To
//! ask the user about calls, give the builder a [`Policy`] and an [`Approver`]. To record
//! calls, give it a [`Journal`].

pub mod commands;
mod context;
pub mod effects;
mod error;
mod event;
mod external;
pub mod guest;
mod journal;
pub mod json;
mod limit;
mod offered;
mod policy;
mod prompt;
mod queue;
mod registry;
mod reply;
mod runtime;
mod schema;
mod secret;
pub mod sse;
mod state;
mod tool;
mod toolset;
pub mod toolsets;
mod update;

pub use commands::Commands;
pub use context::Context;
pub use error::{Error, Invalid, Problem};
pub use event::{Event, EventKind};
pub use external::{
    Cache, Check, Executable, Installer, Memory, MessageForm, Overrides, Plugin, Programs,
    Protocol, Recheck, Source, SourceTools, Stamp, Start, Takes, Trace, TraceEvent, foreign,
    foreign_reply, free_name, time_limit,
};
pub use haft_ops as ops;
pub use haft_ops::Access;
pub use haft_ops::scope::Mode;
pub use journal::{Intent, Journal, MemoryJournal, Outcome};
pub use offered::{Mention, Offered};
pub use policy::{
    BadRule, ConnectionJudgement, Danger, DecidedBy, Decision, HOST_GROUPS, HostGroup, JudgedPart,
    Judgement, NETWORK, NetworkAccess, NetworkHost, OUTSIDE_WRITE, OpenHost, Policy, PolicyInput,
    Rule, RuleDraft, RuleFile, RuleLocation, RuleOwner, Subject, Suggestion, UNSANDBOXED, Verdict,
    host_and_port,
};
pub use registry::{Duplicate, Tools};
pub use reply::{Content, Embedded, Reply};
pub use runtime::{
    Admitted, ApprovalAnswer, Approve, Approver, Backing, BuildError, Builder, Call, Changes, Disk,
    Explained, Filled, Folders, Form, Listed, MemoryFiles, MemoryMark, Naming, Narrow, OwnRules,
    PromptFiles, Question, Refused, Review, Runtime, Sibling,
};
pub use schema::{ExampleParameters, Repair, ResultFit, ResultSchema, parse_arguments};
pub use secret::Secret;
pub use state::State;
pub use tool::{
    AnyTool, Definition, Effect, ForeignParts, FromSchema, PreparedCall, ReplyFuture, Resource,
    Tool, erase, prepared, read_arguments,
};
pub use toolset::{
    CommandPlace, Guidance, Layout, Paths, Preset, Reach, ReplyForm, StatusField, Toolset,
};
pub use update::{Progress, Update};

/// Functions that truncate text and format sizes, as the toolsets do.
pub mod truncate {
    pub use haft_ops::text::limit::{
        Cut, Hit, Keep, Limit, MAX_BYTES, MAX_LINES, middle, middle_of, truncate_head,
        truncate_tail,
    };
    pub use haft_ops::text::size::size as format_size;
}

/// Everything that the file of a tool usually imports.
pub mod prelude {
    pub use crate::{Access, Context, Effect, Error, Mention, Reply, Resource, Tool};
    pub use schemars::JsonSchema;
    pub use serde::Deserialize;
    pub use serde_json::json;
}
