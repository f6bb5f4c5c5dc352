//! Common guarantees of the toolsets, with the built binary: the same replies to the same
//! calls, files in every backend, and no escape for any spelling of a path.
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test prepares its own folders and fails by panicking"
)]

mod backends;
mod channels;
mod equal;
mod mistakes;
mod places;
mod printed;
mod projects;
mod provider_schemas;
mod reload;
mod session;
mod shared;
mod spellings;
mod todos;
