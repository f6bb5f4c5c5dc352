//! Commands as haft runs them, with the built binary as their supervisor: how they end,
//! what is kept of their output, and that nothing outlives them.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests make files and start the command"
)]

mod conversations;
mod ends;
mod output;
mod processes;
mod stage;
mod trees;
