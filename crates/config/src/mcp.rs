//! MCP servers in the configuration. A project's servers are only read here; whether they
//! are used depends on trust.

use super::node::Node;
use super::plugins::{AddedVariables, Owner, from_home, located, located_folder};
use super::reader::{self, Values};
use super::setting::{Names, OneOf, Seconds, TextOr, Word};
use super::sources::{Given, Sources};
use super::{Notes, Settings, env_file, variables};
use crate::environment::Environment;
use crate::failure::Failure;
use haft_mcp::client::{Endpoint, HttpTransport, Identity};
use haft_web::Secret;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Keys of other programs that mean nothing here: who is asked before a call is decided by
/// `policy`.
const IGNORED: [&str; 8] = [
    "autoApprove",
    "alwaysAllow",
    "description",
    "trust",
    "gallery",
    "version",
    "icon",
    "note",
];

/// Limits above this number of seconds are taken as milliseconds, which other programs use.
const MOST_SECONDS: f64 = 3_600.0;

/// A server: a program or an address. Unknown keys are reported by [`note_unknown_keys`].
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct ServerEntry {
    /// Program to start as the server.
    command: Option<TextOr<Vec<Word>>>,
    /// Arguments of the program.
    args: Option<Vec<Word>>,
    /// Additional environment variables.
    env: Option<AddedVariables>,
    /// File with more variables, NAME=VALUE on each line.
    #[serde(rename = "envFile")]
    env_file: Option<String>,
    /// Folder to run it in.
    cwd: Option<String>,
    /// URL of a server that uses streamable HTTP.
    url: Option<String>,
    /// URL of a server that uses streamable HTTP or SSE.
    uri: Option<String>,
    /// Another name of `url`.
    #[serde(rename = "httpUrl")]
    http_url: Option<String>,
    /// HTTP headers of each request.
    headers: Option<BTreeMap<String, String>>,
    /// Identity to sign in with, if haft cannot register itself.
    oauth: Option<OauthEntry>,
    /// How to reach the server.
    #[serde(rename = "type")]
    kind: Option<OneOf<ServerKinds>>,
    /// Seconds to wait for progress of a call.
    timeout: Option<Seconds>,
    /// Seconds the server may take to start, and again to list its tools [default: 60].
    start_timeout: Option<Seconds>,
    /// If set, only these tools are used.
    tools: Option<Vec<Word>>,
    /// Whether the server is used.
    enabled: Option<bool>,
    /// Whether the server is left out.
    disabled: Option<bool>,
}

/// Identity to sign in with.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OauthEntry {
    /// Id of the client.
    client_id: Option<String>,
    /// Secret of the client.
    client_secret: Option<String>,
    /// URL of a document that describes the client.
    metadata_url: Option<String>,
}

#[derive(Debug)]
enum ServerKinds {}

/// Includes the spellings of other programs whose settings users paste.
impl Names for ServerKinds {
    const NAMES: &'static [&'static str] = &[
        "stdio",
        "http",
        "sse",
        "streamable-http",
        "streamable_http",
        "streamableHttp",
    ];
}

/// A configured MCP server.
#[derive(Debug, Clone)]
pub struct Configured {
    /// Name in the configuration.
    pub name: String,
    /// How to reach it.
    pub connection: Connection,
    pub(crate) timeout: Option<Duration>,
    pub(crate) start_timeout: Option<Duration>,
    /// If set, only these tools are used.
    pub(crate) only: Option<Vec<String>>,
    /// File that some of its variables come from.
    pub(crate) env_file: Option<EnvFile>,
    pub(crate) owner: Owner,
    /// Folder of the file that configures it.
    pub(crate) folder: PathBuf,
    /// The entry as written, which the user is shown before trusting it.
    pub written: Value,
    /// File and line that configure it.
    pub from: String,
}

/// Variables of a server that come from a file.
#[derive(Debug, Clone)]
pub(crate) struct EnvFile {
    pub(crate) path: PathBuf,
    variables: Vec<(String, String)>,
}

impl Configured {
    /// Adds variables. Those in `env` take precedence.
    fn add_variables(&mut self, file: Option<EnvFile>) {
        if let (Some(file), Connection::Program { environment, .. }) = (&file, &mut self.connection)
        {
            let more = file.variables.iter().filter(|(name, _)| {
                let is_set = environment.values.iter().any(|(other, _)| other == name);
                !is_set && !environment.names.contains(name)
            });
            let more: Vec<_> = more.cloned().collect();
            environment.values.extend(more);
        }
        self.env_file = file;
    }

