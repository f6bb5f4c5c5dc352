//! Suggestions for a file that does not exist: the files that a pattern or a list means,
//! the same path without folders of another machine, and the same name elsewhere.

use crate::Context;
use crate::toolset::Paths;
use haft_ops::Error as E;
use haft_ops::backend::Kind;
use haft_ops::glob::{self, Anchored, Dots, Glob, IgnoreFiles, Kinds, Matching};
use std::time::Duration;

/// Maximum number of files to suggest.
const MOST: usize = 5;

/// Maximum number of first folders that may belong to another machine.
const FOLDERS: usize = 12;

/// Time for looking through the tree.
const TIME: Duration = Duration::from_millis(200);

/// Adds suggestions to the error about a missing file; other errors stay as they are.
pub(super) async fn suggest(error: E, given: &str, cx: &Context) -> E {
    let E::NotFound { path, similar } = error else {
        return error;
    };
    let mut found = several(given, cx).await;
    if found.is_empty() && given.contains(['*', '?', '{']) {
        found = matching(given.trim_start_matches("./"), Anchored::ToPath, cx).await;
    }
    if found.is_empty() {
        found = without_folders(given, cx).await;
    }
    if found.is_empty() && similar.is_empty() {
        let name = given.rsplit('/').next().unwrap_or(given);
        if !name.is_empty() && !name.contains(['*', '?', '[', '{', '\\']) {
            found = matching(name, Anchored::AnyDepthByName, cx).await;
        }
    }
    E::NotFound {
        path,
        similar: if found.is_empty() { similar } else { found },
    }
}

/// Returns the files of a list in place of one path.
async fn several(given: &str, cx: &Context) -> Vec<String> {
    let list: Vec<&str> = given
        .split([',', '\n', '[', ']', '"', ' '])
        .filter(|path| !path.is_empty())
        .take(MOST + 1)
        .collect();
    let mut found = Vec::new();
    if (2..=MOST).contains(&list.len()) {
        for path in list {
            if is_file(path, cx).await {
                found.push(path.to_owned());
            }
        }
    }
    found
}

/// Returns the path without its first folders, such as those of another machine.
async fn without_folders(given: &str, cx: &Context) -> Vec<String> {
    let virtual_tree = cx.paths() == Paths::Virtual;
    let mut rest = given.trim_start_matches('/');
    for _ in 0..FOLDERS {
        let Some((_, below)) = rest.split_once('/') else {
            break;
        };
        rest = below;
        let path = if virtual_tree {
            format!("/{rest}")
        } else {
            rest.to_owned()
        };
        if !rest.is_empty() && is_file(&path, cx).await {
            return vec![path];
        }
    }
    Vec::new()
}

async fn is_file(path: &str, cx: &Context) -> bool {
    let Ok(path) = cx.resolve_found(path) else {
        return false;
    };
    if path.exclusion().is_some() {
        return false;
    }
    let stat = cx.backend().stat(&path).await;
    stat.is_ok_and(|stat| stat.kind == Kind::File)
}

/// Returns the files below the work folder that a pattern matches.
async fn matching(pattern: &str, anchored: Anchored, cx: &Context) -> Vec<String> {
    let virtual_tree = cx.paths() == Paths::Virtual;
    let Ok(path) = cx.resolve_found(if virtual_tree { "/" } else { "." }) else {
        return Vec::new();
    };
    let request = Glob {
        path,
        matching: Matching::Glob {
            pattern: pattern.trim_start_matches('/').to_owned(),
            anchored,
        },
        dots: Dots::ExplicitOnly,
        kinds: Kinds::Files,
        ignored: IgnoreFiles::Honour,
        max: MOST,
        deadline: Some(cx.deadline(TIME)),
        cancel: cx.cancel().clone(),
    };
    let Ok(found) = glob::entries(cx.backend(), request, &|_| {}).await else {
        return Vec::new();
    };
    let start = if virtual_tree { "/" } else { "" };
    let entries = found.entries.iter();
    entries
        .map(|entry| format!("{start}{}", entry.below.display()))
        .collect()
}
