//! Sessions: acknowledged records survive kills and damage.
#![expect(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "all of it is test, which the lints see only in functions marked so"
)]

mod bed;
mod deleted;
mod files;
mod forks;
mod leases;
mod many;
mod model;
mod processes;
mod recorded;
mod session_files;
