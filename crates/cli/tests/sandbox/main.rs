//! Commands as a user runs them: the built binary, as root and as an ordinary
//! user, in a machine that can confine fully, partly, or not at all. What the
//! parts promise by themselves has tests of its own; these ask whether the whole
//! keeps it against programs that mean harm, or do it.
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
mod client;
mod closed;
mod ends;
mod environment;
mod files;
mod floods;
mod git;
mod input;
mod kills;
mod left;
mod levels;
mod long;
mod network;
mod processes;
mod protect;
mod renames;
mod turn;
mod waiting;
mod workspace;
