//! Creates the file backend of a session from its settings.

use crate::exit::Failure;
use haft::ops::backend::Unwritable;
use haft::ops::scope::Writing;
use haft::{Backing, Disk, Naming};
use haft_config::Settings;
use haft_config::files::{Backend, Namespace};
use haft_store::{Database, Store};
use std::path::PathBuf;

/// Returns the backend that holds the session's files.
pub(crate) fn backing(settings: &Settings) -> Result<Backing, Failure> {
    BackendFactory {
        settings,
        database: None,
    }
    .backing(&settings.files.backend)
}

struct BackendFactory<'a> {
    settings: &'a Settings,
    /// Opened when first needed, then shared by all parts of the backend.
    database: Option<Database>,
}

impl BackendFactory<'_> {
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

/// Returns the path of the store's database.
pub(crate) fn store_file(settings: &Settings) -> Result<PathBuf, Failure> {
    let state = settings.folders.state.as_ref();
    let state = state.ok_or_else(|| Failure::usage("the store needs a state folder: set HOME"))?;
    Ok(state.join("store.db"))
}

/// Opens one namespace of the store.
pub(crate) fn store(settings: &Settings, namespace: &Namespace) -> Result<Store, Failure> {
    let mut factory = BackendFactory {
        settings,
        database: None,
    };
    Ok(Store::new(factory.database()?, name(namespace)))
}

/// Returns the name of a namespace in the database. The user's namespaces are shared by
/// all folders; a project's are bound to its real path, however the folder was reached.
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
