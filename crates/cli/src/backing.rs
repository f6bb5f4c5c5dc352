//! From settings to the place of files.

use crate::config::Settings;
use crate::config::files::{Backend, Namespace};
use crate::exit::Failure;
use haft::{Backing, Disk, Naming};
use haft_store::{Database, Store};
use std::path::Path;

/// Where the files of a session live.
pub(crate) fn backing(settings: &Settings) -> Result<Backing, Failure> {
    Made {
        settings,
        database: None,
    }
    .backing(&settings.files.backend)
}

struct Made<'a> {
    settings: &'a Settings,
    /// Opened once, by who needs it first.
    database: Option<Database>,
}

impl Made<'_> {
    fn backing(&mut self, backend: &Backend) -> Result<Backing, Failure> {
        Ok(match backend {
            Backend::Filesystem {
                root,
                is_virtual,
                largest,
            } => Backing::Disk(Disk {
                root: root.clone(),
                naming: if *is_virtual {
                    Naming::Virtual
                } else {
                    Naming::Real
                },
                largest: largest.unwrap_or(Disk::LARGEST),
            }),
            Backend::State => Backing::state(),
            Backend::Store(namespace) => {
                Store::new(self.database()?, name(namespace, &self.settings.work_dir)).into()
            }
            Backend::Routes(routes) => {
                let mut all = Vec::new();
                for (at, backend) in routes {
                    all.push((at.clone(), self.backing(backend)?));
                }
                Backing::Routes(all)
            }
        })
    }

    fn database(&mut self) -> Result<Database, Failure> {
        if let Some(database) = &self.database {
            return Ok(database.clone());
        }
        let state = self.settings.folders.state.as_ref();
        let state =
            state.ok_or_else(|| Failure::usage("the store needs a state folder: set HOME"))?;
        let database = Database::open(state.join("store.db"))
            .map_err(|error| Failure::usage(error.to_string()))?;
        self.database = Some(database.clone());
        Ok(database)
    }
}

/// The person's namespaces are the same in every folder; a project's are its own.
fn name(namespace: &Namespace, work_dir: &Path) -> String {
    if namespace.of_project {
        format!("project {}\n{}", work_dir.display(), namespace.name)
    } else {
        namespace.name.clone()
    }
}
