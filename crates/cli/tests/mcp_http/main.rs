//! `haft mcp --http` as clients see it: the built binary, through sockets.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests make files and start the command"
)]

mod bed;
mod ends;
mod floods;
mod sessions;
mod start;
