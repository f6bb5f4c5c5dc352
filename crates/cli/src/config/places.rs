//! Folders: where haft works, where else it may, what it never writes.

use super::layer::{Layer, Role};
use super::sources::{Given, Origin, Sources, in_layer};
use super::yaml::{Node, Place};
use crate::args::Shared;
use crate::env;
use crate::exit::Failure;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A file or folder that is named somewhere.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) path: PathBuf,
    /// How it is shown: as it is written, if there are variables in it.
    pub(crate) shown: String,
}

impl Named {
    fn new(path: PathBuf, text: &Text) -> Self {
        let shown = if text.value == text.written {
            path.to_string_lossy().into_owned()
        } else {
            text.written.clone()
        };
        Self { path, shown }
    }

    fn plain(path: PathBuf) -> Self {
        Self::new(path, &Text::default())
    }
}

/// Who chose the work folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chosen {
    ByPerson,
    /// It is where haft happened to be started, or what a project says.
    ByNobody,
}

/// A text of a file: with its variables expanded, and as it is written there.
#[derive(Debug, Default)]
struct Text {
    value: String,
    written: String,
}

/// The folder haft was told to work in, or was started in.
pub(crate) fn here(flags: &Shared, current: &Path) -> Result<(PathBuf, Origin), Failure> {
    let (given, from) = match (&flags.dir, env::variable("HAFT_DIR")) {
        (Some(dir), _) => (dir.clone(), Origin::Flag("--dir")),
        (None, Some(dir)) => (PathBuf::from(dir), Origin::Variable("HAFT_DIR")),
        (None, None) => return Ok((current.to_owned(), Origin::Default)),
    };
    let dir = current.join(&given);
    if dir.is_dir() {
        Ok((dir, from))
    } else {
        Err(Failure::usage(format!(
            "{from}: there is no folder {}",
            given.display()
        )))
    }
}

/// Whether the folder of the process is a project beside the one to work in. Clients often
/// start haft in `/` or the home folder, which are not a project.
pub(crate) fn is_another_project(current: &Path, started: &Path) -> bool {
    let real = |path| haft::ops::scope::real(path);
    real(current) != real(started) && super::wide::what(current).is_none()
}

/// The work folder, and who chose it.
pub(crate) fn work_dir(
    sources: &Sources<'_>,
    here: (PathBuf, Origin),
    home: Option<&Path>,
) -> Result<(Named, Origin, Chosen), Failure> {
    if here.1 != Origin::Default {
        return Ok((Named::plain(here.0), here.1, Chosen::ByPerson));
    }
    for layer in &sources.layers {
        if let Some(node) = layer.get("tools.work_dir") {
            let given = in_layer(layer, "tools.work_dir", node)?;
            let text = text(&given.value, &given.written);
            let dir = below(&layer.folder, &text, home, layer, node.at)?;
            let dir = usable(layer, node, &dir, &text.written)?;
            not_of_settings(layer, node, &dir, &text.written)?;
            let chosen = match layer.role {
                Role::Project => Chosen::ByNobody,
                Role::User | Role::Named => Chosen::ByPerson,
            };
            return Ok((Named::new(dir, &text), given.from, chosen));
        }
    }
    Ok((Named::plain(here.0), here.1, Chosen::ByNobody))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the work folder is judged before there is a scope"
)]
fn usable(layer: &Layer, node: &Node, dir: &Path, written: &str) -> Result<PathBuf, Failure> {
    let real = std::fs::canonicalize(dir).ok().filter(|real| real.is_dir());
    let Some(real) = real else {
        return Err(layer.problem(
            node.at,
            &format!("tools.work_dir: there is no folder {written}"),
        ));
    };
    if layer.role == Role::Project {
        // By the real path: a link in the project may lead anywhere.
        let project = std::fs::canonicalize(&layer.folder).unwrap_or_else(|_| layer.folder.clone());
        if !real.starts_with(&project) {
            let message = format!(
                "tools.work_dir {written} is outside this folder, where a project's file may not lead"
            );
            return Err(layer.problem(node.at, &message));
        }
    }
    Ok(real)
}

