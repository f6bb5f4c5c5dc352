#![expect(clippy::disallowed_methods, reason = "tests make their own files")]

mod bed;
mod killing;
mod others;
mod random;
mod recording;
pub(super) mod steps;
mod undoing;
