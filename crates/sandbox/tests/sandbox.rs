//! The built program: alone over MCP, and as part of a session of the built `haft`.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test prepares files itself, and fails by panicking"
)]

#[path = "sandbox/bash.rs"]
mod bash;
#[path = "sandbox/bed.rs"]
mod bed;
#[path = "sandbox/hostile.rs"]
mod hostile;
#[path = "sandbox/packages.rs"]
mod packages;
#[path = "sandbox/python.rs"]
mod python;
#[path = "sandbox/recipe.rs"]
mod recipe;
#[path = "sandbox/session.rs"]
mod session;
