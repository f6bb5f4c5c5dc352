//! Hostile and broken models, hooks, and processes killed at bad moments.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking"
)]

#[path = "../agent/bed.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod bed;
mod ends;
mod fixtures;
mod ids;
mod pending;
#[path = "../agent/scripted.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod scripted;
