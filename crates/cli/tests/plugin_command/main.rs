//! `haft plugin` with good and bad plugins, each really run.

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
