//! Tools of other MCP servers, through the built binary: servers over stdio and HTTP,
//! good ones and hostile ones; what they cannot do or break, and that nothing in a
//! project is contacted before the user trusts it.
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
mod handshakes;
mod hostile;
mod http;
mod own;
mod servers;
mod settings;
mod sign_in;
mod starts;
mod trust;
