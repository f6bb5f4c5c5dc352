//! What the toolsets promise together, through the built binary: the same answers
//! where they speak of the same thing, files in every backend, and no way out for a
//! path however it is spelled.
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test prepares its own folders and fails by panicking"
)]

mod backends;
mod channels;
mod equal;
mod places;
mod printed;
mod projects;
mod reload;
mod session;
mod shared;
mod spellings;
mod todos;
