//! MCP servers: which ones exist, which may be used, and what is stored about each.

use super::command::{CommandLine, WrittenCommand};
use super::program_files::ProgramWords;
use super::{
    folders, is_file, linked_files, named_by, real_path, sorted, trust_check, with_folders,
};
use crate::Settings;
use crate::environment::Environment;
use crate::files::{Execution, has_virtual_paths};
use crate::mcp::{Configured, Connection, label};
use crate::plugins::Owner;
use crate::trust::{Item, Pin, Trust};
use haft::{Check, Installer};
use haft_mcp::client::{Endpoint, Naming, Pins, Remote, SeenTool, Tokens};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Tools that run code in toolsets with virtual paths.
const EXECUTION: [&str; 3] = ["execute_bash", "execute_python", "install_packages"];

/// A server, and whether it may be used.
pub struct Server {
    /// The server as a client connects to it.
    pub remote: Remote,
    /// The server as it is configured.
    pub configured: Configured,
    /// The item that still needs trust, if any.
    pub waits: Option<Item>,
    /// Files of the user's own servers in places that programs cannot read otherwise.
    pub(super) own_files: Vec<PathBuf>,
    /// Targets of links in the config folder.
    pub(super) protect: Vec<PathBuf>,
    /// Warning about a probable mistake.
    pub(super) problem: Option<String>,
}

/// Returns all servers in the order of the configuration.
pub fn all(settings: &Settings) -> Vec<Server> {
    let state = settings.folders.state.as_deref();
    let trust = Trust::load(state, &settings.paths.started, settings.trust);
    let mut servers = Vec::new();
    for configured in configured(settings) {
        let line = line(configured, settings);
        let item = item(configured, line.as_ref());
        let own_files = match (needs_trust(configured, line.as_ref()), &line) {
            (false, Some(_)) => with_folders(item.pin.files.clone(), settings),
            _ => Vec::new(),
        };
        let protect = match configured.owner {
            Owner::User => linked_files(with_folders(item.pin.files.clone(), settings), settings),
            _ => Vec::new(),
        };
        let item = needs_trust(configured, line.as_ref()).then_some(item);
        let check = item.clone().map(|item| trust_check(item, settings));
        let waits = item.filter(|item| !trust.allows(item));
        let problem = line.as_ref().and_then(|line| line.problem.clone());
        if let Some(remote) = remote(configured, line, check, settings) {
            servers.push(Server {
                remote,
                configured: configured.clone(),
                waits,
                own_files,
                protect,
                problem: problem.map(|problem| format!("{}: {problem}", configured.from)),
            });
        }
    }
    servers
}

/// Returns the server's command line as it is run, if the server is a program.
fn line(server: &Configured, settings: &Settings) -> Option<CommandLine> {
    let Connection::Program {
        program,
        arguments,
        environment,
        dir,
    } = &server.connection
    else {
        return None;
    };
    let written = WrittenCommand {
        program,
        arguments,
        environment,
        dir: dir.as_deref(),
        base: &server.folder,
        owner: server.owner,
        process: &settings.environment,
    };
    Some(written.line(folders(settings)))
}

/// Whether a server needs trust: it is configured by the project, or runs something in
/// it.
fn needs_trust(server: &Configured, line: Option<&CommandLine>) -> bool {
    server.is_project() || line.is_some_and(|line| !line.reasons.is_empty())
}

/// Returns the names of the user's servers that are programs.
pub(super) fn own_names(settings: &Settings) -> Vec<String> {
    configured(settings)
        .filter_map(|server| {
            let line = line(server, settings)?;
            let is_own = !needs_trust(server, Some(&line)) && !line.is_vouched;
            is_own.then(|| format!("{} (MCP server)", server.name))
        })
        .collect()
}

/// Returns the configured servers, including the one that runs code.
fn configured(settings: &Settings) -> impl Iterator<Item = &Configured> {
    let execution = match &settings.files.execution {
        Execution::Server(server) if has_virtual_paths(&settings.toolset) => Some(&**server),
        _ => None,
    };
    settings.mcp.iter().chain(execution)
}

/// Returns the items to trust.
pub(super) fn of_project(settings: &Settings) -> Vec<Item> {
    configured(settings)
        .filter_map(|server| {
            let line = line(server, settings);
            needs_trust(server, line.as_ref()).then(|| item(server, line.as_ref()))
        })
        .collect()
}

fn is_execution(server: &Configured, settings: &Settings) -> bool {
    match &settings.files.execution {
        Execution::Server(execution) => std::ptr::eq(&**execution, server),
        _ => false,
    }
}

