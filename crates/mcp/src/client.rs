//! Tools of other MCP servers, for a session of haft.
//!
//! A [`Remote`] says how a server is reached: a program that is spoken to over its
//! streams, or an address. [`RemoteServer`] is what a session is given; its tools join
//! the others under the same rules and limits. The server is started at the first call
//! where what it has is remembered, and again after it broke, up to five times in a row.
//!
//! ```no_run
//! # fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use haft_mcp::client::{Remote, RemoteServer};
//!
//! let docs = Remote::at("docs", "https://example.com/mcp")?;
//! let runtime = haft::Runtime::builder()
//!     .dir(".")
//!     .source(RemoteServer::new(docs)?)
//!     .build()?;
//! # Ok(())
//! # }
//! ```
//!
//! What a server says is somebody else's word: names are made plain, descriptions hide
//! nothing, schemas are checked before they are used, and a definition that is not the
//! one that was first seen is not offered until a person says so.

mod call;
mod connect;
mod content;
mod desk;
mod events;
mod handler;
mod host;
mod http;
mod listed;
mod offered;
mod remote;
mod report;
mod sign_in;
mod sse;
mod stdio;
mod tool;

pub use host::RemoteServer;
pub use listed::{Pins, Seen};
pub use remote::{Naming, Reach, Remote, SetupError, Wire};
pub use report::{Report, Unreached};
pub use sign_in::{Identity, Pending, SignInError, Tokens};
