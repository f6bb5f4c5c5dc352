//! What tests of haft share, and tests of what is built on it: [`conformance`], the
//! suite that every backend must pass, yours too, the runner of the transcripts in
//! `docs/`, [`model`], a server that answers as a provider of models would, and [`http`], a
//! client that sees every byte of an answer. A test
//! may panic, so this crate may.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "test code: a failed expectation is a failed test"
)]

pub mod conformance;
pub mod http;
pub mod model;
pub mod transcript;