/// Returns the item to trust for a server.
fn item(server: &Configured, line: Option<&CommandLine>) -> Item {
    let written = &server.written;
    let mut remarks = Vec::new();
    let names = |value: &Value| -> Vec<String> {
        match value {
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| match value {
                    Value::String(text) => format!("{name}={text}"),
                    other => format!("{name}={other}"),
                })
                .collect(),
            Value::Array(names) => names
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            _ => Vec::new(),
        }
    };
    let env = names(&written["env"]);
    if !env.is_empty() {
        remarks.push(format!("gets environment variables: {}", env.join(", ")));
    }
    if let Some(file) = &server.env_file {
        remarks.push(format!("gets the variables in {}", file.path.display()));
    }
    let headers = names(&written["headers"]);
    if !headers.is_empty() {
        remarks.push(format!("receives headers: {}", headers.join(", ")));
    }
    if let Some(client) = written["oauth"]["client_id"].as_str() {
        remarks.push(format!("haft signs in as client {client}"));
    }
    if let Connection::Program { dir, .. } = &server.connection {
        remarks.extend(super::runs_in(dir.as_deref()));
    }
    remarks.extend(line.and_then(|line| named_by(server.is_project(), &server.from, line)));
    let (shown, files, target) = match &server.connection {
        Connection::Program {
            program,
            arguments,
            environment,
            dir,
        } => {
            let own: Vec<String> = match &written["args"] {
                Value::Array(items) => items.iter().map(as_text).collect(),
                _ => Vec::new(),
            };
            let words = [server.written_program(None).into_iter().collect(), own].concat();
            let folders = [line.map(|line| line.dir.as_path()), Some(&server.folder)];
            let known = ProgramWords {
                program,
                located: line.map_or(program, |line| &line.program),
                arguments: line.map_or(arguments, |line| &line.arguments),
                variables: super::pairs(environment),
                folders: folders.into_iter().flatten().collect(),
            }
            .files();
            remarks.extend(known.remark());
            let shown = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default();
            let environment = environment.sorted();
            let program = real_path(program);
            let dir = dir.as_ref().map(|dir| real_path(dir));
            let target = format!("{program:?}\n{arguments:?}\n{environment:?}\n{dir:?}");
            (shown, known.files, target)
        }
        Connection::Address { url, .. } => {
            let key = ["url", "uri", "httpUrl"]
                .into_iter()
                .find(|key| written[*key] != Value::Null);
            let shown = key.map(|key| as_text(&written[key])).unwrap_or_default();
            remarks.push("haft connects to it even if commands have no network access".to_owned());
            (shown, Vec::new(), url.clone())
        }
    };
    let files = files
        .into_iter()
        .chain(server.env_file.as_ref().map(|file| file.path.clone()))
        .collect();
    Item {
        kind: "MCP server",
        name: server.name.clone(),
        shown,
        pin: Pin {
            written: format!("{}\n{target}", sorted(written)),
            files,
        },
        remarks,
    }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn remote(
    server: &Configured,
    line: Option<CommandLine>,
    check: Option<Check>,
    settings: &Settings,
) -> Option<Remote> {
    let state = settings.folders.state.as_deref();
    let installer = match needs_trust(server, line.as_ref()) {
        true => Installer::Project,
        false => super::installer(line.as_ref(), settings),
    };
    let endpoint = match &server.connection {
        Connection::Program { environment, .. } => {
            let line = super::with_reachable_paths(line?, settings);
            Endpoint::Program {
                program: line.program,
                shown: server.written_program(None),
                arguments: line.arguments.into_iter().map(OsString::from).collect(),
                environment: super::environment(environment, settings),
                dir: Some(line.dir).filter(|dir| *dir != settings.paths.work_dir),
                log: state.map(|state| log(state, &server.name)),
            }
        }
        // Already checked when it was read.
        Connection::Address {
            url, headers, wire, ..
        } => Endpoint::address(url, headers.clone(), *wire).ok()?,
    };
    let mut remote = Remote::new(server.name.clone(), endpoint);
    if let Connection::Address { identity, .. } = &server.connection {
        remote.identity = identity.clone();
    }
    if let Some(timeout) = call_timeout(server.timeout, settings.timeout) {
        remote.timeout = timeout;
    }
    if let Some(timeout) = server.start_timeout {
        remote.start_timeout = timeout;
    }
    remote.only = server.only.clone();
    if is_execution(server, settings) {
        remote.naming = Naming::Bare;
        let offered = EXECUTION.map(str::to_owned).to_vec();
        remote.only = Some(server.only.clone().unwrap_or(offered));
    }
    remote.check = check;
    remote.installer = installer;
    if let Some(state) = state {
        let which = identity(server, installer.is_project(), settings);
        let named = |kind: &str| {
            let file = format!("{}-{which}.json", label(&server.name));
            PrivateFile(state.join(kind).join(file))
        };
        // Projects have one of their own, so that their servers cannot change code that the
        // user's servers run.
        let owner = if installer.is_project() {
            "projects"
        } else {
            "user"
        };
        remote.cache = Some(state.join("mcp/packages").join(owner));
        remote.memory = Some(Arc::new(named("mcp/known")));
        remote.pins = Some(Arc::new(named("mcp/seen")));
        remote.tokens = Some(Arc::new(named("mcp-auth")));
    }
    Some(remote)
}

