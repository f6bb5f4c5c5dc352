//! Paths of a session: the work folder, additional roots, and protected paths.

use super::layer::{Layer, Role};
use super::sources::{Given, Origin, Sources, in_layer};
use super::yaml::{Node, Position};
use crate::args::Shared;
use crate::env;
use crate::exit::Failure;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A path from the configuration.
#[derive(Debug)]
pub(crate) struct NamedPath {
    pub(crate) path: PathBuf,
    /// The path, or its text in the file if that contains variables.
    pub(crate) shown: String,
}

impl NamedPath {
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

/// Whether the user chose the work folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderChoice {
    /// The user, with a flag, a variable or their own file.
    User,
    /// The folder haft was started in, or one set in a project's file.
    Default,
}

/// A text in a file, with variables expanded and as written.
#[derive(Debug, Default)]
struct Text {
    value: String,
    written: String,
}

/// Returns the folder in `--dir` or `HAFT_DIR`, or the current folder.
pub(crate) fn start_folder(flags: &Shared, current: &Path) -> Result<(PathBuf, Origin), Failure> {
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
            "{from}: folder not found: {}",
            given.display()
        )))
    }
}

/// Whether the current folder is another project than the one to work in. Clients often
/// start haft in `/` or the home folder, which do not count as projects.
pub(crate) fn is_another_project(current: &Path, started: &Path) -> bool {
    let real = |path| haft::ops::scope::real(path);
    real(current) != real(started) && super::broad_folders::describe(current).is_none()
}

/// Returns the work folder and who chose it.
pub(crate) fn work_dir(
    sources: &Sources<'_>,
    start: (PathBuf, Origin),
    home: Option<&Path>,
) -> Result<(NamedPath, Origin, FolderChoice), Failure> {
    if start.1 != Origin::Default {
        return Ok((NamedPath::plain(start.0), start.1, FolderChoice::User));
    }
    for layer in &sources.layers {
        if let Some(node) = layer.get("tools.work_dir") {
            let given = in_layer(layer, "tools.work_dir", node)?;
            let text = text(&given.value, &given.written);
            let dir = resolve(&layer.folder, &text, home, layer, node.at)?;
            let dir = usable(layer, node, &dir, &text.written)?;
            check_not_settings_folder(layer, node, &dir, &text.written)?;
            let chosen = match layer.role {
                Role::Project => FolderChoice::Default,
                Role::User | Role::Named => FolderChoice::User,
            };
            return Ok((NamedPath::new(dir, &text), given.from, chosen));
        }
    }
    Ok((NamedPath::plain(start.0), start.1, FolderChoice::Default))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the work folder is checked before a scope exists"
)]
fn usable(layer: &Layer, node: &Node, dir: &Path, written: &str) -> Result<PathBuf, Failure> {
    let real = std::fs::canonicalize(dir).ok().filter(|real| real.is_dir());
    let Some(real) = real else {
        return Err(layer.problem(
            node.at,
            &format!("tools.work_dir: folder not found: {written}"),
        ));
    };
    if layer.role == Role::Project {
        // Compare real paths, because a link in the project may lead anywhere.
        let project = std::fs::canonicalize(&layer.folder).unwrap_or_else(|_| layer.folder.clone());
        if !real.starts_with(&project) {
            let message = format!(
                "tools.work_dir {written} is outside this folder, which a project's file may not choose"
            );
            return Err(layer.problem(node.at, &message));
        }
    }
    Ok(real)
}

/// Rejects haft's own settings folder as a work folder, since no tool may touch it.
fn check_not_settings_folder(
    layer: &Layer,
    node: &Node,
    dir: &Path,
    written: &str,
) -> Result<(), Failure> {
    let folders = env::folders();
    let mut own = folders.config.iter().chain(&folders.own);
    let settings =
        own.find(|own| haft::ops::scope::real(own).is_some_and(|own| dir.starts_with(own)));
    if layer.role == Role::Project || settings.is_none() {
        return Ok(());
    }
    let message = format!(
        "tools.work_dir {written} is in haft's own settings folder, where tools may not work; \
         note that relative paths start from the folder of this file"
    );
    Err(layer
        .problem(node.at, &message)
        .hint("use an absolute path, or remove work_dir to work in the current folder"))
}

/// Returns additional folders with the rights of the work folder. Only the user can add
/// them.
pub(crate) fn roots(
    sources: &Sources<'_>,
    home: Option<&Path>,
    warnings: &mut Vec<String>,
) -> Result<(Vec<NamedPath>, Origin), Failure> {
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
            let root = resolve(&layer.folder, &text, home, layer, node.at)?;
            if !root.is_dir() {
                let message = format!("tools.roots: folder not found: {}", text.written);
                return Err(layer.problem(node.at, &message));
            }
            roots.push(NamedPath::new(root, &text));
        }
        return Ok((roots, given.from));
    }
    Ok((Vec::new(), Origin::Default))
}

/// Variable that lists protected paths. It comes from the `ah` toolset but applies to
/// all, because a project can choose the toolset and must not remove protection that way.
const PROTECT_VARIABLE: &str = "AH_PROTECT_DIRS";

/// Returns the protected paths: those in all files and in the variable.
pub(crate) fn protect(
    sources: &Sources<'_>,
    bases: &[&Path],
    home: Option<&Path>,
) -> Result<(Vec<NamedPath>, Vec<Origin>), Failure> {
    let mut places: Vec<NamedPath> = Vec::new();
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
                    "tools.protect must list files and folders, not patterns: \"{}\"",
                    text.written
                );
                return Err(layer.problem(node.at, &message));
            }
            // Relative to every possible work folder: a project that moves the work
            // folder must not remove the user's protection.
            for base in bases {
                let path = resolve(base, &text, home, layer, node.at)?;
                if !places.iter().any(|known| known.path == path) {
                    places.push(NamedPath::new(path, &text));
                }
            }
        }
        origins.push(given.from);
    }
    let from_variable = env::paths(PROTECT_VARIABLE);
    if !from_variable.is_empty() {
        origins.push(Origin::Variable(PROTECT_VARIABLE));
    }
    for named in from_variable {
        // `~` is expanded here, because no shell does it for variables set in a client's
        // settings.
        let below_home = named.strip_prefix("~").ok().zip(home);
        for base in bases {
            let path = match below_home {
                Some((rest, home)) => home.join(rest),
                None => base.join(&named),
            };
            if !places.iter().any(|known| known.path == path) {
                places.push(NamedPath::plain(path));
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

/// Resolves a path in a configuration file: absolute, below the home folder, or relative
/// to a base.
fn resolve(
    base: &Path,
    text: &Text,
    home: Option<&Path>,
    layer: &Layer,
    at: Position,
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
            &format!("{} needs a home folder, but HOME is not set", text.written),
        )),
    }
}
