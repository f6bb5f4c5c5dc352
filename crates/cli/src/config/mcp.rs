//! MCP servers whose tools a session has: what the settings say of them. What a project
//! names is only named here; whether it is reached is a matter of trust.

use super::plugins::{self, Environment, Whose, located, located_folder, texts};
use super::sources::{Listed, Origin, Sources};
use super::value;
use super::{Shown, joined};
use crate::env;
use crate::exit::Failure;
use haft::ops::text::spelling::closest;
use haft_mcp::client::{Identity, Reach, Wire};
use haft_web::Secret;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The keys of a server.
const KEYS: [&str; 12] = [
    "command", "args", "env", "cwd", "url", "headers", "uri", "oauth", "type", "timeout", "tools",
    "enabled",
];

/// How a server may be called that is pasted from elsewhere.
const TYPES: [(&str, Kind); 6] = [
    ("stdio", Kind::Stdio),
    ("http", Kind::Http),
    ("streamable-http", Kind::Http),
    ("streamable_http", Kind::Http),
    ("streamableHttp", Kind::Http),
    ("sse", Kind::Sse),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Http,
    Sse,
}

/// An MCP server.
#[derive(Debug, Clone)]
pub(crate) struct Configured {
    pub(crate) name: String,
    pub(crate) how: How,
    pub(crate) timeout: Option<Duration>,
    /// The only tools that are taken of it.
    pub(crate) only: Option<Vec<String>>,
    /// Whose word it is.
    pub(crate) whose: Whose,
    /// The folder of its file.
    pub(crate) folder: PathBuf,
    /// How it is written, for who has to say yes to it.
    pub(crate) written: Value,
    pub(crate) from: String,
}

impl Configured {
    /// Whether it is the project's word.
    pub(crate) fn is_project(&self) -> bool {
        self.whose == Whose::Project
    }

    /// The program as it may be shown, where it is one: as a path from a folder if it is
    /// below that, or with the names of variables in it.
    pub(crate) fn written_program(&self, from: Option<&Path>) -> Option<String> {
        let program = self.how.program()?;
        let below = from.and_then(|folder| program.strip_prefix(folder).ok());
        let written = match &self.written["command"] {
            Value::Array(words) => words.first().and_then(Value::as_str),
            other => other.as_str(),
        };
        let written = written.unwrap_or_default();
        Some(value::shown_path(written, below.unwrap_or(program)))
    }
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub(crate) enum How {
    Program {
        /// Absolute, or a name to look up.
        program: PathBuf,
        arguments: Vec<String>,
        environment: Environment,
        dir: Option<PathBuf>,
    },
    Address {
        url: String,
        headers: Vec<(String, Secret)>,
        wire: Wire,
        /// As what haft signs in.
        identity: Identity,
    },
}

/// Reads them: the person's first, then the project's.
pub(crate) fn load(
    sources: &Sources<'_>,
    warnings: &mut Vec<String>,
    shown: &mut Vec<Shown>,
) -> Result<Vec<Configured>, Failure> {
    let mut servers: Vec<Configured> = Vec::new();
    let mut from = Vec::new();
    let mut all = sources.entries("tools.mcp");
    all.sort_by_key(|server| server.is_project);
    for listed in all {
        let Listed {
            name,
            is_project,
            from: origin,
            value,
            written,
        } = listed;
        if servers.iter().any(|server| server.name == name) {
            if is_project {
                warnings.push(format!(
                    "{origin}: tools.mcp.{name} is ignored: your own file has one of that name"
                ));
            }
            continue;
        }
        let value = match value {
            Ok(value) => value,
            Err(failure) => {
                warnings.push(format!("{}: the MCP server is left out", failure.message));
                continue;
            }
        };
        let reader = Reader {
            key: &format!("tools.mcp.{name}"),
            folder: folder_of(sources, &origin),
            from: &origin,
        };
        if let Some(mut server) = reader.server(&name, &value)? {
            if server.how.is_haft_again() {
                warnings.push(format!(
                    "{origin}: tools.mcp.{name} is haft itself, which would start itself without end: the MCP server is left out (`--config FILE` among its args gives it other settings)"
                ));
                continue;
            }
            server.whose = Whose::of(sources.role_of(&origin));
            server.written = written;
            from.push(origin);
            servers.push(server);
        }
    }
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    if !names.is_empty() {
        shown.push(Shown {
            key: "tools.mcp",
            value: names.into(),
            from: joined(&from),
        });
    }
    Ok(servers)
}

fn folder_of(sources: &Sources<'_>, origin: &Origin) -> PathBuf {
    match origin {
        Origin::File(shown, _) => sources.folder_of(shown).unwrap_or_default(),
        _ => PathBuf::new(),
    }
}

/// The server that runs code, from `execution`.
pub(crate) fn of_execution(
    sources: &Sources<'_>,
    from: &Origin,
    value: &Value,
) -> Result<Option<Configured>, Failure> {
    let reader = Reader {
        key: "execution",
        folder: folder_of(sources, from),
        from,
    };
    reader.server("execution", value)
}

struct Reader<'a> {
    key: &'a str,
    folder: PathBuf,
    from: &'a Origin,
}

