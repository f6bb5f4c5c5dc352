//! haft's tools over the Model Context Protocol.
//!
//! A [`Server`] offers the tools of a [`haft::Runtime`] to one client over a
//! pair of byte streams, one JSON message a line. Names, descriptions and
//! schemas are exactly the toolset's, and every call goes through the runtime
//! like any other.
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
//! The protocol's messages and versions are those of rmcp, which stays inside
//! this crate. What is ours is the transport, because a tool server has to
//! outlive whatever is written to it: garbage is answered, a line that is too
//! long is skipped, and the end of input ends the calls that still run.

mod call;
pub mod client;
mod connection;
mod elicit;
mod gate;
mod handler;
mod http;
mod link;
mod progress;
mod random;
mod ready;
mod server;
mod stdio;
mod transport;
mod turn;
mod wire;

pub use http::{BindError, HttpLimits, HttpServer, HttpSettings, Token};
pub use server::{ServeError, Server, ServerName, ToolsChanged, serve_stdio};
