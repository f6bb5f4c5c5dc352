//! What the settings say about where files live and how code is run, for the
//! toolset of absolute paths. A project's file may choose among what is its own.

use super::sources::{Given, Sources};
use super::{Shown, given_or, mcp, text};
use crate::exit::Failure;
use haft::ops::text::spelling::closest;
use serde_json::{Map, Value};
use std::path::{Component, Path, PathBuf};

/// Where files live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Backend {
    /// On the disk, below a folder.
    Filesystem {
        root: Option<PathBuf>,
        is_virtual: bool,
        /// The largest file that is read, in bytes.
        largest: Option<u64>,
    },
    /// In the session.
    State,
    /// In the store.
    Store(Namespace),
    /// Each path in another one.
    Routes(Vec<(String, Self)>),
}

/// A part of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    /// The folder of the project that asks for it: a project has namespaces of its
    /// own, and what it calls one tells nothing of the person's.
    pub(crate) project: Option<PathBuf>,
}

/// How code is run.
#[derive(Debug, Clone)]
pub(crate) enum Execution {
    /// As commands of this machine.
    Local,
    /// In a sandbox of its own, by haft-sandbox.
    Sandbox(Sandbox),
    /// By the tools of an MCP server.
    Server(Box<mcp::Configured>),
    /// Not at all.
    None,
}

/// How haft-sandbox runs code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sandbox {
    /// The package index.
    pub(crate) index: url::Url,
    /// How many seconds a call may take.
    pub(crate) timeout: u64,
    /// How many MiB a call of Python may take.
    pub(crate) memory: u64,
}

/// Python's own index.
const INDEX: &str = "https://pypi.org/simple";

const KINDS: [&str; 3] = ["filesystem", "state", "store"];

/// What is in force.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    /// Where the backend was chosen.
    pub(crate) from: String,
    /// Whether what it says depends on variables, whose values are not shown.
    pub(crate) has_variables: bool,
    pub(crate) backend: Backend,
    pub(crate) execution: Execution,
}

/// Reads it.
pub(crate) fn load(
    sources: &Sources<'_>,
    toolset: &str,
    warnings: &mut Vec<String>,
    shown: &mut Vec<Shown>,
) -> Result<Files, Failure> {
    let (backend, whose) = backend_given(sources, warnings)?;
    let project = match whose {
        Whose::Project => sources.project(),
        Whose::Person => None,
    };
    let files = Files {
        from: backend.from.to_string(),
        has_variables: whose == Whose::Person && has_variables(&backend.written),
        // A project has no say over variables: what they hold is the person's.
        backend: Reader {
            given: &backend,
            project,
        }
        .backend(match whose {
            Whose::Project => &backend.written,
            Whose::Person => &backend.value,
        })?,
        execution: execution(sources, warnings, shown)?,
    };
    let is_default = matches!(files.backend, Backend::Filesystem { root: None, .. });
    if !is_default && !has_a_tree(toolset) {
        return Err(Failure::usage(format!(
            "{}: backend is for the toolset deepagents; {toolset} works on the files of the work folder",
            backend.from
        ))
        .hint("use `--toolset deepagents`, or take it out"));
    }
    shown.push(Shown {
        key: "backend",
        value: backend.written,
        from: backend.from.to_string(),
    });
    Ok(files)
}

/// Whether a value as it is written names variables.
fn has_variables(written: &Value) -> bool {
    written.to_string().contains("${")
}

/// Whether the paths of a toolset are those of a tree of its own.
pub(crate) fn has_a_tree(toolset: &str) -> bool {
    haft::toolsets::by_name(toolset).is_some_and(|toolset| toolset.paths == haft::Paths::Virtual)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Person,
    Project,
}

/// The person's word, or else the project's.
fn backend_given(
    sources: &Sources<'_>,
    warnings: &mut Vec<String>,
) -> Result<(Given, Whose), Failure> {
    let (person, project) = sources.apart("backend")?;
    match (person, project) {
        (Some(person), Some(project)) => {
            warnings.push(format!(
                "{}: backend is ignored: {} sets it",
                project.from, person.from
            ));
            Ok((person, Whose::Person))
        }
        (None, Some(project)) => Ok((project, Whose::Project)),
        (person, None) => Ok((given_or(person, "filesystem".into()), Whose::Person)),
    }
}