impl Reader<'_> {
    /// What is wrong. Values are not repeated: they may be keys.
    fn wrong(&self, what: &str) -> Failure {
        Failure::usage(format!("{}: {}: {what}", self.from, self.key))
            .hint("a server is { command: …, args: […], env: {…} }, or { url: … }")
    }

    /// The server, unless it is switched off.
    fn server(&self, name: &str, value: &Value) -> Result<Option<Configured>, Failure> {
        let Value::Object(map) = value else {
            return Err(self.wrong("a server is a map"));
        };
        if name.trim().is_empty() {
            return Err(self.wrong("a server has a name"));
        }
        if let Some(key) = map.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let near = closest(key, KEYS.map(str::to_owned), 1);
            let meant = match near.first() {
                Some(near) => format!("; did you mean \"{near}\"?"),
                None => format!("; there are: {}", KEYS.join(", ")),
            };
            return Err(self.wrong(&format!("there is no \"{key}\" here{meant}")));
        }
        let server = Configured {
            name: name.to_owned(),
            how: self.how(map)?,
            timeout: self.timeout(map)?,
            only: match map.get("tools") {
                None | Some(Value::Null) => None,
                Some(_) => Some(self.texts(map, "tools")?),
            },
            whose: Whose::Person,
            folder: self.folder.clone(),
            written: Value::Null,
            from: self.from.to_string(),
        };
        match map.get("enabled") {
            None | Some(Value::Null | Value::Bool(true)) => Ok(Some(server)),
            Some(Value::Bool(false)) => Ok(None),
            Some(_) => Err(self.wrong("enabled must be true or false")),
        }
    }

    fn how(&self, map: &Map<String, Value>) -> Result<How, Failure> {
        let kind = match map.get("type") {
            None | Some(Value::Null) => None,
            Some(Value::String(given)) => {
                let known = TYPES.iter().find(|(name, _)| name == given);
                let (_, kind) =
                    known.ok_or_else(|| self.wrong("type must be stdio, http or sse"))?;
                Some(*kind)
            }
            Some(_) => return Err(self.wrong("type must be stdio, http or sse")),
        };
        let is_given = |key: &&str| map.get(*key).is_some_and(|value| !value.is_null());
        let ways: Vec<&str> = ["command", "url", "uri"]
            .into_iter()
            .filter(is_given)
            .collect();
        match (ways.as_slice(), kind) {
            (["command"], None | Some(Kind::Stdio)) => {
                self.not(map, &["headers", "oauth"], "a server with a command")?;
                self.program(map)
            }
            ([way @ ("url" | "uri")], None | Some(Kind::Http | Kind::Sse)) => {
                self.not(map, &["args", "env", "cwd"], "a server with an address")?;
                let wire = match (kind, *way) {
                    (Some(Kind::Sse), _) => Wire::Events,
                    (Some(Kind::Http), _) => Wire::Streamable,
                    (_, "uri") => Wire::Either,
                    _ => Wire::Streamable,
                };
                self.address(map, way, wire)
            }
            ([], _) => Err(self.wrong("it has neither a command nor a url")),
            ([_], _) => Err(self.wrong("its type is for another kind of server")),
            _ => Err(self.wrong("it has more than one of command, url and uri")),
        }
    }

    fn not(&self, map: &Map<String, Value>, keys: &[&str], what: &str) -> Result<(), Failure> {
        match keys.iter().find(|key| map.contains_key(**key)) {
            Some(key) => Err(self.wrong(&format!("{what} has no {key}"))),
            None => Ok(()),
        }
    }

    fn program(&self, map: &Map<String, Value>) -> Result<How, Failure> {
        let missing = || self.wrong("command must be a program");
        let (program, mut arguments) = match map.get("command") {
            Some(Value::String(program)) => (program.trim().to_owned(), Vec::new()),
            Some(Value::Array(_)) => {
                let mut words = self.texts(map, "command")?.into_iter();
                (words.next().ok_or_else(missing)?, words.collect())
            }
            _ => return Err(missing()),
        };
        if program.is_empty() {
            return Err(missing());
        }
        arguments.extend(plugins::arguments(map).map_err(|what| self.wrong(&what))?);
        let dir = match map.get("cwd") {
            None | Some(Value::Null) => None,
            Some(Value::String(dir)) => Some(located_folder(dir, &self.folder)),
            Some(_) => return Err(self.wrong("cwd must be a folder")),
        };
        Ok(How::Program {
            program: located(&program, &self.folder),
            arguments,
            environment: Environment::read(map).map_err(|what| self.wrong(&what))?,
            dir,
        })
    }

    fn address(&self, map: &Map<String, Value>, key: &str, wire: Wire) -> Result<How, Failure> {
        let Some(Value::String(url)) = map.get(key) else {
            return Err(self.wrong(&format!("{key} must be an address")));
        };
        let mut headers = Vec::new();
        match map.get("headers") {
            None | Some(Value::Null) => {}
            Some(Value::Object(given)) => {
                for (name, value) in given {
                    let Value::String(value) = value else {
                        return Err(self.wrong(&format!("the header {name} must be text")));
                    };
                    headers.push((name.clone(), Secret::new(value)));
                }
            }
            Some(_) => return Err(self.wrong("headers must be a map")),
        }
        Reach::address(url.trim(), headers.clone(), wire)
            .map_err(|error| self.wrong(&format!("{key}: {error}")))?;
        Ok(How::Address {
            url: url.trim().to_owned(),
            headers,
            wire,
            identity: self.identity(map)?,
        })
    }

    /// As what haft signs in, for servers that do not let it register itself.
    fn identity(&self, map: &Map<String, Value>) -> Result<Identity, Failure> {
        let mut identity = Identity::default();
        let given = match map.get("oauth") {
            None | Some(Value::Null) => return Ok(identity),
            Some(Value::Object(given)) => given,
            Some(_) => return Err(self.wrong("oauth must be a map")),
        };
        for (name, value) in given {
            let Value::String(text) = value else {
                return Err(self.wrong(&format!("oauth.{name} must be text")));
            };
            match name.as_str() {
                "client_id" => identity.client_id = Some(text.clone()),
                "client_secret" => identity.client_secret = Some(Secret::new(text)),
                "metadata_url" => identity.metadata_url = Some(text.clone()),
                _ => {
                    let known = "client_id, client_secret, metadata_url";
                    return Err(self.wrong(&format!(
                        "there is no \"{name}\" in oauth; there are: {known}"
                    )));
                }
            }
        }
        if identity.client_secret.is_some() && identity.client_id.is_none() {
            return Err(self.wrong("oauth.client_secret goes with a client_id"));
        }
        Ok(identity)
    }

    fn timeout(&self, map: &Map<String, Value>) -> Result<Option<Duration>, Failure> {
        let seconds = match map.get("timeout") {
            None | Some(Value::Null) => return Ok(None),
            Some(seconds) => seconds.as_f64(),
        };
        seconds
            .filter(|seconds| (0.001..=86_400.0).contains(seconds))
            .map(|seconds| Some(Duration::from_secs_f64(seconds)))
            .ok_or_else(|| self.wrong("timeout must be a number of seconds, up to a day"))
    }

    fn texts(&self, map: &Map<String, Value>, key: &str) -> Result<Vec<String>, Failure> {
        texts(map, key).map_err(|what| self.wrong(&what))
    }
}

