//! Sub-agents, with scripted models and real tools.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and looks at the disk itself"
)]

mod approvals;
mod background;
mod bed;
mod limits;
mod nested;
mod rights;
#[expect(dead_code, reason = "shared with the tests of the loop")]
#[path = "../agent/scripted.rs"]
mod scripted;
mod work;
