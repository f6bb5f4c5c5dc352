//! Tools that are other programs.

pub(crate) mod executable;
pub(crate) mod plugin;

pub use executable::{Executable, Takes};
pub use plugin::{Check, Overrides, Plugin, Protocol};
