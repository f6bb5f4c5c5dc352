//! Operations on files and commands: the engine under haft's toolsets.
//!
//! Operations take typed requests and return facts. There is no JSON, no model and no
//! toolset wording here; `haft` adds those. Paths come from a [`Scope`], bytes from a
//! [`Backend`].

pub mod address_space;
pub mod backend;
pub mod beneath;
pub mod blocking;
pub mod edit;
pub mod effects;
mod error;
pub mod exec;
pub mod executor;
mod git;
pub mod glob;
pub mod list;
pub mod messenger;
pub mod picture;
pub mod private;
pub mod processes;
pub mod read;
pub mod remove;
pub mod scope;
pub mod search;
pub mod spill;
pub mod text;
pub mod write;

pub use backend::Backend;
pub use error::{Error, Lesson, Result};
pub use executor::Executor;
pub use messenger::Messenger;
pub use scope::{Access, FilePath, Scope};
