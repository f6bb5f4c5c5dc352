//! Exceptions: access beyond the sandbox that the user grants to the commands of a call.
//!
//! A tool that runs commands has the parameter [`PARAMETER`] if there is a user who can be
//! asked, so a model can request what the sandbox refused. The user grants it once, for the
//! session or always; the latter two add rules, and then nothing needs to be requested any
//! more: such rules apply to every command.

use super::approve::{Approve, suggested};
use super::{Call, Runtime, Session};
use crate::policy::{Connection, ConnectionJudgement, NetworkHost, PolicyInput, Suggestion};
use crate::registry::{Entry, ToolOrigin};
use crate::{Effect, Error, JudgedPart, Judgement, Resource, Subject, Verdict};
use haft_ops::exec::{ExecContext, Sandbox};
use haft_ops::executor::sandbox::Network;
use haft_ops::scope::Writing;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Parameter with which a model requests exceptions.
pub(crate) const PARAMETER: &str = "request_access";

/// Description of the parameter.
const DESCRIPTION: &str = "What this command needs that the sandbox refuses. Each item is \
`network HOST` or `network HOST:PORT`, `write FOLDER` (an absolute path) or `unsandboxed`. The \
user is asked and may refuse. Request only what a refusal has shown to be necessary.";

/// Maximum number of exceptions of one call.
const MAX_EXCEPTIONS: usize = 16;

/// Access beyond the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Exception {
    /// Connecting to a host.
    Network(NetworkHost),
    /// Writing in a folder outside the work folder.
    Write(PathBuf),
    /// Running without the sandbox.
    Unsandboxed,
}

/// Exceptions that hold for a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exceptions {
    pub(super) hosts: Vec<NetworkHost>,
    folders: Vec<PathBuf>,
    is_unsandboxed: bool,
}

impl Exceptions {
    /// Returns how the commands of the call run.
    pub(crate) fn apply(&self, session: &Session, mut usual: ExecContext) -> ExecContext {
        if self.is_unsandboxed {
            usual.sandbox = None;
            usual.filter = None;
        }
        if let Some(sandbox) = usual.sandbox.take() {
            usual.sandbox = Some(session.widened(sandbox, &self.folders));
        }
        usual
    }

    /// Whether commands run without the sandbox.
    pub(super) fn is_unsandboxed(&self) -> bool {
        self.is_unsandboxed
    }

    /// Returns the exceptions for the details of a reply.
    pub(super) fn detail(&self) -> Option<Value> {
        let hosts = self.hosts.iter().map(|host| format!("network {host}"));
        let folders = self.folders.iter();
        let folders = folders.map(|folder| format!("write {}", folder.display()));
        let whole = self.is_unsandboxed.then(|| "unsandboxed".to_owned());
        let all: Vec<String> = hosts.chain(folders).chain(whole).collect();
        (!all.is_empty()).then(|| json!(all))
    }
}

/// A sandbox with folders that the user opened.
pub(super) struct WiderSandbox {
    usual: Arc<Sandbox>,
    folders: Vec<PathBuf>,
    wider: Arc<Sandbox>,
}

impl Session {
    /// Returns a sandbox whose commands may also write these folders.
    fn widened(&self, usual: Arc<Sandbox>, folders: &[PathBuf]) -> Arc<Sandbox> {
        if folders.is_empty() {
            return usual;
        }
        let mut known = super::recording::lock(&self.wider);
        let is_same =
            |one: &&WiderSandbox| Arc::ptr_eq(&one.usual, &usual) && one.folders == folders;
        if let Some(known) = known.iter().find(is_same) {
            return Arc::clone(&known.wider);
        }
        let wider = Arc::new(usual.with_folders(folders));
        known.push(WiderSandbox {
            usual,
            folders: folders.to_vec(),
            wider: Arc::clone(&wider),
        });
        wider
    }
}

/// Returns the schema of a tool with the parameter for requests.
pub(crate) fn with_parameter(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let parameter = json!({
            "type": "array",
            "items": { "type": "string" },
            "description": DESCRIPTION,
        });
        properties.insert(PARAMETER.to_owned(), parameter);
    }
    schema
}

/// The user's part in the exceptions of a call.
#[derive(Debug, Default)]
pub(super) struct Requested {
    /// Exceptions that hold if the call runs.
    pub(super) granted: Exceptions,
    /// Decisions about the exceptions that were requested.
    pub(super) parts: Vec<JudgedPart>,
    /// Rules that would allow all of them; `None` if no rules can.
    pub(super) suggestion: Option<Suggestion>,
}

impl Requested {
    /// Whether the user has to be asked or a rule denies something.
    pub(super) fn verdict(&self) -> Verdict {
        let verdicts = self.parts.iter().map(|part| part.verdict);
        verdicts.max().unwrap_or(Verdict::Allow)
    }
}

