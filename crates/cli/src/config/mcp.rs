//! MCP servers in the configuration. A project's servers are only read here; whether they
//! are used depends on trust.

use super::plugins::{self, Environment, Owner, located, located_folder, texts};
use super::sources::{Listed, Origin, Sources};
use super::value;
use super::{Shown, joined};
use crate::env;
use crate::exit::Failure;
use haft::ops::text::spelling::closest;
use haft_mcp::client::{Endpoint, HttpTransport, Identity};
use haft_web::Secret;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Keys of a server.
const KEYS: [&str; 12] = [
    "command", "args", "env", "cwd", "url", "headers", "uri", "oauth", "type", "timeout", "tools",
    "enabled",
];

/// Accepted values of `type`, including the spellings of other programs owner settings
/// users paste.
const TYPES: [(&str, ServerKind); 6] = [
    ("stdio", ServerKind::Stdio),
    ("http", ServerKind::Http),
    ("streamable-http", ServerKind::Http),
    ("streamable_http", ServerKind::Http),
    ("streamableHttp", ServerKind::Http),
    ("sse", ServerKind::Sse),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerKind {
    Stdio,
    Http,
    Sse,
}

/// A configured MCP server.
#[derive(Debug, Clone)]
pub(crate) struct Configured {
    pub(crate) name: String,
    pub(crate) connection: Connection,
    pub(crate) timeout: Option<Duration>,
    /// If set, only these tools are used.
    pub(crate) only: Option<Vec<String>>,
    pub(crate) owner: Owner,
    /// Folder of the file that configures it.
    pub(crate) folder: PathBuf,
    /// The entry as written, which the user is shown before trusting it.
    pub(crate) written: Value,
    pub(crate) from: String,
}

impl Configured {
    /// Whether the project's file configures it.
    pub(crate) fn is_project(&self) -> bool {
        self.owner == Owner::Project
    }

    /// Returns the program as it may be shown, if the server is one: relative to a folder
    /// it is in, or with variables unexpanded.
    pub(crate) fn written_program(&self, from: Option<&Path>) -> Option<String> {
        let program = self.connection.program()?;
        let below = from.and_then(|folder| program.strip_prefix(folder).ok());
        let written = match &self.written["command"] {
            Value::Array(words) => words.first().and_then(Value::as_str),
            other => other.as_str(),
        };
        let written = written.unwrap_or_default();
        Some(value::shown_path(written, below.unwrap_or(program)))
    }
}

/// How to reach a server.
#[derive(Debug, Clone)]
pub(crate) enum Connection {
    Program {
        /// Absolute path, or a name to look up in PATH.
        program: PathBuf,
        arguments: Vec<String>,
        environment: Environment,
        dir: Option<PathBuf>,
    },
    Address {
        url: String,
        headers: Vec<(String, Secret)>,
        wire: HttpTransport,
        /// Identity that haft signs in with.
        identity: Identity,
    },
}

/// Reads the servers, the user's before the project's.
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
                    "{origin}: tools.mcp.{name} is ignored: your own haft.yaml has a server of this name"
                ));
            }
            continue;
        }
        let value = match value {
            Ok(value) => value,
            Err(failure) => {
                warnings.push(format!("{}: skipped this MCP server", failure.message));
                continue;
            }
        };
        let reader = Reader {
            key: &format!("tools.mcp.{name}"),
            folder: folder_of(sources, &origin),
            from: &origin,
        };
        if let Some(mut server) = reader.server(&name, &value)? {
            if server.connection.is_haft_again() {
                warnings.push(format!(
                    "{origin}: skipped MCP server {name}: it is haft itself with these settings and would start itself endlessly; add `--config FILE` to its args"
                ));
                continue;
            }
            server.owner = Owner::of(sources.role_of(&origin));
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

/// Returns the server in `execution`, which runs code.
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
    /// Creates an error. It never contains values, which may be keys.
    fn wrong(&self, what: &str) -> Failure {
        Failure::usage(format!("{}: {}: {what}", self.from, self.key))
            .hint("write { command: …, args: […], env: {…} } or { url: … }")
    }

    /// Reads a server; `None` if it is disabled.
    fn server(&self, name: &str, value: &Value) -> Result<Option<Configured>, Failure> {
        let Value::Object(map) = value else {
            return Err(self.wrong("a server must be a map"));
        };
        if name.trim().is_empty() {
            return Err(self.wrong("the server's name is empty"));
        }
        if let Some(key) = map.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let near = closest(key, KEYS.map(str::to_owned), 1);
            let suggestion = match near.first() {
                Some(near) => format!("; did you mean \"{near}\"?"),
                None => format!("; known keys: {}", KEYS.join(", ")),
            };
            return Err(self.wrong(&format!("unknown key \"{key}\"{suggestion}")));
        }
        let server = Configured {
            name: name.to_owned(),
            connection: self.connection(map)?,
            timeout: self.timeout(map)?,
            only: match map.get("tools") {
                None | Some(Value::Null) => None,
                Some(_) => Some(self.texts(map, "tools")?),
            },
            owner: Owner::User,
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

    fn connection(&self, map: &Map<String, Value>) -> Result<Connection, Failure> {
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
            (["command"], None | Some(ServerKind::Stdio)) => {
                self.not(map, &["headers", "oauth"], "a server with a command")?;
                self.program(map)
            }
            ([way @ ("url" | "uri")], None | Some(ServerKind::Http | ServerKind::Sse)) => {
                self.not(map, &["args", "env", "cwd"], "a server with a url")?;
                let wire = match (kind, *way) {
                    (Some(ServerKind::Sse), _) => HttpTransport::Events,
                    (Some(ServerKind::Http), _) => HttpTransport::Streamable,
                    (_, "uri") => HttpTransport::Either,
                    _ => HttpTransport::Streamable,
                };
                self.address(map, way, wire)
            }
            ([], _) => Err(self.wrong("command or url is missing")),
            ([_], _) => {
                Err(self.wrong("type does not match: stdio needs command, http and sse need url"))
            }
            _ => Err(self.wrong("only one of command, url and uri is allowed")),
        }
    }

    fn not(&self, map: &Map<String, Value>, keys: &[&str], what: &str) -> Result<(), Failure> {
        match keys.iter().find(|key| map.contains_key(**key)) {
            Some(key) => Err(self.wrong(&format!("{what} cannot have {key}"))),
            None => Ok(()),
        }
    }

    fn program(&self, map: &Map<String, Value>) -> Result<Connection, Failure> {
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
        Ok(Connection::Program {
            program: located(&program, &self.folder),
            arguments,
            environment: Environment::read(map).map_err(|what| self.wrong(&what))?,
            dir,
        })
    }

    fn address(
        &self,
        map: &Map<String, Value>,
        key: &str,
        wire: HttpTransport,
    ) -> Result<Connection, Failure> {
        let Some(Value::String(url)) = map.get(key) else {
            return Err(self.wrong(&format!("{key} must be a URL")));
        };
        let mut headers = Vec::new();
        match map.get("headers") {
            None | Some(Value::Null) => {}
            Some(Value::Object(given)) => {
                for (name, value) in given {
                    let Value::String(value) = value else {
                        return Err(self.wrong(&format!("header {name} must be text")));
                    };
                    headers.push((name.clone(), Secret::new(value)));
                }
            }
            Some(_) => return Err(self.wrong("headers must be a map")),
        }
        Endpoint::address(url.trim(), headers.clone(), wire)
            .map_err(|error| self.wrong(&format!("{key}: {error}")))?;
        Ok(Connection::Address {
            url: url.trim().to_owned(),
            headers,
            wire,
            identity: self.identity(map)?,
        })
    }

    /// Reads the identity to sign in with, for servers that do not let haft register
    /// itself.
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
                        "unknown key \"{name}\" in oauth; known keys: {known}"
                    )));
                }
            }
        }
        if identity.client_secret.is_some() && identity.client_id.is_none() {
            return Err(self.wrong("oauth.client_secret needs oauth.client_id"));
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

/// JSON Schema of a server, for editors.
pub(super) fn schema() -> Value {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let map = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    json!({
        "type": "object",
        "properties": {
            "command": { "description": "Program to start as the server", "anyOf": [{ "type": "string" }, texts] },
            "args": texts,
            "env": { "description": "Additional environment variables", "anyOf": [map, texts] },
            "cwd": { "description": "Folder to run it in", "type": "string" },
            "url": { "description": "URL of a server that uses streamable HTTP", "type": "string" },
            "uri": { "description": "URL of a server that uses streamable HTTP or SSE", "type": "string" },
            "headers": map,
            "oauth": {
                "description": "Identity to sign in with, if haft cannot register itself",
                "type": "object",
                "properties": {
                    "client_id": { "type": "string" },
                    "client_secret": { "type": "string" },
                    "metadata_url": { "type": "string" },
                },
                "additionalProperties": false,
            },
            "type": { "enum": TYPES.map(|(name, _)| name) },
            "timeout": { "description": "Seconds to wait for progress of a call", "type": "number" },
            "tools": { "description": "If set, only these tools are used", "type": "array", "items": { "type": "string" } },
            "enabled": { "type": "boolean" },
        },
        "additionalProperties": false,
    })
}

/// Returns the server's name as a safe file name.
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

impl Connection {
    /// Whether the server is haft itself with the same configuration.
    fn is_haft_again(&self) -> bool {
        let Self::Program {
            program, arguments, ..
        } = self
        else {
            return false;
        };
        let real = |path: &Path| haft::ops::scope::real(path);
        let haft = real(&env::own_program());
        let folders = env::paths("PATH");
        let is_haft = match program.is_absolute() {
            true => haft.is_some() && real(program) == haft,
            false => folders
                .iter()
                .any(|folder| haft.is_some() && real(&folder.join(program)) == haft),
        };
        is_haft && !arguments.iter().any(|word| word.starts_with("--config"))
    }

    /// Returns the program, unless the server is reached by URL.
    pub(crate) fn program(&self) -> Option<&Path> {
        match self {
            Self::Program { program, .. } => Some(program),
            Self::Address { .. } => None,
        }
    }
}