    /// Returns the secrets in the file with its variables.
    pub(crate) fn file_secrets(&self) -> impl Iterator<Item = String> {
        let variables = self.env_file.iter().flat_map(|file| &file.variables);
        let is_secret = |name: &str, value: &str| {
            haft::ops::exec::environment::is_withheld(name.as_ref(), value.as_ref())
        };
        variables
            .filter(move |(name, value)| !value.is_empty() && is_secret(name, value))
            .map(|(_, value)| value.clone())
    }

    /// Whether the project's file configures it.
    pub(crate) fn is_project(&self) -> bool {
        self.owner == Owner::Project
    }

    /// Returns the program as it may be shown, if the server is one: relative to a folder
    /// it is in, or with variables unexpanded.
    pub fn written_program(&self, from: Option<&Path>) -> Option<String> {
        let program = self.connection.program()?;
        let below = from.and_then(|folder| program.strip_prefix(folder).ok());
        let written = match &self.written["command"] {
            Value::Array(words) => words.first().and_then(Value::as_str),
            other => other.as_str(),
        };
        let written = written.unwrap_or_default();
        Some(variables::shown_path(written, below.unwrap_or(program)))
    }
}

/// How to reach a server.
#[derive(Debug, Clone)]
pub enum Connection {
    /// A program that haft starts.
    Program {
        /// Absolute path, or a name to look up in PATH.
        program: PathBuf,
        /// Arguments of the program.
        arguments: Vec<String>,
        /// Additional environment variables.
        environment: AddedVariables,
        /// Folder to run in, if configured.
        dir: Option<PathBuf>,
    },
    /// A server on the network.
    Address {
        /// Address of its endpoint.
        url: String,
        /// Additional headers of every request.
        headers: Vec<(String, Secret)>,
        /// Transport that it offers.
        wire: HttpTransport,
        /// Identity that haft signs in with.
        identity: Identity,
    },
}

/// Reads the servers, the user's before the project's.
pub(crate) fn load(sources: &Sources, notes: &mut Notes) -> Result<Vec<Configured>, Failure> {
    let mut servers: Vec<Configured> = Vec::new();
    let mut from = Vec::new();
    let mut all = sources.all(|file| &file.tools.mcp)?;
    all.extend(sources.all(|file| &file.mcp_servers)?);
    all.sort_by_key(|(_, server)| server.is_project());
    for entry in all {
        let (name, given) = &entry;
        let (name, origin) = (*name, given.from.clone());
        if servers.iter().any(|server| server.name == name) {
            if given.is_project() {
                notes.warn(given.ignored("your own haft.yaml has a server of this name"));
            }
            continue;
        }
        let Some(given) = notes.skip_unset(entry, "MCP server") else {
            continue;
        };
        if name.trim().is_empty() {
            return Err(given.wrong("the server's name is empty"));
        }
        let mut server = match server(name, &given, &given.value) {
            Ok(Some(server)) => server,
            Ok(None) => continue,
            // Other programs write it, so a mistake in it must not stop haft.
            Err(failure) if given.is_shared() => {
                notes.warn(format!("skipped MCP server {name}: {failure}"));
                continue;
            }
            Err(failure) => return Err(failure),
        };
        note_unknown_keys(&given, &server, notes);
        match env_file(&given, &given.value) {
            Ok(file) => server.add_variables(file),
            Err(why) => {
                notes.warn(format!(
                    "{origin}: skipped MCP server {name}: envFile: {why}"
                ));
                continue;
            }
        }
        if server.connection.is_haft_again(&sources.environment) {
            // The project offers it to other agents.
            if given.is_project() {
                continue;
            }
            notes.warn(format!(
                "{origin}: skipped MCP server {name}: it is haft itself with these settings and would start itself endlessly; add `--config FILE` to its args"
            ));
            continue;
        }
        from.push(origin);
        servers.push(server);
    }
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    notes.show_names("tools.mcp", names, &from);
    Ok(servers)
}

/// Reads the file with a server's variables.
fn env_file<T>(given: &Given<'_, T>, entry: &ServerEntry) -> Result<Option<EnvFile>, String> {
    let Some(named) = &entry.env_file else {
        return Ok(None);
    };
    let path = located_folder(named, given.folder(), given.environment());
    let within = given.is_project().then(|| given.folder());
    let variables = env_file::read(&path, within)?;
    Ok(Some(EnvFile { path, variables }))
}

