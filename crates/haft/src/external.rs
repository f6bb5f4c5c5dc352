//! Tools from other programs.

pub(crate) mod executable;
pub(crate) mod installer;
pub(crate) mod plugin;
mod printed;
pub(crate) mod recorded;
pub(crate) mod source;
pub(crate) mod time;

pub use executable::{Executable, Takes};
pub use installer::Installer;
pub use plugin::{
    Check, Memory, MessageForm, Overrides, Plugin, Programs, Protocol, Recheck, Stamp, Trace,
    TraceEvent,
};
pub use source::{Cache, Source, SourceTools, Start, foreign, foreign_reply, free_name};
pub use time::seconds as time_limit;
