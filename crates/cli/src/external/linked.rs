//! Links in haft's config folder: what they lead to, and how a program gets there.

use super::command::{Line, parted};
use super::where_it_is;
use crate::config::Settings;
use std::path::{Path, PathBuf};

/// Those of these files that lie in haft's config folder by their name and elsewhere in
/// truth.
pub(super) fn linked(files: Vec<PathBuf>, settings: &Settings) -> Vec<PathBuf> {
    let Some(config) = settings.folders.config.as_deref() else {
        return Vec::new();
    };
    let really = where_it_is(config);
    let is_linked = |file: &PathBuf| {
        let is_named = file.starts_with(config) || file.starts_with(&really);
        is_named && !where_it_is(file).starts_with(&really)
    };
    files.into_iter().filter(is_linked).collect()
}

/// Where a program finds a path of haft's config folder. Of that folder it sees nothing but
/// what belongs to it, so a link there has to be followed before it starts.
fn reached(path: &Path, settings: &Settings) -> PathBuf {
    let Some(config) = settings.folders.config.as_deref() else {
        return path.to_owned();
    };
    let really = where_it_is(config);
    let is_named = path.starts_with(config) || path.starts_with(&really);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return path.to_owned();
    };
    if !is_named || path == config {
        return path.to_owned();
    }
    let folder = where_it_is(parent);
    if folder == really {
        where_it_is(path)
    } else {
        // A link in a folder that it sees stays one: a virtual environment is found by it.
        folder.join(name)
    }
}

/// A command line as it is started: the paths in it are those that the program finds.
pub(super) fn started(line: Line, settings: &Settings) -> Line {
    let argument = |word: &String| {
        let (before, path) = parted(word);
        if Path::new(path).is_absolute() {
            format!("{before}{}", reached(Path::new(path), settings).display())
        } else {
            word.clone()
        }
    };
    Line {
        program: reached(&line.program, settings),
        arguments: line.arguments.iter().map(argument).collect(),
        dir: reached(&line.dir, settings),
        ..line
    }
}
