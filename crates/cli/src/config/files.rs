//! Settings for where files live and how code runs, used by toolsets with virtual paths.
//! A project's file may only choose backends inside the project.

use super::sources::{Given, Sources};
use super::{Shown, given_or, mcp, text};
use crate::exit::Failure;
use haft::ops::text::spelling::closest;
use serde_json::{Map, Value};
use std::path::{Component, Path, PathBuf};

/// Backend for files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Backend {
    /// On disk, below a folder.
    Filesystem {
        root: Option<PathBuf>,
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
pub(crate) struct Namespace {
    pub(crate) name: String,
    /// Set if a project's file names it. A project has its own namespaces, so it cannot
    /// reach the user's by name.
    pub(crate) project: Option<PathBuf>,
}

/// Executor of the model's code.
#[derive(Debug, Clone)]
pub(crate) enum Execution {
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
pub(crate) struct Sandbox {
    /// Address of the Python package index.
    pub(crate) index: url::Url,
    /// Time limit of a call in seconds.
    pub(crate) timeout: u64,
    /// Memory limit of a Python call in MiB.
    pub(crate) memory: u64,
}

/// Default package index.
const INDEX: &str = "https://pypi.org/simple";

const KINDS: [&str; 3] = ["filesystem", "state", "store"];

/// Effective settings of backend and execution.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    /// Source of `backend`, for messages.
    pub(crate) from: String,
    /// Whether `backend` contains variables, owner values are not shown.
    pub(crate) has_variables: bool,
    pub(crate) backend: Backend,
    pub(crate) execution: Execution,
}

/// Reads the settings.
pub(crate) fn load(
    sources: &Sources<'_>,
    toolset: &str,
    warnings: &mut Vec<String>,
    shown: &mut Vec<Shown>,
) -> Result<Files, Failure> {
    let (backend, owner) = backend_given(sources, warnings)?;
    let project = match owner {
        Owner::Project => sources.project(),
        Owner::User => None,
    };
    let files = Files {
        from: backend.from.to_string(),
        has_variables: owner == Owner::User && has_variables(&backend.written),
        // Variables in a project's value stay unexpanded: their values belong to the
        // user.
        backend: Reader {
            given: &backend,
            project,
        }
        .backend(match owner {
            Owner::Project => &backend.written,
            Owner::User => &backend.value,
        })?,
        execution: execution(sources, warnings, shown)?,
    };
    let is_default = matches!(files.backend, Backend::Filesystem { root: None, .. });
    if !is_default && !has_virtual_paths(toolset) {
        return Err(Failure::usage(format!(
            "{}: backend works only with toolset deepagents; {toolset} uses the files in the work folder",
            backend.from
        ))
        .hint("use `--toolset deepagents`, or remove `backend`"));
    }
    shown.push(Shown {
        key: "backend",
        value: backend.written,
        from: backend.from.to_string(),
    });
    Ok(files)
}

/// Whether a value contains variables.
fn has_variables(written: &Value) -> bool {
    written.to_string().contains("${")
}

/// Whether a toolset has virtual paths.
pub(crate) fn has_virtual_paths(toolset: &str) -> bool {
    haft::toolsets::by_name(toolset).is_some_and(|toolset| toolset.paths == haft::Paths::Virtual)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    User,
    Project,
}

/// Returns the user's setting, or else the project's.
fn backend_given(
    sources: &Sources<'_>,
    warnings: &mut Vec<String>,
) -> Result<(Given, Owner), Failure> {
    let (person, project) = sources.apart("backend")?;
    match (person, project) {
        (Some(person), Some(project)) => {
            warnings.push(format!(
                "{}: backend is ignored: already set in {}",
                project.from, person.from
            ));
            Ok((person, Owner::User))
        }
        (None, Some(project)) => Ok((project, Owner::Project)),
        (person, None) => Ok((given_or(person, "filesystem".into()), Owner::User)),
    }
}

fn execution(
    sources: &Sources<'_>,
    warnings: &mut Vec<String>,
    shown: &mut Vec<Shown>,
) -> Result<Execution, Failure> {
    let (person, project) = sources.apart("execution")?;
    let is_none = |given: &Given| text(given) == "none";
    let (given, owner) = match (person, project) {
        (_, Some(project)) if is_none(&project) => (project, Owner::Project),
        (Some(person), Some(project)) => {
            warnings.push(format!(
                "{}: execution is ignored: already set in {}",
                project.from, person.from
            ));
            (person, Owner::User)
        }
        (None, Some(project)) => (project, Owner::Project),
        (person, None) => (given_or(person, "local".into()), Owner::User),
    };
    let execution = match &given.value {
        Value::String(name) if name == "local" => Execution::Local,
        Value::String(name) if name == "none" => Execution::None,
        Value::String(name) if is_sandbox(name) => sandbox(&given, &Map::new(), owner)?,
        Value::Object(map)
            if map
                .get("kind")
                .and_then(Value::as_str)
                .is_some_and(is_sandbox) =>
        {
            sandbox(&given, map, owner)?
        }
        Value::Object(map) if map.contains_key("command") || map.contains_key("uri") => {
            match mcp::of_execution(sources, &given.from, &given.value)? {
                Some(mut server) => {
                    server.owner = super::plugins::Owner::of(sources.role_of(&given.from));
                    server.written = given.written.clone();
                    Execution::Server(Box::new(server))
                }
                None => Execution::None,
            }
        }
        _ => {
            return Err(Failure::usage(format!(
                "{}: execution must be local, none, sandbox, {{ command, args, env }} or {{ uri }}",
                given.from
            )));
        }
    };
    shown.push(Shown {
        key: "execution",
        value: match given.written {
            // The map may contain secrets.
            Value::Object(map) => format!("(map with {} keys)", map.len()).into(),
            written => written,
        },
        from: given.from.to_string(),
    });
    Ok(execution)
}

fn is_sandbox(name: &str) -> bool {
    name == "sandbox" || name == "heimdall"
}

/// Reads the settings of haft-sandbox.
fn sandbox(given: &Given, map: &Map<String, Value>, owner: Owner) -> Result<Execution, Failure> {
    let wrong = |problem: &str| Failure::usage(format!("{}: execution: {problem}", given.from));
    const KNOWN: [&str; 4] = ["kind", "index", "timeout", "memory_mb"];
    if let Some(other) = map.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        let known = KNOWN.join(", ");
        return Err(wrong(&format!(
            "unknown key \"{other}\" for a sandbox; known keys: {known}"
        )));
    }
    let number =
        |name: &str, default: u64, range: std::ops::RangeInclusive<u64>| match map.get(name) {
            None => Ok(default),
            Some(value) => value
                .as_u64()
                .filter(|number| range.contains(number))
                .ok_or_else(|| {
                    let (least, most) = (range.start(), range.end());
                    wrong(&format!(
                        "{name} must be a whole number from {least} to {most}"
                    ))
                }),
        };
    let index = match map.get("index") {
        None => INDEX,
        Some(_) if owner == Owner::Project => {
            return Err(wrong("index is allowed only in your own haft.yaml"));
        }
        Some(Value::String(index)) => index,
        Some(_) => return Err(wrong("index must be a URL")),
    };
    let index = url::Url::parse(index).ok();
    let index = index.filter(|index| matches!(index.scheme(), "http" | "https"));
    Ok(Execution::Sandbox(Sandbox {
        index: index.ok_or_else(|| wrong("index must be an http or https URL"))?,
        timeout: number("timeout", 60, 1..=100)?,
        memory: number("memory_mb", 256, 64..=1024)?,
    }))
}

