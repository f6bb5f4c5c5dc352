//! `haft` as users and scripts run it: the built command, with its own home, in a scratch
//! folder.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests make files, start the command and fail by panicking"
)]

mod ah;
mod bad_config;
mod call;
mod closed;
mod config;
mod doctor;
mod help;
mod init;
mod modes;
mod policy;
mod printed;
mod scratch;
mod signals;
mod stderr;
mod tighten;
mod tools;
mod tour;
mod web;
mod wide;
