//! Tools of other MCP servers, through the built binary: servers over streams and over
//! HTTP, good ones and hostile ones; what they are kept from, what they cannot break,
//! and that nothing of a project is reached before somebody said yes to it.
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test prepares its own folders and fails by panicking"
)]

#[path = "../plugins/bed.rs"]
#[allow(dead_code, reason = "the bed of plugins has more than is needed here")]
mod bed;
#[path = "../plugins/session.rs"]
#[allow(
    dead_code,
    reason = "the session of plugins has more than is needed here"
)]
mod session;

mod calls;
mod changes;
mod commands;
mod ends;
mod execution;
mod hostile;
mod http;
mod servers;
mod settings;
mod sign_in;
mod trust;
