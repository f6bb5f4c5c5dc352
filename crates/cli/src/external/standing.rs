//! Whether the person's own programs may start programs of the folder they work in.

use super::command::Line;
use super::folder::{self, Tier};
use super::{line, needs_trust, servers};
use crate::config::Settings;
use crate::trust::{Item, Pin, Trust};
use haft::Standing;
use haft::ops::scope::real;
use haft::ops::text::decode::visible;
use std::path::PathBuf;

/// The entry for `haft trust` that lets the person's own programs start programs of this
/// folder. There is one only if they have such programs.
pub(super) fn starting(settings: &Settings) -> Option<Item> {
    let mut names: Vec<String> = Vec::new();
    for plugin in &settings.plugins {
        let line = line(plugin, settings);
        if !needs_trust(plugin, &line) && !line.is_vouched {
            names.push(format!("{} (plugin)", plugin.name));
        }
    }
    names.extend(servers::own_names(settings));
    let own = settings.folders.config.as_deref();
    let (tools, _) = own
        .map(|own| folder::look(own, Tier::Person))
        .unwrap_or_default();
    let tools = tools.iter().filter(|tool| {
        tool.leads_into(super::folders(settings)).is_none()
            && super::own::item_to_trust(tool, settings).is_none()
    });
    names.extend(tools.map(|tool| format!("{} (tool)", tool.name)));
    if names.is_empty() {
        return None;
    }
    let named = format!(
        "started by: {}; they get its network access and variables",
        names.join(", ")
    );
    Some(Item {
        remarks: vec![
            named,
            "their content is not checked: they may change later without a new question".to_owned(),
        ],
        ..started_by_own()
    })
}

/// The kind of the entry for programs that are started by the person's own.
pub(crate) const STARTED: &str = "programs";

fn started_by_own() -> Item {
    Item {
        kind: STARTED,
        name: "in this folder".to_owned(),
        shown: "programs here that your own plugins, MCP servers and tools may start".to_owned(),
        pin: Pin {
            written: "programs that are started by the person's own".to_owned(),
            files: Vec::new(),
        },
        remarks: Vec::new(),
    }
}

/// The folders of the project: the one that haft was told to work in, and the one that the
/// process is in.
pub(crate) fn folders_of(settings: &Settings) -> Vec<PathBuf> {
    let project = [settings.project().to_owned()];
    project
        .into_iter()
        .chain(settings.current.clone())
        .collect()
}

/// All folders whose programs the person's own programs may start only with trust.
fn guarded(settings: &Settings) -> Vec<PathBuf> {
    let roots = settings.roots.iter();
    let roots = roots.map(|root| settings.work_dir.join(root));
    let mut folders = folders_of(settings);
    folders.push(settings.work_dir.clone());
    folders.extend(roots);
    folders
}

/// Those of them whose programs the person's own programs may start: each folder is trusted
/// by itself, with what is in it.
pub(crate) fn trusted_folders(settings: &Settings) -> Vec<PathBuf> {
    let state = settings.folders.state.as_deref();
    let mut folders = guarded(settings);
    folders.retain(|folder| Trust::load(state, folder, settings.trust).allows(&started_by_own()));
    folders
}

/// Those of them that are not trusted, by where they really are.
fn closed(settings: &Settings) -> Vec<PathBuf> {
    let at = |path: &PathBuf| real(path).unwrap_or_else(|| path.clone());
    let trusted: Vec<PathBuf> = trusted_folders(settings).iter().map(at).collect();
    let mut closed: Vec<PathBuf> = guarded(settings).iter().map(at).collect();
    closed.retain(|folder| !trusted.iter().any(|free| folder.starts_with(free)));
    closed.sort();
    closed.dedup();
    closed
}

/// The folders whose programs the sandbox keeps the person's own programs from starting, if
/// they have such programs.
pub(crate) fn held_back(settings: &Settings) -> Vec<String> {
    let mut folders = closed(settings);
    folders.retain(|_| starting(settings).is_some());
    let shown = folders.iter().map(|folder| folder.display().to_string());
    shown.map(|folder| visible(&folder)).collect()
}

/// The standing of a program that needs no trust.
pub(super) fn standing(line: Option<&Line>, settings: &Settings) -> Standing {
    let is_vouched = line.is_some_and(|line| line.is_vouched);
    match is_vouched || closed(settings).is_empty() {
        true => Standing::Vouched,
        false => Standing::Own,
    }
}

/// The standing of a file in a folder of tools.
pub(super) fn standing_of(tier: Tier, settings: &Settings) -> Standing {
    match tier {
        Tier::Project => Standing::Guest,
        Tier::Person => standing(None, settings),
    }
}
