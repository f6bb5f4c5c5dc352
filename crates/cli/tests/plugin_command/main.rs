//! `haft plugin` as people meet it: good plugins and bad ones, each really run.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests make files and start the command"
)]

mod bad;
mod bed;
mod good;
mod log;
mod new;
mod options;
