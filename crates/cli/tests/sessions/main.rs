//! Sessions are recorded, shown, exported and deleted by the built binary.
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
