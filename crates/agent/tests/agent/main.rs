//! The loop, with a model that says what it was told to and real tools.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking"
)]

mod approvals;
mod bed;
mod format;
mod gone_on;
mod pictures;
mod recorded;
mod schema;
mod scripted;
mod turns;
