//! The search before each command for what must be protected below the roots.

use super::findings::Finding;
use super::sandbox::roots;
use super::tidy::tidy;
use crate::executor::sandbox::Request;
use crate::git::{self, Controls, Registry, Since};
use crate::private::FolderLock;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Other hard links to protected files, as last found.
#[derive(Debug, Default)]
pub(super) struct Names {
    is_tidied: bool,
    /// The private temp folders in use, locked so that no other session removes them.
    held: HashMap<PathBuf, FolderLock>,
    /// Those of files that the user protects. Scanned once.
    listed: Option<git::Sought>,
    sought: git::Sought,
    found: Vec<PathBuf>,
}

impl Names {
    /// Locks a temp folder for as long as the session lasts.
    pub(super) fn hold(&mut self, temp: &Path) {
        if self.held.contains_key(temp) {
            return;
        }
        match FolderLock::new(temp) {
            Ok(held) => _ = self.held.insert(temp.to_owned(), held),
            Err(error) => tracing::warn!(%error, "the private temp folder cannot be locked"),
        }
    }
}

/// Looks for the files that control git below the roots, and for other names of protected
/// files. Returns them and what was noticed, or the root that could not be listed.
pub(super) fn run(
    repositories: &[Arc<Registry>],
    request: &Request,
    names: &mut Names,
) -> Result<(Controls, Vec<Finding>), PathBuf> {
    if !names.is_tidied {
        names.is_tidied = true;
        names.hold(&request.temp);
        tidy(&request.temp);
    }
    let home = request.homes.first().map(PathBuf::as_path);
    let mut noticed = Vec::new();
    let mut places = Controls::default();
    for registry in repositories {
        let looked = registry.look(Since::Between);
        if looked.is_unlisted {
            return Err(registry.root().to_owned());
        }
        // Repositories that another program created are protected from now on, but not
        // reported as made by a command.
        let made = looked.new.into_iter().filter(|_| registry.is_busy());
        noticed.extend(made.map(|path| Finding::Repository { path }));
        if let Some(folders) = looked.cut_off {
            tracing::warn!(
                target: "haft",
                "only {folders} folders of {} were searched for repositories", registry.root().display()
            );
            let folders = Some(folders);
            noticed.push(Finding::SearchIncomplete { folders });
        }
        places.extend(registry.guarded(home));
    }
    let roots = roots(request);
    let listed = names.listed.get_or_insert_with(|| {
        let listed = request.protect.iter();
        let listed: Vec<_> = listed.map(|path| request.work_dir.join(path)).collect();
        git::with_other_names(listed.iter().map(PathBuf::as_path))
    });
    let mut files = places.paths.clone();
    for root in &roots {
        files.push(root.join("haft.yaml"));
        files.extend(git::in_folder(root, home).paths);
    }
    let mut sought = git::with_other_names(files.iter().map(PathBuf::as_path));
    sought.extend(listed.iter().copied());
    let known = git::with_other_names(names.found.iter().map(PathBuf::as_path));
    if sought != names.sought || known != sought {
        let mut found = (Vec::new(), true);
        if !sought.is_empty() {
            let mut searched = roots;
            searched.push(request.temp.clone());
            found = git::same_files(&sought, &searched);
        }
        if !found.1 {
            noticed.push(Finding::SearchIncomplete { folders: None });
        }
        names.sought = sought;
        names.found = found.0;
    }
    places.paths.extend(names.found.iter().cloned());
    Ok((places, noticed))
}
