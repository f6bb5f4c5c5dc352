//! Settings for where files live and how code runs, used by toolsets with virtual paths.
//! A project's file may only choose backends inside the project.

use super::Notes;
use super::layer::Role;
use super::mcp::{self, ServerEntry};
use super::setting::{Filled, Whole, or_name};
use super::sources::{Given, Pick, Readable, Sources};
use crate::failure::Failure;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// Storage of files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
#[schemars(tag = "kind", transform = or_name)]
pub(crate) enum BackendEntry {
    /// Files on disk.
    Filesystem {
        /// Folder that is shown as `/`.
        root: Option<Filled>,
        /// Whether paths start at the root.
        #[serde(rename = "virtual")]
        is_virtual: Option<bool>,
        /// Another name of `virtual`.
        virtual_mode: Option<bool>,
        /// Largest file that is read.
        max_file_size_mb: Option<Whole<1, 1024>>,
    },
    /// In the session.
    State,
    /// In the store.
    Store {
        /// Name of the part of the store.
        #[serde(default)]
        namespace: String,
    },
    /// Different backends by path.
    #[serde(alias = "composite")]
    Routes {
        /// Backends by the path where they begin.
        #[schemars(with = "BTreeMap<String, Value>")]
        routes: BTreeMap<String, Self>,
    },
}

/// Executor of code.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
#[schemars(tag = "kind", transform = or_name)]
pub(crate) enum ExecutionEntry {
    /// As commands on this machine.
    Local,
    /// Not at all.
    None,
    /// In an interpreter, by haft-sandbox.
    #[serde(alias = "heimdall")]
    Sandbox {
        /// URL of the Python package index; only in your own file.
        index: Option<String>,
        /// Seconds a call may take.
        timeout: Option<Whole<1, 100>>,
        /// Memory of a Python call.
        memory_mb: Option<Whole<64, 1024>>,
    },
    /// With the tools of an MCP server.
    #[serde(rename = "command", alias = "uri")]
    Server(Box<ServerEntry>),
}

/// Backend for files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// On disk, below a folder.
    Filesystem {
        /// The folder; `None` for the work folder.
        root: Option<PathBuf>,
        /// Whether paths start at the folder.
        is_virtual: bool,
        /// Largest file that is read, in bytes.
        largest: Option<u64>,
    },
    /// In the session.
    State,
    /// In the store.
    Store(Namespace),
    /// Different backends by path.
    Routes(Vec<(String, Self)>),
}

/// A namespace of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Name in the configuration.
    pub name: String,
    /// Set if a project's file names it. A project has its own namespaces, so it cannot
    /// reach the user's by name.
    pub project: Option<PathBuf>,
}

/// Executor of the model's code.
#[derive(Debug, Clone)]
pub enum Execution {
    /// As commands on this machine.
    Local,
    /// In an interpreter, by haft-sandbox.
    Sandbox(Sandbox),
    /// With the tools of an MCP server.
    Server(Box<mcp::Configured>),
    /// Not at all.
    None,
}

/// Settings of haft-sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// Address of the Python package index.
    pub index: url::Url,
    /// Time limit of a call in seconds.
    pub timeout: u64,
    /// Memory limit of a Python call in MiB.
    pub memory: u64,
}

/// Default package index.
const INDEX: &str = "https://pypi.org/simple";

/// Effective settings of backend and execution.
#[derive(Debug, Clone)]
pub struct Files {
    /// Source of `backend`, for messages.
    pub from: String,
    /// Whether `backend` contains variables, whose values are not shown.
    pub has_variables: bool,
    /// Storage of the model's files.
    pub backend: Backend,
    /// Executor of the model's code.
    pub execution: Execution,
}

/// Reads the settings.
pub(crate) fn load(sources: &Sources, toolset: &str, notes: &mut Notes) -> Result<Files, Failure> {
    let given = choose(sources, |file| &file.backend, notes)?;
    // Variables in a project's value stay unexpanded: their values belong to the user.
    let given = match given.is_project() {
        true => given.literal()?,
        false => given,
    };
    let project = sources.project().filter(|_| given.is_project());
    let project = project.map(|layer| layer.folder.as_path());
    let files = Files {
        from: given.from.to_string(),
        has_variables: !given.is_project() && given.has_variables(),
        backend: backend(&given.value, project).map_err(|what| given.wrong(&what))?,
        execution: execution(sources, notes)?,
    };
    let is_default = matches!(files.backend, Backend::Filesystem { root: None, .. });
    if !is_default && !has_virtual_paths(toolset) {
        let what = format!(
            "works only with toolset deepagents; {toolset} uses the files in the work folder"
        );
        let failure = given.wrong(&what);
        return Err(failure.hint("use `--toolset deepagents`, or remove `backend`"));
    }
    notes.show("backend", &given);
    Ok(files)
}

