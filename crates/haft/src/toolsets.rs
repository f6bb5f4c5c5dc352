//! The built-in toolsets. A new one is a folder and a line in `TOOLSETS`.

mod advice;
pub mod ah;
pub mod deepagents;
mod document;
mod line;
mod missing;
pub mod standard;
pub mod workspace;

use crate::Toolset;

/// Creates a toolset.
type Make = fn() -> Toolset;

/// All toolsets; the first one is the default.
const TOOLSETS: [(&str, Make); 4] = [
    ("standard", standard::toolset),
    ("workspace", workspace::toolset),
    ("deepagents", deepagents::toolset),
    ("ah", ah::toolset),
];

/// Names of all toolsets; the first one is the default.
pub const NAMES: &[&str] = &names();

const fn names() -> [&'static str; TOOLSETS.len()] {
    let mut names = [""; TOOLSETS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = TOOLSETS[at].0;
        at += 1;
    }
    names
}

/// Returns the toolset with the given name.
#[must_use]
pub fn by_name(name: &str) -> Option<Toolset> {
    let found = TOOLSETS.iter().find(|(known, _)| *known == name);
    found.map(|(_, make)| make())
}
