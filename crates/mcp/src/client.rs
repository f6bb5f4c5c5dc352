//! Tools of other MCP servers for a session of haft.
//!
//! A [`Remote`] describes how to reach a server: a program to start, or an address.
//! [`RemoteServer`] is the source that a session is given; its tools follow the same rules
//! and limits as all others. If the server's tools are cached, it is only started by the
//! first call. It is restarted after a crash, up to five times in a row.
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
//! Nothing that a server says is trusted: names are restricted to plain characters,
//! invisible characters in descriptions are escaped, schemas are checked before use, and a
//! tool whose definition has changed since it was first seen is not offered until the user
//! accepts the change.

mod call;
mod connect;
mod connection;
mod content;
mod dispatcher;
mod events;
mod fetcher;
mod handler;
mod http;
mod known;
mod remote;
mod report;
mod server;
mod server_calls;
mod sign_in;
mod sign_in_urls;
mod sse;
mod stdio;
mod tool;
mod tool_list;

pub use remote::{Endpoint, HttpTransport, Naming, Progress, Remote, SetupError};
pub use report::{Report, ReportError};
pub use server::RemoteServer;
pub use sign_in::{Identity, PendingSignIn, SignInError, Tokens};
pub use tool_list::{Pins, SeenTool};