struct Reader<'a> {
    given: &'a Given,
    /// The project's folder, if its file sets the backend.
    project: Option<&'a Path>,
}

impl Reader<'_> {
    fn wrong(&self, what: &str) -> Failure {
        Failure::usage(format!("{}: {what}", self.given.from))
            .hint("valid values: filesystem, state or store; { kind: …, namespace: …, root: … }; or { routes: { /memories: store, /: filesystem } }")
    }

    fn has_variables(&self) -> bool {
        self.project.is_none() && has_variables(&self.given.written)
    }

    fn backend(&self, value: &Value) -> Result<Backend, Failure> {
        match value {
            Value::String(kind) => self.of_kind(kind, &Map::new()),
            Value::Object(map) if map.contains_key("routes") => self.routes(map),
            Value::Object(map) => match map.get("kind") {
                Some(Value::String(kind)) => self.of_kind(kind, map),
                _ => Err(self.wrong("backend needs kind or routes")),
            },
            _ => Err(self.wrong("backend must be a name or a map")),
        }
    }

    fn routes(&self, map: &Map<String, Value>) -> Result<Backend, Failure> {
        self.only(map, &["kind", "routes"])?;
        if map.get("kind").is_some_and(|kind| kind != "composite") {
            return Err(self.wrong("kind must be composite for a backend with routes"));
        }
        let Some(Value::Object(routes)) = map.get("routes") else {
            return Err(self.wrong("routes must be a map from paths to backends"));
        };
        let mut all = Vec::new();
        for (at, value) in routes {
            if !at.starts_with('/') {
                return Err(self.wrong(&format!("route {at} must start with /")));
            }
            match self.backend(value)? {
                Backend::Routes(_) => {
                    return Err(self.wrong(&format!("route {at} cannot contain routes")));
                }
                backend => all.push((at.clone(), backend)),
            }
        }
        Ok(Backend::Routes(all))
    }

    fn of_kind(&self, kind: &str, map: &Map<String, Value>) -> Result<Backend, Failure> {
        match kind {
            "filesystem" => {
                self.only(
                    map,
                    &[
                        "kind",
                        "root",
                        "virtual",
                        "virtual_mode",
                        "max_file_size_mb",
                    ],
                )?;
                Ok(Backend::Filesystem {
                    root: self.root(map)?,
                    is_virtual: self
                        .boolean(map, &["virtual", "virtual_mode"])?
                        .unwrap_or(true),
                    largest: self.megabytes(map)?,
                })
            }
            "state" => self.only(map, &["kind"]).map(|()| Backend::State),
            "store" => {
                self.only(map, &["kind", "namespace"])?;
                let name = match map.get("namespace") {
                    None => String::new(),
                    Some(Value::String(name)) => name.clone(),
                    Some(_) => return Err(self.wrong("namespace must be text")),
                };
                Ok(Backend::Store(Namespace {
                    name,
                    project: self.project.map(Path::to_owned),
                }))
            }
            other => {
                let known = KINDS.iter().map(|kind| (*kind).to_owned());
                let near = closest(other, known, 1);
                let suggestion = near
                    .first()
                    .map(|near| format!("; did you mean \"{near}\"?"));
                // Not the value of a variable, which may be a secret.
                if self.has_variables() {
                    return Err(self.wrong("unknown backend after expanding variables"));
                }
                Err(self.wrong(&format!(
                    "unknown backend \"{other}\"{}",
                    suggestion.unwrap_or_default()
                )))
            }
        }
    }

    fn only(&self, map: &Map<String, Value>, known: &[&str]) -> Result<(), Failure> {
        match map.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(other) => Err(self.wrong(&format!(
                "unknown key \"{other}\" in backend; known keys: {}",
                known.join(", ")
            ))),
        }
    }

    fn root(&self, map: &Map<String, Value>) -> Result<Option<PathBuf>, Failure> {
        let root = match map.get("root") {
            None => return Ok(None),
            Some(Value::String(root)) if !root.trim().is_empty() => Path::new(root),
            Some(_) => return Err(self.wrong("root must be a folder")),
        };
        let is_inside = root
            .components()
            .all(|part| matches!(part, Component::CurDir | Component::Normal(_)));
        if self.project.is_some() && !is_inside {
            return Err(self.wrong("in a project's file, root must be inside the work folder"));
        }
        Ok(Some(root.to_owned()))
    }

    fn boolean(&self, map: &Map<String, Value>, names: &[&str]) -> Result<Option<bool>, Failure> {
        match names.iter().find_map(|name| map.get(*name)) {
            None => Ok(None),
            Some(Value::Bool(truth)) => Ok(Some(*truth)),
            Some(_) => Err(self.wrong("virtual must be true or false")),
        }
    }

    fn megabytes(&self, map: &Map<String, Value>) -> Result<Option<u64>, Failure> {
        match map.get("max_file_size_mb").map(Value::as_u64) {
            None => Ok(None),
            Some(Some(megabytes @ 1..=1024)) => Ok(Some(megabytes << 20)),
            Some(_) => Err(self.wrong("max_file_size_mb must be a whole number from 1 to 1024")),
        }
    }
}