impl Runtime {
    /// Whether a tool offers the parameter for requests. `asks` says whether the caller has a
    /// user who can be asked.
    pub(crate) fn offers_exceptions(&self, entry: &Entry, asks: bool) -> bool {
        let session = &self.session;
        let is_confined =
            |context: &ExecContext| context.sandbox.is_some() && context.remote_folder.is_none();
        entry.origin == ToolOrigin::Toolset
            && entry.tool.effect() == Effect::Execute
            && session.exec_context.as_ref().is_some_and(is_confined)
            && session.approval.approve == Approve::Ask
            && (asks || session.approval.approver.is_some())
    }

    /// Reads what a call requests, and decides about it. Also finds the exceptions that the
    /// user's rules make for every such call.
    pub(super) fn requested(
        &self,
        call: &Call,
        arguments: &Value,
        act: &PolicyInput<'_>,
    ) -> Result<Requested, Error> {
        let session = &self.session;
        let policy = session.approval.policy();
        let mut requested = Requested::default();
        if act.effect != Effect::Execute || session.exec_context.is_none() {
            return Ok(requested);
        }
        requested.granted.hosts.clone_from(&call.hosts);
        requested.granted.folders = policy.outside_folders(act);
        requested
            .granted
            .folders
            .retain(|folder| self.check_folder(folder).is_ok());
        let mut rules: Option<Option<Suggestion>> = None;
        let exceptions = self.parse(arguments)?;
        if !exceptions.is_empty() {
            check_shown(act.resources)?;
        }
        for exception in exceptions {
            let (judged, suggestion) = self.judge_exception(&exception, act);
            let granted = &mut requested.granted;
            match exception {
                Exception::Network(host) if !granted.hosts.contains(&host) => {
                    granted.hosts.push(host);
                }
                Exception::Write(folder) if !granted.folders.contains(&folder) => {
                    granted.folders.push(folder);
                }
                Exception::Unsandboxed => granted.is_unsandboxed = true,
                _ => {}
            }
            if judged.verdict != Verdict::Allow {
                rules = Some(match rules {
                    None => suggestion,
                    Some(Some(known)) => suggestion.map(|more| known.and(more)),
                    Some(None) => None,
                });
            }
            requested.parts.extend(judged.parts);
        }
        requested.suggestion = rules.flatten();
        Ok(requested)
    }

    fn judge_exception(
        &self,
        exception: &Exception,
        act: &PolicyInput<'_>,
    ) -> (Judgement, Option<Suggestion>) {
        let policy = self.session.approval.policy();
        let place = suggested();
        match exception {
            Exception::Network(host) => {
                let port = host.port().unwrap_or(443);
                let to = Connection {
                    host: host.name(),
                    port,
                    line: None,
                };
                let judged = policy.judge_connection(&to);
                let suggestion = policy.suggest_host(&host.to_string(), &place);
                (asking(judged, &host.to_string()), suggestion)
            }
            Exception::Write(folder) => {
                let folder = folder.to_string_lossy();
                let judged = policy.judge_outside_write(act, &folder);
                let suggestion = policy.suggest_outside_write(act, &folder, &place);
                (judged, suggestion)
            }
            // What the line does may be another thing next time.
            Exception::Unsandboxed => (policy.judge_unsandboxed(act), None),
        }
    }

    /// Reads the parameter.
    fn parse(&self, arguments: &Value) -> Result<Vec<Exception>, Error> {
        let items = arguments.get(PARAMETER).and_then(Value::as_array);
        let items = items.map(Vec::as_slice).unwrap_or_default();
        let wrong = |why: String| Error::invalid(why);
        if items.len() > MAX_EXCEPTIONS {
            let why = format!("{PARAMETER}: at most {MAX_EXCEPTIONS} items are accepted");
            return Err(wrong(why));
        }
        let items = items.iter().filter_map(Value::as_str);
        let parsed = items.map(|item| self.parse_one(item.trim()));
        let parsed: Result<_, String> = parsed.collect();
        parsed.map_err(|why| wrong(format!("{PARAMETER}: {why}")))
    }

    fn parse_one(&self, item: &str) -> Result<Exception, String> {
        let (kind, what) = item
            .split_once(|c: char| c.is_whitespace() || c == ':')
            .unwrap_or((item, ""));
        let what = what.trim();
        match (kind, what) {
            ("unsandboxed", "") => Ok(Exception::Unsandboxed),
            ("network", host) if !host.is_empty() => {
                self.check_hosts_can_open()?;
                let host = NetworkHost::parse(host)?;
                match host.loopback_port() {
                    Some(port) => Err(format!(
                        "the ports of this machine are opened for whole sessions, with --network localhost:{port}"
                    )),
                    None => Ok(Exception::Network(host)),
                }
            }
            ("write", path) if !path.is_empty() => self.outside_folder(path).map(Exception::Write),
            _ => Err(format!(
                "\"{}\" is not valid: write `network HOST`, `network HOST:PORT`, `write FOLDER` or `unsandboxed`",
                haft_ops::text::brief(item, 100)
            )),
        }
    }

