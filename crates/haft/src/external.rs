//! Tools that are other programs.

pub(crate) mod executable;
pub(crate) mod plugin;

pub use executable::{Executable, Takes};
pub use plugin::{Check, Memory, Overrides, Plugin, Protocol, Stamp, protocol};