/// Returns the path of a server's log.
pub(crate) fn log(state: &Path, name: &str) -> PathBuf {
    state
        .join("plugins")
        .join(format!("mcp-{}.log", label(name)))
}

/// Returns an id of a server. With another command or URL it is a different server, about
/// which nothing is stored yet. So is one that runs code of another project.
fn identity(server: &Configured, is_guest: bool, settings: &Settings) -> String {
    let folder = is_guest.then(|| settings.paths.started.clone());
    let target = match &server.connection {
        Connection::Program { program, dir, .. } => format!("{program:?} {dir:?}"),
        Connection::Address { url, .. } => url.clone(),
    };
    // The selection of tools does not matter.
    let written = json!({
        "args": server.written["args"], "command": server.written["command"],
        "env": sorted(&server.written["env"]),
    });
    let mut hash = Sha256::new();
    for part in [&server.name, &target, &written.to_string()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    if let Some(folder) = folder {
        hash.update(folder.as_os_str().as_encoded_bytes());
    }
    let digest = hash.finalize();
    digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A small private file of haft's.
pub(super) struct PrivateFile(pub(super) PathBuf);

#[expect(
    clippy::disallowed_methods,
    reason = "haft's own file, outside every scope"
)]
impl PrivateFile {
    fn read(&self) -> Option<Value> {
        serde_json::from_slice(&std::fs::read(&self.0).ok()?).ok()
    }

    fn write(&self, value: &Value) -> std::io::Result<()> {
        if let Some(folder) = self.0.parent() {
            haft::ops::private::folder(folder)?;
        }
        let new = self.0.with_extension(format!("new-{}", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let mut file = haft::ops::private::file(&options, &new)?;
        file.write_all(value.to_string().as_bytes())?;
        std::fs::rename(&new, &self.0)
    }

    fn remove(&self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl haft::Memory for PrivateFile {
    fn load(&self) -> Option<Value> {
        self.read()
    }

    fn store(&self, value: &Value) {
        // If this fails, the server is asked again.
        let _ = self.write(value);
    }
}

impl Pins for PrivateFile {
    fn load(&self) -> Option<BTreeMap<String, SeenTool>> {
        serde_json::from_value(self.read()?).ok()
    }

    fn store(&self, seen: &BTreeMap<String, SeenTool>) {
        let saved = serde_json::to_value(seen).map(|value| self.write(&value));
        if !matches!(saved, Ok(Ok(()))) {
            tracing::warn!("cannot store the tools of an MCP server, so changes will go unnoticed");
        }
    }
}

impl Tokens for PrivateFile {
    fn load(&self) -> Option<Value> {
        self.read()
    }

    fn store(&self, tokens: &Value) -> Result<(), String> {
        self.write(tokens)
            .map_err(|error| format!("cannot write {}: {error}", self.0.display()))
    }

    fn clear(&self) {
        self.remove();
    }
}

/// Whether a program exists, checked without running it.
pub fn program_exists(program: &Path, environment: &Environment) -> bool {
    if program.is_absolute() {
        return is_file(program);
    }
    environment
        .paths("PATH")
        .iter()
        .any(|folder| is_file(&folder.join(program)))
}

/// Returns how long a call may go without progress: the server's own setting, or else the
/// session's limit (0 means none), or else the default.
fn call_timeout(entry: Option<Duration>, session: Duration) -> Option<Duration> {
    entry.or_else(|| Some(session).filter(|session| !session.is_zero()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_limit_uses_the_sessions() {
        let seconds = Duration::from_secs;
        assert_eq!(call_timeout(None, seconds(300)), Some(seconds(300)));
        assert_eq!(call_timeout(None, seconds(5)), Some(seconds(5)));
        assert_eq!(
            call_timeout(Some(seconds(600)), seconds(0)),
            Some(seconds(600))
        );
        assert_eq!(
            call_timeout(Some(seconds(2)), seconds(300)),
            Some(seconds(2))
        );
        assert_eq!(call_timeout(None, seconds(0)), None);
    }
}
