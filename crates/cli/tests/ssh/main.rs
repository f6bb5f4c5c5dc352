//! Commands on a host, with a real ssh to a real sshd on this machine: how they end, their
//! output, what is refused, and that nothing outlives haft there.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests make files and start the server"
)]

mod ends;
mod host;
mod output;
mod refused;
mod settings;
mod stage;
mod trees;
