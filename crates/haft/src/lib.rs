//! The tool layer for language-model agents.
//!
//! A [`Runtime`] holds a toolset and any tools you add, and every call goes
//! through it in one straight line: arguments are repaired and validated, the
//! policy decides, the intent is recorded, the tool runs with a deadline, its
//! reply is cut to what a model can take with the whole kept aside, and the
//! result is recorded.
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

pub mod commands;
mod context;
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
mod state;
mod tool;
mod toolset;
pub mod toolsets;

pub use commands::Commands;
pub use context::Context;
pub use error::{Error, Invalid, Problem};
pub use event::{Event, EventKind};
pub use external::{
    Brought, Cache, Check, Executable, Memory, Overrides, Plugin, Programs, Protocol, Recheck,
    Source, Stamp, Standing, Start, Takes, foreign, free_name, protocol as plugin_protocol,
    time_limit,
};
pub use haft_ops as ops;
pub use haft_ops::Access;
pub use haft_ops::scope::Mode;
pub use journal::{Intent, Journal, MemoryJournal, Outcome};
pub use offered::{Mention, Offered};
pub use policy::{
    Act, BadRule, By, Decision, Draft, Judgement, Part, Place, Policy, Rule, RuleFile, Subject,
    Verdict, Whose,
};
pub use registry::{Duplicate, Tools};
pub use reply::{Content, Embedded, Reply};
pub use runtime::{
    Answer, Approve, Approver, Backing, BuildError, Builder, Call, Changes, Disk, Explained,
    Filled, Folders, Form, HeldFiles, Listed, Mark, Naming, Narrow, PromptFiles, Question, Refused,
    Runtime, Sibling,
};
pub use schema::{Fit, Repair, Shape, parse_arguments};
pub use state::State;
pub use tool::{AnyTool, Definition, Effect, FromSchema, Resource, Tool, erase};
pub use toolset::{CommandPlace, Guidance, Layout, Paths, Preset, Reach, Toolset};

/// The cutting and size functions that the toolsets use, for tools of your own.
pub mod truncate {
    pub use haft_ops::text::limit::{
        Cut, Hit, Keep, Limit, MAX_BYTES, MAX_LINES, middle, middle_of, truncate_head,
        truncate_tail,
    };
    pub use haft_ops::text::size::size as format_size;
}

/// What a tool file needs.
pub mod prelude {
    pub use crate::{Access, Context, Effect, Error, Mention, Reply, Resource, Tool};
    pub use schemars::JsonSchema;
    pub use serde::Deserialize;
    pub use serde_json::json;
}