/// Warns about keys that have no effect.
fn note_unknown_keys<T>(given: &Given<'_, T>, server: &Configured, notes: &mut Notes) {
    let known: Vec<String> = schemars::schema_for!(ServerEntry)
        .get("properties")
        .and_then(Value::as_object)
        .map(|properties| properties.keys().cloned().collect())
        .unwrap_or_default();
    let written = server.written.as_object().into_iter().flatten();
    for (key, _) in written {
        if !known.contains(key) && !IGNORED.contains(&key.as_str()) {
            let hint = haft::ops::text::spelling::hint(key, &known);
            let key = haft::ops::text::brief(key, 60);
            notes.warn(format!(
                "{}: unknown key \"{key}\" in {} is ignored{hint}",
                server.from,
                given.path()
            ));
        }
    }
}

/// Returns a server; `None` if it is disabled.
pub(super) fn server<T>(
    name: &str,
    given: &Given<'_, T>,
    entry: &ServerEntry,
) -> Result<Option<Configured>, Failure> {
    let connection = connection(entry, given.folder(), given.environment()).map_err(|what| {
        given
            .wrong(&what)
            .hint("write { command: …, args: […], env: {…} } or { url: … }")
    })?;
    let limit = |key: &str, limit: Option<Seconds>| match limit.map(|limit| limit.0) {
        Some(milliseconds) if milliseconds > MOST_SECONDS => {
            Ok(Some(Duration::from_secs_f64(milliseconds / 1_000.0)))
        }
        Some(seconds) if seconds < 0.001 => {
            Err(given.wrong(&format!("{key} must be a number of seconds, above 0")))
        }
        seconds => Ok(seconds.map(Duration::from_secs_f64)),
    };
    let words = |words: &Vec<Word>| words.iter().map(|word| word.0.clone()).collect();
    let server = Configured {
        name: name.to_owned(),
        connection,
        timeout: limit("timeout", entry.timeout)?,
        start_timeout: limit("start_timeout", entry.start_timeout)?,
        only: entry.tools.as_ref().map(words),
        env_file: None,
        owner: Owner::of(given.role()),
        folder: given.folder().to_owned(),
        written: given.written.clone(),
        from: given.from.to_string(),
    };
    let is_used = entry.enabled != Some(false) && entry.disabled != Some(true);
    Ok(Some(server).filter(|_| is_used))
}

/// Returns how to reach a server. Errors never contain values, which may be keys.
fn connection(
    entry: &ServerEntry,
    folder: &Path,
    environment: &Environment,
) -> Result<Connection, String> {
    let kind = entry.kind.as_ref().map(|kind| kind.0.as_str());
    let not = |what: &str, keys: &[(&str, bool)]| match keys.iter().find(|(_, is_given)| *is_given)
    {
        Some((key, _)) => Err(format!("{what} cannot have {key}")),
        None => Ok(()),
    };
    let url = match (&entry.url, &entry.http_url) {
        (Some(_), Some(_)) => return Err("only one of url and httpUrl is allowed".to_owned()),
        (url, http_url) => url.as_ref().or(http_url.as_ref()),
    };
    match (&entry.command, url, &entry.uri) {
        (Some(command), None, None) if matches!(kind, None | Some("stdio")) => {
            not(
                "a server with a command",
                &[
                    ("headers", entry.headers.is_some()),
                    ("oauth", entry.oauth.is_some()),
                ],
            )?;
            program(entry, command, folder, environment)
        }
        (None, Some(url), None) | (None, None, Some(url)) if kind != Some("stdio") => {
            not(
                "a server with a url",
                &[
                    ("args", entry.args.is_some()),
                    ("env", entry.env.is_some()),
                    ("envFile", entry.env_file.is_some()),
                    ("cwd", entry.cwd.is_some()),
                ],
            )?;
            let wire = match kind {
                Some("sse") => HttpTransport::Events,
                None if entry.uri.is_some() || has_sse_path(url) => HttpTransport::Either,
                _ => HttpTransport::Streamable,
            };
            address(entry, url.trim(), wire)
        }
        (None, None, None) => Err("command or url is missing".to_owned()),
        (Some(_), None, None) | (None, Some(_), None) | (None, None, Some(_)) => {
            Err("type does not match: stdio needs command, http and sse need url".to_owned())
        }
        _ => Err("only one of command, url and uri is allowed".to_owned()),
    }
}

