//! From settings to the place of files.

use crate::config::Settings;
use crate::config::files::{Backend, Namespace};
use crate::exit::Failure;
use haft::ops::backend::Unwritable;
use haft::ops::scope::Writing;
use haft::{Backing, Disk, Naming};
use haft_store::{Database, Store};
use std::path::PathBuf;

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
                let store = Store::new(self.database()?, name(namespace));
                match self.settings.rules.writing {
                    Writing::Nothing => Unwritable::new(store).into(),
                    Writing::Roots | Writing::Anywhere => store.into(),
                }
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
        let database = Database::open(store_file(self.settings)?)
            .map_err(|error| Failure::usage(error.to_string()))?;
        self.database = Some(database.clone());
        Ok(database)
    }
}

/// The database of the store.
pub(crate) fn store_file(settings: &Settings) -> Result<PathBuf, Failure> {
    let state = settings.folders.state.as_ref();
    let state = state.ok_or_else(|| Failure::usage("the store needs a state folder: set HOME"))?;
    Ok(state.join("store.db"))
}

/// A part of the store.
pub(crate) fn store(settings: &Settings, namespace: &Namespace) -> Result<Store, Failure> {
    let mut made = Made {
        settings,
        database: None,
    };
    Ok(Store::new(made.database()?, name(namespace)))
}

/// The person's namespaces are the same in every folder; a project's are its own,
/// whatever the folder is called and however it was named.
fn name(namespace: &Namespace) -> String {
    match &namespace.project {
        None => format!("person {}", namespace.name),
        Some(folder) => {
            let real = haft::ops::scope::real(folder).unwrap_or_else(|| folder.clone());
            let bytes = real.as_os_str().as_encoded_bytes().iter();
            let folder: String = bytes.map(|byte| format!("{byte:02x}")).collect();
            format!("project {folder} {}", namespace.name)
        }
    }
}
