//! MCP servers: what there is, what of it may be reached, and what is kept of each.

use super::command::{Line, Written};
use super::{
    beside, folders, is_file, linked, named_by, pinned, program_files, sorted, where_it_is,
};
use crate::config::Settings;
use crate::config::files::{Execution, has_a_tree};
use crate::config::mcp::{Configured, How, label};
use crate::config::plugins::Whose;
use crate::env;
use crate::trust::{Item, Pin, Trust};
use haft::{Check, Standing};
use haft_mcp::client::{Naming, Pins, Reach, Remote, Seen, Tokens};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The tools that code is run by, in the toolset of absolute paths.
const EXECUTION: [&str; 3] = ["execute_bash", "execute_python", "install_packages"];

/// A server, and whether it may be reached.
pub(crate) struct Server {
    pub(crate) remote: Remote,
    pub(crate) configured: Configured,
    /// What has to be looked at first, where nobody has said yes to it.
    pub(crate) waits: Option<Item>,
    /// Files of the person's own servers that lie where programs may not look otherwise.
    pub(super) own_files: Vec<PathBuf>,
    /// What links of the config folder lead to.
    pub(super) protect: Vec<PathBuf>,
    /// What is probably not meant so.
    pub(super) problem: Option<String>,
}

/// All of them, in the order of the files.
pub(crate) fn all(settings: &Settings) -> Vec<Server> {
    let state = settings.folders.state.as_deref();
    let trust = Trust::load(state, &settings.started, settings.trust);
    let mut servers = Vec::new();
    for configured in configured(settings) {
        let line = line(configured, settings);
        let item = item(configured, line.as_ref());
        let own_files = match (needs_trust(configured, line.as_ref()), &line) {
            (false, Some(_)) => beside(item.pin.files.clone(), settings),
            _ => Vec::new(),
        };
        let protect = match configured.whose {
            Whose::Person => linked(beside(item.pin.files.clone(), settings), settings),
            _ => Vec::new(),
        };
        let item = needs_trust(configured, line.as_ref()).then_some(item);
        let check = item.clone().map(|item| pinned(item, settings));
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

/// The command line of a server, as it is run, where it is a program.
fn line(server: &Configured, settings: &Settings) -> Option<Line> {
    let How::Program {
        program,
        arguments,
        environment,
        dir,
    } = &server.how
    else {
        return None;
    };
    let written = Written {
        program,
        arguments,
        environment,
        dir: dir.as_deref(),
        base: &server.folder,
        whose: server.whose,
    };
    Some(written.line(folders(settings)))
}

/// What the project says, and what would run something of the project.
fn needs_trust(server: &Configured, line: Option<&Line>) -> bool {
    server.is_project() || line.is_some_and(|line| !line.reasons.is_empty())
}

/// The names of those that the person chose and that are programs.
pub(super) fn own_names(settings: &Settings) -> Vec<String> {
    configured(settings)
        .filter_map(|server| {
            let line = line(server, settings)?;
            let is_own = !needs_trust(server, Some(&line)) && !line.is_vouched;
            is_own.then(|| format!("{} (MCP server)", server.name))
        })
        .collect()
}

/// Those of the files, and the one that runs code.
fn configured(settings: &Settings) -> impl Iterator<Item = &Configured> {
    let execution = match &settings.files.execution {
        Execution::Server(server) if has_a_tree(&settings.toolset) => Some(&**server),
        _ => None,
    };
    settings.mcp.iter().chain(execution)
}

/// Those of a project, to be looked at.
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

/// What a server of a project is, for who has to say yes to it.
fn item(server: &Configured, line: Option<&Line>) -> Item {
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
        remarks.push(format!("sees of the environment: {}", env.join(", ")));
    }
    let headers = names(&written["headers"]);
    if !headers.is_empty() {
        remarks.push(format!("is sent the headers: {}", headers.join(", ")));
    }
    if let Some(client) = written["oauth"]["client_id"].as_str() {
        remarks.push(format!("signs in as the client {client}"));
    }
    if let How::Program { dir, .. } = &server.how {
        remarks.extend(super::runs_in(dir.as_deref()));
    }
    remarks.extend(line.and_then(|line| named_by(server.is_project(), &server.from, line)));
    let (shown, files, meant) = match &server.how {
        How::Program {
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
            let folders: Vec<&Path> = folders.into_iter().flatten().collect();
            let values = environment.values.iter().map(|(_, value)| value.as_str());
            let placed = line.map_or(arguments, |line| &line.arguments);
            let files = program_files(program, placed, values, &folders);
            if files.is_empty() {
                remarks.push("none of its files is known: they may change unnoticed".to_owned());
            }
            let shown = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default();
            let environment = environment.sorted();
            let program = where_it_is(program);
            let dir = dir.as_ref().map(|dir| where_it_is(dir));
            let meant = format!("{program:?}\n{arguments:?}\n{environment:?}\n{dir:?}");
            (shown, files, meant)
        }
        How::Address { url, .. } => {
            let key = ["url", "uri"]
                .into_iter()
                .find(|key| written[*key] != Value::Null);
            let shown = key.map(|key| as_text(&written[key])).unwrap_or_default();
            remarks.push("haft itself connects there, whatever commands may do".to_owned());
            (shown, Vec::new(), url.clone())
        }
    };
    Item {
        kind: "MCP server",
        name: server.name.clone(),
        shown,
        pin: Pin {
            written: format!("{}\n{meant}", sorted(written)),
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
    line: Option<Line>,
    check: Option<Check>,
    settings: &Settings,
) -> Option<Remote> {
    let state = settings.folders.state.as_deref();
    let standing = match needs_trust(server, line.as_ref()) {
        true => Standing::Guest,
        false => super::standing(line.as_ref(), settings),
    };
    let reach = match &server.how {
        How::Program { environment, .. } => {
            let line = super::started(line?, settings);
            Reach::Program {
                program: line.program,
                shown: server.written_program(None),
                arguments: line.arguments.into_iter().map(OsString::from).collect(),
                environment: super::environment(environment, settings),
                dir: Some(line.dir).filter(|dir| *dir != settings.work_dir),
                log: state.map(|state| log(state, &server.name)),
            }
        }
        // It was checked when it was read.
        How::Address {
            url, headers, wire, ..
        } => Reach::address(url, headers.clone(), *wire).ok()?,
    };
    let mut remote = Remote::new(server.name.clone(), reach);
    if let How::Address { identity, .. } = &server.how {
        remote.identity = identity.clone();
    }
    if let Some(timeout) = patience(server.timeout, settings.timeout) {
        remote.timeout = timeout;
    }
    remote.only = server.only.clone();
    if is_execution(server, settings) {
        remote.naming = Naming::Bare;
        let offered = EXECUTION.map(str::to_owned).to_vec();
        remote.only = Some(server.only.clone().unwrap_or(offered));
    }
    remote.check = check;
    remote.standing = standing;
    if let Some(state) = state {
        let which = identity(server, standing.is_guest(), settings);
        let named = |kind: &str| {
            let file = format!("{}-{which}.json", label(&server.name));
            Kept(state.join(kind).join(file))
        };
        let cache = format!("{}-{which}", label(&server.name));
        remote.cache = Some(state.join("mcp/caches").join(cache));
        remote.memory = Some(Arc::new(named("mcp/known")));
        remote.pins = Some(Arc::new(named("mcp/seen")));
        remote.tokens = Some(Arc::new(named("mcp-auth")));
    }
    Some(remote)
}

/// Where what a server says to its log is kept.
pub(crate) fn log(state: &Path, name: &str) -> PathBuf {
    state
        .join("plugins")
        .join(format!("mcp-{}.log", label(name)))
}

/// What tells one server from another: with another command or address it is another
/// one, of which nothing is known yet. So is one that runs code of another project.
fn identity(server: &Configured, is_guest: bool, settings: &Settings) -> String {
    let folder = is_guest.then(|| settings.started.clone());
    let meant = match &server.how {
        How::Program { program, dir, .. } => format!("{program:?} {dir:?}"),
        How::Address { url, .. } => url.clone(),
    };
    // The tools that are taken of it make it no other one.
    let written = json!({
        "args": server.written["args"], "command": server.written["command"],
        "env": sorted(&server.written["env"]),
    });
    let mut hash = Sha256::new();
    for part in [&server.name, &meant, &written.to_string()] {
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

/// A small file of haft's own that nobody else may read.
pub(super) struct Kept(pub(super) PathBuf);

#[expect(
    clippy::disallowed_methods,
    reason = "haft's own file, outside every scope"
)]
impl Kept {
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

impl haft::Memory for Kept {
    fn load(&self) -> Option<Value> {
        self.read()
    }

    fn store(&self, value: &Value) {
        // What is not remembered is asked again.
        let _ = self.write(value);
    }
}

impl Pins for Kept {
    fn load(&self) -> Option<BTreeMap<String, Seen>> {
        serde_json::from_value(self.read()?).ok()
    }

    fn store(&self, seen: &BTreeMap<String, Seen>) {
        let kept = serde_json::to_value(seen).map(|value| self.write(&value));
        if !matches!(kept, Ok(Ok(()))) {
            tracing::warn!(
                "what was seen of an MCP server could not be kept, so a change of it will not be noticed"
            );
        }
    }
}

impl Tokens for Kept {
    fn load(&self) -> Option<Value> {
        self.read()
    }

    fn store(&self, tokens: &Value) -> Result<(), String> {
        self.write(tokens)
            .map_err(|error| format!("{} cannot be written: {error}", self.0.display()))
    }

    fn clear(&self) {
        self.remove();
    }
}

/// Whether a program is there, as far as that can be said without running it.
pub(crate) fn is_there(program: &Path) -> bool {
    if program.is_absolute() {
        return is_file(program);
    }
    env::paths("PATH")
        .iter()
        .any(|folder| is_file(&folder.join(program)))
}

/// How long a call may go without a sign of life: as the server's entry says, otherwise as
/// long as the session allows for a call (0 is no limit), otherwise the usual time.
fn patience(entry: Option<Duration>, session: Duration) -> Option<Duration> {
    entry.or_else(|| Some(session).filter(|session| !session.is_zero()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_the_session_is_that_of_a_server_without_one() {
        let seconds = Duration::from_secs;
        assert_eq!(patience(None, seconds(300)), Some(seconds(300)));
        assert_eq!(patience(None, seconds(5)), Some(seconds(5)));
        assert_eq!(patience(Some(seconds(600)), seconds(0)), Some(seconds(600)));
        assert_eq!(patience(Some(seconds(2)), seconds(300)), Some(seconds(2)));
        assert_eq!(patience(None, seconds(0)), None);
    }
}