/// What an editor knows of a server.
pub(super) fn schema() -> Value {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let map = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    json!({
        "type": "object",
        "properties": {
            "command": { "description": "The program that is the server", "anyOf": [{ "type": "string" }, texts] },
            "args": texts,
            "env": { "description": "Variables it sees beside the usual ones", "anyOf": [map, texts] },
            "cwd": { "description": "The folder it runs in", "type": "string" },
            "url": { "description": "Where it is, over streamable HTTP", "type": "string" },
            "uri": { "description": "Where it is, over streamable HTTP or events", "type": "string" },
            "headers": map,
            "oauth": {
                "description": "As what haft signs in, where it cannot register itself",
                "type": "object",
                "properties": {
                    "client_id": { "type": "string" },
                    "client_secret": { "type": "string" },
                    "metadata_url": { "type": "string" },
                },
                "additionalProperties": false,
            },
            "type": { "enum": TYPES.map(|(name, _)| name) },
            "timeout": { "description": "Seconds a call may go without a sign of life", "type": "number" },
            "tools": { "description": "The only tools that are taken of it", "type": "array", "items": { "type": "string" } },
            "enabled": { "type": "boolean" },
        },
        "additionalProperties": false,
    })
}

/// The name of a file for something of a server.
pub(crate) fn label(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    name.chars().map(plain).take(60).collect()
}

impl How {
    /// Whether it is this very program with the settings that name it.
    fn is_haft_again(&self) -> bool {
        let Self::Program {
            program, arguments, ..
        } = self
        else {
            return false;
        };
        let real = |path: &Path| haft::ops::scope::real(path);
        let itself = real(&env::itself());
        let folders = env::paths("PATH");
        let is_it = match program.is_absolute() {
            true => itself.is_some() && real(program) == itself,
            false => folders
                .iter()
                .any(|folder| itself.is_some() && real(&folder.join(program)) == itself),
        };
        is_it && !arguments.iter().any(|word| word.starts_with("--config"))
    }

    /// The program, where it is one.
    pub(crate) fn program(&self) -> Option<&Path> {
        match self {
            Self::Program { program, .. } => Some(program),
            Self::Address { .. } => None,
        }
    }
}
