//! The loop, with a scripted model and real tools.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking"
)]

mod approvals;
mod bed;
mod format;
mod pictures;
mod record;
mod resume;
mod schema;
mod scripted;
mod turns;
