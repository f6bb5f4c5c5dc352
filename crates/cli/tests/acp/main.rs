//! `haft acp` over standard input and output, as editors use it.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests look at files themselves, and fail by panicking"
)]

mod background;
mod bed;
mod hostile;
mod order;
mod prompts;
mod questions;
mod replay;
mod servers;
mod sessions;
mod settings;
mod suite;
mod version_2;
