//! What was said and done is recorded, shown, exported and deleted by the built command.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests make files and start the command, and fail by panicking"
)]

mod bed;
mod calls;
mod deleted;
mod exported;
mod server;
mod shown;