/// Checks an entry that is to be written into a file.
pub(crate) fn check_entry(
    name: &str,
    entry: &Value,
    environment: &Environment,
) -> Result<(), Failure> {
    let failure = |what: String| Failure::usage(format!("MCP server {name}: {what}"));
    if name.trim().is_empty() {
        return Err(failure("its name is empty".to_owned()));
    }
    let entry = reader::read(&Node::of(entry), "", &Values::default())
        .map_err(|problem| failure(problem.to_string()))?;
    connection(&entry, Path::new("/"), environment).map_err(failure)?;
    Ok(())
}

impl Settings {
    /// Adds a server that the user's editor names, as the user's own, with an entry as in
    /// `tools.mcp`. A configured server of the same name is used instead.
    ///
    /// # Errors
    /// When the entry is not valid. The message contains none of its values.
    pub fn add_server(&mut self, name: &str, entry: Value) -> Result<(), Failure> {
        if self.mcp.iter().any(|server| server.name == name) {
            return Ok(());
        }
        let from = format!("MCP server {name}");
        let entry: ServerEntry = serde_json::from_value(entry)
            .map_err(|error| Failure::usage(format!("{from}: {error}")))?;
        let folder = self.paths.work_dir.clone();
        let connection = connection(&entry, &folder, &self.environment)
            .map_err(|what| Failure::usage(format!("{from}: {what}")))?;
        self.mcp.push(Configured {
            name: name.to_owned(),
            connection,
            timeout: None,
            start_timeout: None,
            only: None,
            env_file: None,
            owner: Owner::Typed,
            folder,
            // What an editor sends may contain keys.
            written: Value::Null,
            from,
        });
        Ok(())
    }
}

/// Whether an address looks like that of the older transport.
fn has_sse_path(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.trim_end_matches('/').ends_with("/sse")
}

fn program(
    entry: &ServerEntry,
    command: &TextOr<Vec<Word>>,
    folder: &Path,
    environment: &Environment,
) -> Result<Connection, String> {
    let mut words = match command {
        TextOr::Text(program) => vec![program.trim().to_owned()],
        TextOr::Full(words) => words.iter().map(|word| word.0.clone()).collect(),
    }
    .into_iter();
    let program = words.next().filter(|program| !program.is_empty());
    let own = entry.args.iter().flatten();
    let own = own.map(|word| from_home(&word.0, environment));
    let program = program.ok_or("command must be a program")?;
    let dir = entry.cwd.as_ref();
    Ok(Connection::Program {
        program: located(&program, folder, environment),
        arguments: words.chain(own).collect(),
        environment: entry.env.clone().unwrap_or_default(),
        dir: dir.map(|dir| located_folder(dir, folder, environment)),
    })
}

fn address(entry: &ServerEntry, url: &str, wire: HttpTransport) -> Result<Connection, String> {
    let secret = |(name, value): (&String, &String)| (name.clone(), Secret::new(value));
    let headers: Vec<_> = entry.headers.iter().flatten().map(secret).collect();
    Endpoint::address(url, headers.clone(), wire).map_err(|error| format!("url: {error}"))?;
    let mut identity = Identity::default();
    if let Some(oauth) = &entry.oauth {
        if oauth.client_secret.is_some() && oauth.client_id.is_none() {
            return Err("oauth.client_secret needs oauth.client_id".to_owned());
        }
        identity.client_id.clone_from(&oauth.client_id);
        identity.client_secret = oauth.client_secret.as_ref().map(Secret::new);
        identity.metadata_url.clone_from(&oauth.metadata_url);
    }
    Ok(Connection::Address {
        url: url.to_owned(),
        headers,
        wire,
        identity,
    })
}

/// Returns the server's name as a safe file name.
pub fn label(name: &str) -> String {
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
    fn is_haft_again(&self, environment: &Environment) -> bool {
        let Self::Program {
            program, arguments, ..
        } = self
        else {
            return false;
        };
        let real = |path: &Path| haft::ops::scope::real(path);
        let haft = real(&environment.own_program());
        let folders = environment.paths("PATH");
        let is_haft = match program.is_absolute() {
            true => haft.is_some() && real(program) == haft,
            false => folders
                .iter()
                .any(|folder| haft.is_some() && real(&folder.join(program)) == haft),
        };
        is_haft && !arguments.iter().any(|word| word.starts_with("--config"))
    }

    /// Returns the program, unless the server is reached by URL.
    pub fn program(&self) -> Option<&Path> {
        match self {
            Self::Program { program, .. } => Some(program),
            Self::Address { .. } => None,
        }
    }
}
