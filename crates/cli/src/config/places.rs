//! Folders: where haft works, where else it may, what it never writes.

use super::layer::{Layer, Role};
use super::sources::{Origin, Sources, in_layer};
use super::yaml::{Node, Place};
use crate::args::Shared;
use crate::env;
use crate::exit::Failure;
use std::path::{Path, PathBuf};

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

/// The work folder.
pub(crate) fn work_dir(
    sources: &Sources<'_>,
    here: (PathBuf, Origin),
    home: Option<&Path>,
) -> Result<(PathBuf, Origin), Failure> {
    if here.1 != Origin::Default {
        return Ok(here);
    }
    for layer in &sources.layers {
        if let Some(node) = layer.get("tools.work_dir") {
            let given = in_layer(layer, "tools.work_dir", node)?;
            let text = given.value.as_str().unwrap_or(".");
            let dir = below(&layer.folder, text, home, layer, node.at)?;
            return Ok((usable(layer, node, &dir, text)?, given.from));
        }
    }
    Ok(here)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the work folder is judged before there is a scope"
)]
fn usable(layer: &Layer, node: &Node, dir: &Path, text: &str) -> Result<PathBuf, Failure> {
    let real = std::fs::canonicalize(dir).ok().filter(|real| real.is_dir());
    let Some(real) = real else {
        return Err(layer.problem(
            node.at,
            &format!("tools.work_dir: there is no folder {text}"),
        ));
    };
    if layer.role == Role::Project {
        // By the real path: a link in the project may lead anywhere.
        let project = std::fs::canonicalize(&layer.folder).unwrap_or_else(|_| layer.folder.clone());
        if !real.starts_with(&project) {
            let message = format!(
                "tools.work_dir {text} is outside this folder, where a project's file may not lead"
            );
            return Err(layer.problem(node.at, &message));
        }
    }
    Ok(real)
}

/// More folders with the rights of the work folder. A project cannot give
/// itself any.
pub(crate) fn roots(
    sources: &Sources<'_>,
    home: Option<&Path>,
    warnings: &mut Vec<String>,
) -> Result<(Vec<PathBuf>, Origin), Failure> {
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
        for text in texts(&given.value) {
            let root = below(&layer.folder, &text, home, layer, node.at)?;
            if !root.is_dir() {
                return Err(
                    layer.problem(node.at, &format!("tools.roots: there is no folder {text}"))
                );
            }
            roots.push(root);
        }
        return Ok((roots, given.from));
    }
    Ok((Vec::new(), Origin::Default))
}

/// What is never written: all that any file names.
pub(crate) fn protect(
    sources: &Sources<'_>,
    bases: &[&Path],
    home: Option<&Path>,
) -> Result<(Vec<PathBuf>, Vec<Origin>), Failure> {
    let mut paths = Vec::new();
    let mut origins = Vec::new();
    for layer in &sources.layers {
        let Some(node) = layer.get("tools.protect") else {
            continue;
        };
        let given = in_layer(layer, "tools.protect", node)?;
        for text in texts(&given.value) {
            // From every folder it may mean: a project that moves the work
            // folder must not thereby lose what the person protects.
            for base in bases {
                let path = below(base, &text, home, layer, node.at)?;
                if !paths.contains(&path) {
                    paths.push(path);
                }
            }
        }
        origins.push(given.from);
    }
    Ok((paths, origins))
}

fn texts(value: &serde_json::Value) -> Vec<String> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .filter(|text| !text.is_empty())
        .collect()
}

/// A path of a configuration file: absolute, from the home folder, or from a base.
fn below(
    base: &Path,
    text: &str,
    home: Option<&Path>,
    layer: &Layer,
    at: Place,
) -> Result<PathBuf, Failure> {
    let rest = match text.strip_prefix('~') {
        Some("") => "",
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
        _ => return Ok(base.join(text)),
    };
    match home {
        Some(home) => Ok(home.join(rest)),
        None => Err(layer.problem(
            at,
            &format!("{text} needs a home folder, and HOME is not set"),
        )),
    }
}
