//! Links in haft's config folder: where they lead, and how programs reach them.

use super::command::{CommandLine, parted};
use super::real_path;
use crate::Settings;
use std::path::{Path, PathBuf};

/// Returns those files that are in haft's config folder by name but elsewhere in reality.
pub(super) fn linked_files(files: Vec<PathBuf>, settings: &Settings) -> Vec<PathBuf> {
    let Some(config) = settings.folders.config.as_deref() else {
        return Vec::new();
    };
    let really = real_path(config);
    let is_linked = |file: &PathBuf| {
        let is_named = file.starts_with(config) || file.starts_with(&really);
        is_named && !real_path(file).starts_with(&really)
    };
    files.into_iter().filter(is_linked).collect()
}

/// Returns a path in haft's config folder as a program can reach it. The program sees
/// only its own files there, so a link must be resolved before it starts.
fn reachable(path: &Path, settings: &Settings) -> PathBuf {
    let Some(config) = settings.folders.config.as_deref() else {
        return path.to_owned();
    };
    let really = real_path(config);
    let is_named = path.starts_with(config) || path.starts_with(&really);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return path.to_owned();
    };
    if !is_named || path == config {
        return path.to_owned();
    }
    let folder = real_path(parent);
    if folder == really {
        real_path(path)
    } else {
        // A link in a visible folder stays a link: a virtual environment is found through
        // it.
        folder.join(name)
    }
}

/// Returns a command line with paths that the program can reach.
pub(super) fn with_reachable_paths(line: CommandLine, settings: &Settings) -> CommandLine {
    let argument = |word: &String| {
        let (before, path) = parted(word);
        if Path::new(path).is_absolute() {
            format!("{before}{}", reachable(Path::new(path), settings).display())
        } else {
            word.clone()
        }
    };
    CommandLine {
        program: reachable(&line.program, settings),
        arguments: line.arguments.iter().map(argument).collect(),
        dir: reachable(&line.dir, settings),
        ..line
    }
}
