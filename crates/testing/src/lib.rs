//! What haft's own tests share: the suite every backend must pass, and the
//! runner of the transcripts in `docs/`. A test may panic, so this crate may.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "test code: a failed expectation is a failed test"
)]

pub mod conformance;
pub mod transcript;
