//! The built binary records, shows, undoes and reviews the changes of calls.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests make files and start the command, and fail by panicking"
)]

mod agents;
mod bed;
mod dangers;
mod exceptions;
mod later;
mod limits;
mod mcp;
mod mistakes;
mod programs;
mod reviews;
mod shown;
mod undone;
