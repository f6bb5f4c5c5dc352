//! The toolsets there are. A new one is a folder and a line here.

mod advice;
pub mod ah;
pub mod deepagents;
mod document;
mod line;
pub mod standard;
pub mod workspace;

use crate::Toolset;

/// The names of all toolsets; the first one is the default.
pub const NAMES: &[&str] = &["standard", "workspace", "deepagents", "ah"];

/// A toolset by its name.
#[must_use]
pub fn by_name(name: &str) -> Option<Toolset> {
    match name {
        "standard" => Some(standard::toolset()),
        "workspace" => Some(workspace::toolset()),
        "deepagents" => Some(deepagents::toolset()),
        "ah" => Some(ah::toolset()),
        _ => None,
    }
}
