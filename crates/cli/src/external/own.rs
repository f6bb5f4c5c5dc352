//! Programs in the person's own `tools/`. They run in the work folder, so their first lines
//! are judged as the command lines of plugins are.

use super::command::{Line, Written};
use super::folder::{self, Found, Tier};
use crate::config::Settings;
use crate::config::plugins::{Environment, Whose};
use crate::trust::{Item, Pin};
use std::path::Path;

/// The command line of a program, as it is run without arguments.
fn line(tool: &Found, settings: &Settings) -> Line {
    let written = Written {
        program: &tool.path,
        arguments: &[],
        environment: &Environment::default(),
        dir: Some(&settings.work_dir),
        base: tool.path.parent().unwrap_or(Path::new("/")),
        whose: Whose::Person,
    };
    written.line(super::folders(settings))
}

/// The item to trust before a tool of the person's runs, if it would run something of the
/// project.
pub(super) fn item_to_trust(tool: &Found, settings: &Settings) -> Option<Item> {
    if tool.tier == Tier::Project || !tool.is_program() {
        return None;
    }
    let line = line(tool, settings);
    if line.reasons.is_empty() {
        return None;
    }
    let mut files = tool.files();
    super::add_interpreters(&mut files, &line.dir);
    Some(Item {
        pin: Pin {
            written: format!("run in {:?}", super::where_it_is(&line.dir)),
            files,
        },
        remarks: vec![format!("your own tool: {}", line.reasons.join(", "))],
        ..tool.item()
    })
}

/// Those of all tools of the person's, except those that are left out.
pub(super) fn needing_trust(settings: &Settings) -> Vec<Item> {
    let own = settings.folders.config.as_deref();
    let (mut tools, _) = own
        .map(|own| folder::look(own, Tier::Person))
        .unwrap_or_default();
    tools.retain(|tool| tool.leads_into(super::folders(settings)).is_none());
    let items = tools.iter();
    items
        .filter_map(|tool| item_to_trust(tool, settings))
        .collect()
}
