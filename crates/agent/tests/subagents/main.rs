//! Agents that work for an agent, with models that say what they were told to and real
//! tools.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod approvals;
mod bed;
mod limits;
mod rights;
#[expect(dead_code, reason = "shared with the tests of the loop")]
#[path = "../agent/scripted.rs"]
mod scripted;
mod work;
