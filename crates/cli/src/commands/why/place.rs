//! Where a call would run: what the sandbox lets it touch.

use crate::config::Settings;
use haft::ops::scope::{Reading, Writing};

/// What the mode allows, a sentence each.
pub(super) fn where_it_runs(settings: &Settings) -> Vec<String> {
    let reading = match settings.rules.reading {
        Reading::Anywhere => "reads what the operating system allows",
        Reading::NotSecret => "reads anywhere but secret places",
        Reading::RootsAndSystem => "reads the work folder, tools.roots and system folders",
        Reading::Roots => "reads the work folder and tools.roots",
    };
    let writing = match settings.rules.writing {
        Writing::Anywhere => "writes what the operating system allows, but for protected places",
        Writing::Roots => "writes the work folder and tools.roots, but for protected places",
        Writing::Nothing => "writes nothing",
    };
    vec![
        format!("sandbox {}: {reading}", settings.mode),
        format!("sandbox {}: {writing}", settings.mode),
    ]
}
