//! Commands as a user runs them: the built binary, as root and as an ordinary user, on a
//! machine that can confine fully, partly, or not at all. Each part has its own tests;
//! these check the whole against malicious and careless programs.
#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests make trouble themselves, fail by panicking, and say what they skip"
)]

mod attacks;
mod bed;
mod bombs;
mod caches;
mod client;
mod closed;
mod ends;
mod environment;
mod files;
mod floods;
mod git;
mod git_config;
mod git_ssh;
mod hosts;
mod input;
mod kills;
mod left;
mod levels;
mod long;
mod network;
mod processes;
mod protect;
mod renames;
mod shut;
mod turn;
mod waiting;
mod workspace;
