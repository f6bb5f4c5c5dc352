//! The server from a client's point of view: raw lines through in-memory pipes.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that cannot go on has failed, and looks at the disk itself"
)]

mod asking;
mod calls;
mod client;
mod flow;
mod garbage;
mod http;
mod tools;
mod versions;
