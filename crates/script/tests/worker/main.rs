//! Workers as haft starts them: one process each, with messages in lines.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a failing test panics; tests start what they test and look at it"
)]

mod calls;
mod full;
mod host;
mod limits;
mod lines;
mod many;
mod modules;
mod process;
mod pure;
