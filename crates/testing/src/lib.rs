//! Test support for haft and for crates built on it:
//!
//! - [`conformance`]: the suite that every backend must pass, including your own
//! - [`transcript`]: runs the transcripts in `docs/`
//! - [`model`]: a server that acts as a model provider and follows a script
//! - [`http`]: an HTTP client that shows every byte of a response
//! - [`bed`]: folders and the program for tests of the command
//! - [`acp`]: a client of the Agent Client Protocol, and a table of cases for any agent
//!
//! Code in this crate may panic, because it only runs in tests.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "test code: a failed expectation is a failed test"
)]

pub mod acp;
pub mod bed;
pub mod conformance;
pub mod http;
pub mod model;
pub mod transcript;
