//! What tests of haft share, and tests of what is built on it: [`conformance`], the
//! suite that every backend must pass, yours too, and the runner of the
//! transcripts in `docs/`. A test may panic, so this crate may.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "test code: a failed expectation is a failed test"
)]

pub mod conformance;
pub mod transcript;