fn execution(
    sources: &Sources<'_>,
    warnings: &mut Vec<String>,
    shown: &mut Vec<Shown>,
) -> Result<Execution, Failure> {
    let (person, project) = sources.apart("execution")?;
    let is_none = |given: &Given| text(given) == "none";
    let (given, whose) = match (person, project) {
        (_, Some(project)) if is_none(&project) => (project, Whose::Project),
        (Some(person), Some(project)) => {
            warnings.push(format!(
                "{}: execution is ignored: {} sets it",
                project.from, person.from
            ));
            (person, Whose::Person)
        }
        (None, Some(project)) => (project, Whose::Project),
        (person, None) => (given_or(person, "local".into()), Whose::Person),
    };
    let execution = match &given.value {
        Value::String(name) if name == "local" => Execution::Local,
        Value::String(name) if name == "none" => Execution::None,
        Value::String(name) if is_sandbox(name) => sandbox(&given, &Map::new(), whose)?,
        Value::Object(map)
            if map
                .get("kind")
                .and_then(Value::as_str)
                .is_some_and(is_sandbox) =>
        {
            sandbox(&given, map, whose)?
        }
        Value::Object(map) if map.contains_key("command") || map.contains_key("uri") => {
            match mcp::of_execution(sources, &given.from, &given.value)? {
                Some(mut server) => {
                    server.whose = super::plugins::Whose::of(sources.role_of(&given.from));
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
            // What it holds may be secret.
            Value::Object(map) => format!("({} in a map)", map.len()).into(),
            written => written,
        },
        from: given.from.to_string(),
    });
    Ok(execution)
}

fn is_sandbox(name: &str) -> bool {
    name == "sandbox" || name == "heimdall"
}

/// Reads how haft-sandbox runs code.
fn sandbox(given: &Given, map: &Map<String, Value>, whose: Whose) -> Result<Execution, Failure> {
    let wrong = |problem: &str| Failure::usage(format!("{}: execution: {problem}", given.from));
    const KNOWN: [&str; 4] = ["kind", "index", "timeout", "memory_mb"];
    if let Some(other) = map.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        let known = KNOWN.join(", ");
        return Err(wrong(&format!(
            "a sandbox has no \"{other}\"; it has: {known}"
        )));
    }
    let number = |name: &str, usual: u64, range: std::ops::RangeInclusive<u64>| match map.get(name)
    {
        None => Ok(usual),
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
        Some(_) if whose == Whose::Project => {
            return Err(wrong("only your own file says where packages come from"));
        }
        Some(Value::String(index)) => index,
        Some(_) => return Err(wrong("index must be an address")),
    };
    let index = url::Url::parse(index).ok();
    let index = index.filter(|index| matches!(index.scheme(), "http" | "https"));
    Ok(Execution::Sandbox(Sandbox {
        index: index.ok_or_else(|| wrong("index must be an http or https address"))?,
        timeout: number("timeout", 60, 1..=100)?,
        memory: number("memory_mb", 256, 64..=1024)?,
    }))
}

struct Reader<'a> {
    given: &'a Given,
    /// The folder of the project whose word it is.
    project: Option<&'a Path>,
}

impl Reader<'_> {
    fn wrong(&self, what: &str) -> Failure {
        Failure::usage(format!("{}: {what}", self.given.from))
            .hint("backend is filesystem, state or store; { kind: …, namespace: …, root: … }; or { routes: { /memories: store, /: filesystem } }")
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
                _ => Err(self.wrong("a backend has a kind, or routes")),
            },
            _ => Err(self.wrong("backend must be a name or a map")),
        }
    }

    fn routes(&self, map: &Map<String, Value>) -> Result<Backend, Failure> {
        self.only(map, &["kind", "routes"])?;
        if map.get("kind").is_some_and(|kind| kind != "composite") {
            return Err(self.wrong("a backend with routes is of the kind composite"));
        }
        let Some(Value::Object(routes)) = map.get("routes") else {
            return Err(self.wrong("routes must be a map from paths to backends"));
        };
        let mut all = Vec::new();
        for (at, value) in routes {
            if !at.starts_with('/') {
                return Err(self.wrong(&format!("the route {at} must begin with /")));
            }
            match self.backend(value)? {
                Backend::Routes(_) => {
                    return Err(self.wrong(&format!("the route {at} has routes of its own")));
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
                        .truth(map, &["virtual", "virtual_mode"])?
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
                let meant = near
                    .first()
                    .map(|near| format!("; did you mean \"{near}\"?"));
                // As it is written: a variable may hold a secret.
                let shown = if self.has_variables() {
                    "of that name"
                } else {
                    other
                };
                Err(self.wrong(&format!(
                    "there is no backend \"{shown}\"{}",
                    meant.filter(|_| !self.has_variables()).unwrap_or_default()
                )))
            }
        }
    }

    fn only(&self, map: &Map<String, Value>, known: &[&str]) -> Result<(), Failure> {
        match map.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(other) => Err(self.wrong(&format!(
                "backend has no \"{other}\" here; it has: {}",
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
            return Err(self.wrong("in a project's file, root must lie in the work folder"));
        }
        Ok(Some(root.to_owned()))
    }

    fn truth(&self, map: &Map<String, Value>, names: &[&str]) -> Result<Option<bool>, Failure> {
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
