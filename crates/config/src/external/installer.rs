//! Decides whether the user's own programs may start programs in the folder they work in.

use super::command::CommandLine;
use super::tools_folder::{self, Tier};
use super::{line, needs_trust, servers};
use crate::Settings;
use crate::trust::{Item, Pin, Trust};
use haft::Installer;
use haft::ops::scope::real;
use haft::ops::text::decode::visible;
use std::path::PathBuf;

/// Returns the item that lets the user's own programs start programs in this folder, if
/// the user has such programs.
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
        .map(|own| tools_folder::look(own, Tier::User, settings))
        .unwrap_or_default();
    let tools = tools.iter().filter(|tool| {
        tool.link_problem(super::folders(settings)).is_none()
            && super::own_tools::item_to_trust(tool, settings).is_none()
    });
    names.extend(tools.map(|tool| format!("{} (tool)", tool.name)));
    if names.is_empty() {
        return None;
    }
    let named = format!(
        "started by: {}; they get its network access and environment",
        names.join(", ")
    );
    Some(Item {
        remarks: vec![
            named,
            "their content is not checked: they may change later without asking again".to_owned(),
        ],
        ..started_by_own()
    })
}

/// Kind of the item for programs that the user's own programs start.
pub const STARTED: &str = "programs";

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

/// Returns the project's folders: the one to work in, and the current folder of the
/// process.
pub fn folders_of(settings: &Settings) -> Vec<PathBuf> {
    let project = [settings.paths.project().to_owned()];
    project
        .into_iter()
        .chain(settings.paths.current.clone())
        .collect()
}

/// Returns all folders whose programs the user's own programs may start only with trust.
fn guarded(settings: &Settings) -> Vec<PathBuf> {
    let roots = settings.paths.roots.iter();
    let roots = roots.map(|root| settings.paths.work_dir.join(root));
    let mut folders = folders_of(settings);
    folders.push(settings.paths.work_dir.clone());
    folders.extend(roots);
    folders
}

/// Returns those folders that are trusted. Each folder is trusted separately.
pub fn trusted_folders(settings: &Settings) -> Vec<PathBuf> {
    let state = settings.folders.state.as_deref();
    let mut folders = guarded(settings);
    folders.retain(|folder| Trust::load(state, folder, settings.trust).allows(&started_by_own()));
    folders
}

/// Returns the real paths of those folders that are not trusted.
fn closed(settings: &Settings) -> Vec<PathBuf> {
    let at = |path: &PathBuf| real(path).unwrap_or_else(|| path.clone());
    let trusted: Vec<PathBuf> = trusted_folders(settings).iter().map(at).collect();
    let mut closed: Vec<PathBuf> = guarded(settings).iter().map(at).collect();
    closed.retain(|folder| !trusted.iter().any(|free| folder.starts_with(free)));
    closed.sort();
    closed.dedup();
    closed
}

/// Returns the folders whose programs the sandbox prevents the user's own programs from
/// starting, if the user has such programs.
pub fn untrusted_folders(settings: &Settings) -> Vec<String> {
    let mut folders = closed(settings);
    folders.retain(|_| starting(settings).is_some());
    let shown = folders.iter().map(|folder| folder.display().to_string());
    shown.map(|folder| visible(&folder)).collect()
}

/// Returns the user as the installer of a program that needs no trust.
pub(super) fn installer(line: Option<&CommandLine>, settings: &Settings) -> Installer {
    let is_vouched = line.is_some_and(|line| line.is_vouched);
    match is_vouched || closed(settings).is_empty() {
        true => Installer::UserTrustingFolders,
        false => Installer::User,
    }
}

/// Returns the installer of a tool in a folder.
pub(super) fn installer_of(tier: Tier, settings: &Settings) -> Installer {
    match tier {
        Tier::Project => Installer::Project,
        Tier::User => installer(None, settings),
    }
}