    /// Checks that hosts can be opened one by one.
    fn check_hosts_can_open(&self) -> Result<(), String> {
        let exec_context = self.session.exec_context.as_ref();
        let can_open = exec_context.is_some_and(|context| {
            let sandbox = context.sandbox.as_ref();
            sandbox.is_some_and(|sandbox| sandbox.has_sockets())
                && (context.network.gateway().is_some() || self.reaches_everything(context))
        });
        match can_open {
            true => Ok(()),
            false => Err(
                "hosts cannot be opened one by one on this machine; request `unsandboxed`"
                    .to_owned(),
            ),
        }
    }

    fn reaches_everything(&self, context: &ExecContext) -> bool {
        let sandbox = context.sandbox.as_ref();
        sandbox.is_some_and(|sandbox| sandbox.request().network == Network::On)
    }

    /// Returns the real path of a folder that a call requests to write.
    fn outside_folder(&self, given: &str) -> Result<PathBuf, String> {
        let config = &self.session.shared.origin.setup.scope_config;
        if config.rules.writing == Writing::Nothing {
            return Err(
                "in the sandbox mode read-only no folder can be written; request `unsandboxed`"
                    .to_owned(),
            );
        }
        let path = match (given.strip_prefix("~/"), config.home.as_ref()) {
            (Some(below), Some(home)) => home.join(below),
            _ => PathBuf::from(given),
        };
        let shown = haft_ops::text::brief(given, 200);
        if !path.is_absolute() {
            return Err(format!("\"{shown}\" must be an absolute path"));
        }
        let real = haft_ops::scope::real(&path).filter(|real| haft_ops::scope::is_folder(real));
        let real = real.ok_or_else(|| {
            format!("\"{shown}\" is not an existing folder; name the folder that should be written")
        })?;
        let is_home = |home: &PathBuf| home.starts_with(&real);
        if config.home.as_ref().is_some_and(is_home) {
            return Err(format!(
                "\"{shown}\" contains too much; name a folder inside it, or request `unsandboxed`"
            ));
        }
        self.check_folder(&real)
            .map_err(|why| format!("\"{shown}\" {why}"))?;
        Ok(real)
    }

    /// Checks that commands could write a folder if the user allowed it.
    fn check_folder(&self, real: &Path) -> Result<(), &'static str> {
        let session = &self.session;
        let config = &session.shared.origin.setup.scope_config;
        let mut inside = std::iter::once(&config.work_dir).chain(&config.roots);
        if inside.any(|root| real.starts_with(root)) {
            return Err("can be written already, except what is protected");
        }
        let is_system = SYSTEM.iter().any(|folder| real.starts_with(folder));
        if is_system || real.parent().is_none() {
            return Err("belongs to the system; request `unsandboxed`");
        }
        let sandbox = session
            .exec_context
            .as_ref()
            .and_then(|context| context.sandbox.clone());
        let Some(sandbox) = sandbox else {
            return Ok(());
        };
        let request = sandbox.request();
        let mut closed = request.own.clone();
        closed.extend(haft_ops::executor::sandbox::secrets(&request.homes));
        match closed.iter().any(|closed| real.starts_with(closed)) {
            false => Ok(()),
            true => Err("is a secret place or one of haft's own folders, which stay closed"),
        }
    }
}

/// Folders of the system. Making one writable would not help, or break the sandbox.
const SYSTEM: [&str; 11] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr",
];

/// Maximum size of a command line that a question shows in full, in characters and lines.
const MAX_SHOWN: (usize, usize) = (2_000, 40);

/// Checks that the user can see every command that would get access.
fn check_shown(resources: &[Resource]) -> Result<(), Error> {
    let is_long = |resource: &Resource| {
        let text = match resource {
            Resource::Command(line) => line.clone(),
            Resource::Program(words) => words.join(" "),
            _ => return false,
        };
        text.chars().count() > MAX_SHOWN.0 || text.lines().count() > MAX_SHOWN.1
    };
    match resources.iter().any(is_long) {
        true => Err(Error::invalid(format!(
            "{PARAMETER}: the command is too long to be shown to the user; request access for one of at most {} characters and {} lines",
            MAX_SHOWN.0, MAX_SHOWN.1
        ))),
        false => Ok(()),
    }
}

/// Turns the decision about a connection into one about opening its host: unless a rule
/// denies it, the user can allow what is closed.
fn asking(judged: ConnectionJudgement, host: &str) -> Judgement {
    let is_denied = judged.is_denied_by_rule();
    let mut judgement = judged.as_judgement();
    if judgement.verdict == Verdict::Deny && !is_denied {
        judgement.verdict = Verdict::Ask;
    }
    for part in &mut judgement.parts {
        part.verdict = judgement.verdict;
        part.subject = Subject::Host(host.to_owned());
    }
    judgement
}