/// No tool may touch the folder of the person's settings, so it is no work folder.
fn not_of_settings(layer: &Layer, node: &Node, dir: &Path, written: &str) -> Result<(), Failure> {
    let folders = env::folders();
    let mut own = folders.config.iter().chain(&folders.own);
    let settings =
        own.find(|own| haft::ops::scope::real(own).is_some_and(|own| dir.starts_with(own)));
    if layer.role == Role::Project || settings.is_none() {
        return Ok(());
    }
    let message = format!(
        "tools.work_dir {written} is a folder of haft's own settings, where no tool may work: \
         a relative path starts at the folder of this file"
    );
    Err(layer
        .problem(node.at, &message)
        .hint("name the folder by its full path, or leave work_dir out to work where you are"))
}

/// More folders with the rights of the work folder. A project cannot give
/// itself any.
pub(crate) fn roots(
    sources: &Sources<'_>,
    home: Option<&Path>,
    warnings: &mut Vec<String>,
) -> Result<(Vec<Named>, Origin), Failure> {
    for layer in &sources.layers {
        let Some(node) = layer.get("tools.roots") else {
            continue;
        };
        if layer.role == Role::Project {
            warnings.push(format!(
                "{}: tools.roots is ignored: a project's file may only tighten",
                layer.at(node.at)
            ));
            continue;
        }
        let given = in_layer(layer, "tools.roots", node)?;
        let mut roots = Vec::new();
        for text in texts(&given) {
            let root = below(&layer.folder, &text, home, layer, node.at)?;
            if !root.is_dir() {
                let message = format!("tools.roots: there is no folder {}", text.written);
                return Err(layer.problem(node.at, &message));
            }
            roots.push(Named::new(root, &text));
        }
        return Ok((roots, given.from));
    }
    Ok((Vec::new(), Origin::Default))
}

/// The variable that lists protected places. It is the `ah` toolset's, and holds
/// for all of them: which toolset there is a project may say, and it must not
/// thereby take protection away.
const PROTECT: &str = "AH_PROTECT_DIRS";

/// What is never written: all that any file and the variable name.
pub(crate) fn protect(
    sources: &Sources<'_>,
    bases: &[&Path],
    home: Option<&Path>,
) -> Result<(Vec<Named>, Vec<Origin>), Failure> {
    let mut places: Vec<Named> = Vec::new();
    let mut origins = Vec::new();
    for layer in &sources.layers {
        let Some(node) = layer.get("tools.protect") else {
            continue;
        };
        let given = in_layer(layer, "tools.protect", node)?;
        for text in texts(&given) {
            if text.value.contains(['*', '?', '['])
                && !bases.iter().any(|base| base.join(&text.value).exists())
            {
                let message = format!(
                    "tools.protect takes files and folders, not patterns: \"{}\"",
                    text.written
                );
                return Err(layer.problem(node.at, &message));
            }
            // From every folder it may mean: a project that moves the work
            // folder must not thereby lose what the person protects.
            for base in bases {
                let path = below(base, &text, home, layer, node.at)?;
                if !places.iter().any(|known| known.path == path) {
                    places.push(Named::new(path, &text));
                }
            }
        }
        origins.push(given.from);
    }
    let listed = env::paths(PROTECT);
    if !listed.is_empty() {
        origins.push(Origin::Variable(PROTECT));
    }
    for named in listed {
        // No shell has expanded it where a client's settings list variables.
        let below_home = named.strip_prefix("~").ok().zip(home);
        for base in bases {
            let path = match below_home {
                Some((rest, home)) => home.join(rest),
                None => base.join(&named),
            };
            if !places.iter().any(|known| known.path == path) {
                places.push(Named::plain(path));
            }
        }
    }
    Ok((places, origins))
}

fn text(value: &Value, written: &Value) -> Text {
    let own = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Text {
        value: own(value),
        written: own(written),
    }
}

fn texts(given: &Given) -> Vec<Text> {
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    items(&given.value)
        .iter()
        .zip(&items(&given.written))
        .map(|(value, written)| text(value, written))
        .filter(|text| !text.value.is_empty())
        .collect()
}

/// A path of a configuration file: absolute, from the home folder, or from a base.
fn below(
    base: &Path,
    text: &Text,
    home: Option<&Path>,
    layer: &Layer,
    at: Place,
) -> Result<PathBuf, Failure> {
    let rest = match text.value.strip_prefix('~') {
        Some("") => "",
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
        _ => return Ok(base.join(&text.value)),
    };
    match home {
        Some(home) => Ok(home.join(rest)),
        None => Err(layer.problem(
            at,
            &format!("{} needs a home folder, and HOME is not set", text.written),
        )),
    }
}