/// Returns the user's value, or else the project's, or else the default.
fn choose<'a, T: Readable>(
    sources: &'a Sources,
    pick: Pick<T>,
    notes: &mut Notes,
) -> Result<Given<'a, T>, Failure> {
    let (person, project) = sources.apart(pick)?;
    match (person, project) {
        (Some(person), Some(project)) if person.role() != Role::Default => {
            notes.warn(project.ignored(&format!("already set in {}", person.from)));
            Ok(person)
        }
        (person, project) => project
            .or(person)
            .ok_or_else(|| Failure::failed("a setting has no default")),
    }
}

/// Whether a toolset has virtual paths.
pub fn has_virtual_paths(toolset: &str) -> bool {
    haft::toolsets::by_name(toolset).is_some_and(|toolset| toolset.paths == haft::Paths::Virtual)
}

/// Returns a backend. `project` is the project's folder, if its file sets the backend.
fn backend(entry: &BackendEntry, project: Option<&Path>) -> Result<Backend, String> {
    Ok(match entry {
        BackendEntry::Filesystem {
            root,
            is_virtual,
            virtual_mode,
            max_file_size_mb,
        } => {
            let root = root.as_ref().map(|root| PathBuf::from(&root.0));
            let is_inside = |root: &PathBuf| {
                root.components()
                    .all(|part| matches!(part, Component::CurDir | Component::Normal(_)))
            };
            if project.is_some() && !root.as_ref().is_none_or(is_inside) {
                return Err("in a project's file, root must be inside the work folder".to_owned());
            }
            Backend::Filesystem {
                root,
                is_virtual: is_virtual.or(*virtual_mode).unwrap_or(true),
                largest: max_file_size_mb.map(|megabytes| megabytes.0 << 20),
            }
        }
        BackendEntry::State => Backend::State,
        BackendEntry::Store { namespace } => Backend::Store(Namespace {
            name: namespace.clone(),
            project: project.map(Path::to_owned),
        }),
        BackendEntry::Routes { routes } => {
            let mut all = Vec::new();
            for (at, entry) in routes {
                if !at.starts_with('/') {
                    return Err(format!("route {at} must start with /"));
                }
                match backend(entry, project)? {
                    Backend::Routes(_) => return Err(format!("route {at} cannot contain routes")),
                    backend => all.push((at.clone(), backend)),
                }
            }
            Backend::Routes(all)
        }
    })
}

fn execution(sources: &Sources, notes: &mut Notes) -> Result<Execution, Failure> {
    let given = match sources.apart(|file| &file.execution)?.1 {
        Some(project) if matches!(project.value, ExecutionEntry::None) => project,
        _ => choose(sources, |file| &file.execution, notes)?,
    };
    let execution = match &given.value {
        ExecutionEntry::Local => Execution::Local,
        ExecutionEntry::None => Execution::None,
        ExecutionEntry::Sandbox {
            index,
            timeout,
            memory_mb,
        } => {
            if index.is_some() && given.is_project() {
                return Err(given.wrong("index is allowed only in your own haft.yaml"));
            }
            let index = url::Url::parse(index.as_deref().unwrap_or(INDEX)).ok();
            let index = index.filter(|index| matches!(index.scheme(), "http" | "https"));
            Execution::Sandbox(Sandbox {
                index: index.ok_or_else(|| given.wrong("index must be an http or https URL"))?,
                timeout: timeout.map_or(60, |seconds| seconds.0),
                memory: memory_mb.map_or(256, |megabytes| megabytes.0),
            })
        }
        ExecutionEntry::Server(entry) => match mcp::server("execution", &given, entry)? {
            Some(server) => Execution::Server(Box::new(server)),
            None => Execution::None,
        },
    };
    let shown = match &given.written {
        // The map may contain secrets.
        Value::Object(map) => format!("(map with {} keys)", map.len()).into(),
        written => written.clone(),
    };
    notes.show_value("execution", shown, given.from.to_string());
    Ok(execution)
}
