//! haft's tools over the Model Context Protocol.
//!
//! A [`Server`] offers the tools of a [`haft::Runtime`] to one client over a pair of byte
//! streams, with one JSON message per line. Names, descriptions and schemas are exactly
//! those of the toolset, and every call goes through the runtime like any other.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use haft_mcp::{Server, ServerName};
//! use tokio_util::sync::CancellationToken;
//!
//! let runtime = haft::Runtime::builder().dir(".").build()?;
//! let server = Server::new(runtime, ServerName::new("haft", "0.1.0"));
//! server.serve_stdio(CancellationToken::new()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Message types and protocol versions come from rmcp, which no other crate sees. The
//! transport is our own, because a tool server has to survive any input: invalid messages
//! get an error, lines that are too long are skipped, and the end of input ends the calls
//! that are still running.

mod call;
mod call_order;
pub mod client;
mod connection;
mod elicit;
mod gate;
mod handler;
mod http;
mod link;
mod polled_fd;
mod progress;
mod random;
mod server;
mod stdio;
mod transport;
mod wire;

/// Lines of bounded length from standard input, for other protocols with one JSON message per
/// line.
pub mod lines {
    pub use crate::stdio::{Input, input};
    pub use crate::transport::{InputLine, Lines, MAX_LINE};
}

pub use http::{BindError, HttpLimits, HttpServer, HttpSettings, Token};
pub use server::{ServeError, Server, ServerName, ToolsChanged, serve_stdio};
