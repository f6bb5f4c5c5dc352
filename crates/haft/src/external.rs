//! Tools that are other programs.

pub(crate) mod plugin;

pub use plugin::{Plugin, Protocol, protocol};
