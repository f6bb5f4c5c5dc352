//! Programs in the user's own `tools/`. They run in the work folder, so the first lines
//! of scripts are checked like command lines of plugins.

use super::command::{CommandLine, WrittenCommand};
use super::tools_folder::{self, FoundTool, Tier};
use crate::Settings;
use crate::plugins::{AddedVariables, Owner};
use crate::trust::{Item, Pin};
use std::path::Path;

/// Returns the command line of a program, without arguments.
fn line(tool: &FoundTool, settings: &Settings) -> CommandLine {
    let written = WrittenCommand {
        program: &tool.path,
        arguments: &[],
        environment: &AddedVariables::default(),
        dir: Some(&settings.paths.work_dir),
        base: tool.path.parent().unwrap_or(Path::new("/")),
        owner: Owner::User,
        process: &settings.environment,
    };
    written.line(super::folders(settings))
}

/// Returns the item to trust, if a tool of the user's would run something in the project.
pub(super) fn item_to_trust(tool: &FoundTool, settings: &Settings) -> Option<Item> {
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
            written: format!("run in {:?}", super::real_path(&line.dir)),
            files,
        },
        remarks: vec![format!("your own tool: {}", line.reasons.join(", "))],
        ..tool.item()
    })
}

/// Returns the items to trust for all tools of the user's, except skipped ones.
pub(super) fn needing_trust(settings: &Settings) -> Vec<Item> {
    let own = settings.folders.config.as_deref();
    let (mut tools, _) = own
        .map(|own| tools_folder::look(own, Tier::User, settings))
        .unwrap_or_default();
    tools.retain(|tool| tool.link_problem(super::folders(settings)).is_none());
    let items = tools.iter();
    items
        .filter_map(|tool| item_to_trust(tool, settings))
        .collect()
}
