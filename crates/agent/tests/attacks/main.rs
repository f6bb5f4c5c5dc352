//! What a hostile or broken model, hook or moment could do to an agent, and may not.
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
mod ids;
mod kept;
mod open;
#[path = "../agent/scripted.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod scripted;
