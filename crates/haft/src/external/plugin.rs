//! Plugins: programs in any language that communicate in JSON lines.
//!
//! A plugin is started once, describes its tools in a handshake, and is then called. It
//! runs in the sandbox for commands, but keeps network access. Its faults do not affect the
//! session: a call that hangs or crashes ends the process, and the next call starts another
//! one. After five crashes in a row it is not started again.

mod cached;
mod dispatcher;
mod handshake;
mod lines;
mod message;
mod pipe;
mod process;
mod progress;
mod sanitize;
mod shape;
mod tool;
mod trace;

use super::installer::Installer;
use super::recorded::ProgramChanges;
use super::source::Start;
use crate::Error;
use crate::guest::Guest;
use crate::runtime::network::ProgramConnections;
use cached::CachedHandshake;
use dispatcher::Over;
use haft_ops::exec::{ExecContext, environment};
use haft_ops::executor::Exit;
use message::{Described, Question};
use process::Process;
use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

pub(crate) use message::clean;
pub(super) use message::{Outcome, cleaned, field, image_data, taken};
pub(crate) use tool::tools;
pub(super) use tool::{closed, worded};

pub use lines::MessageForm;
pub use trace::{Trace, TraceEvent};

/// Maximum number of crashes in a row.
const CRASHES: u32 = 5;

/// Delay before the restart after a crash; it doubles with each crash.
const BACKOFF: Duration = Duration::from_millis(100);

/// Time for a plugin to confirm the cancellation of a call. After that, the next call goes
/// to a new process.
const CONFIRMED: Duration = Duration::from_millis(300);

/// Maximum size of a plugin's log, in bytes.
pub(super) const LOG: u64 = 1 << 20;

/// Checks whether a program may run now; the error is the reason why not.
pub type Check = Arc<dyn Fn() -> Result<Recheck, String> + Send + Sync>;

/// Checks that the files which a [`Check`] examined are unchanged. A program is started by
/// its name, so its file can be replaced between the check and the start. This runs after
/// the program has started and before it gets anything to work on.
pub type Recheck = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The configuration of a plugin.
#[derive(Clone)]
pub struct Plugin {
    /// Name in messages.
    pub label: String,
    /// The program: a path, or a name to look up in the `PATH` of `environment`.
    pub program: PathBuf,
    /// The program as shown in messages, if the real path must not be shown: a variable in
    /// it may hold a secret.
    pub shown: Option<String>,
    /// Arguments of the program.
    pub arguments: Vec<OsString>,
    /// The complete environment. `None` for the usual variables of the session's commands:
    /// `PATH HOME USER SHELL LANG LC_* TZ TERM TMPDIR`.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// Folder to run in; `None` for the work folder.
    pub dir: Option<PathBuf>,
    /// Protocol of the plugin.
    pub protocol: Protocol,
    /// Time limit of a call. `None` for the limit in the tool's definition, that of the
    /// session, or 120 seconds.
    pub timeout: Option<Duration>,
    /// Time limit of the handshake after each start; `None` for 10 seconds.
    pub start_timeout: Option<Duration>,
    /// Place where the two limits can be set, for messages.
    pub limits_set_in: String,
    /// The tools that may replace others of the same name.
    pub overrides: Overrides,
    /// A line to send before anything else.
    pub first_line: Option<String>,
    /// Whether it may have no tools: a Lua file may be a library for others.
    pub may_be_empty: bool,
    /// File for its log (standard error).
    pub log: Option<PathBuf>,
    /// Check before each start: the plugin must be the one that was trusted.
    pub check: Option<Check>,
    /// Origin of the plugin (user or project), which decides how it is sandboxed.
    pub installer: Installer,
    /// Cache of its handshake. With one, the plugin is only started when it is called.
    pub memory: Option<Arc<dyn Memory>>,
    /// Returns a number that changes with its files. The plugin is restarted when it
    /// changes.
    pub stamp: Option<Stamp>,
    /// Access to the session's files for a plugin that has none itself: it runs without
    /// network, with only the system's files and its own, and can request these operations
    /// instead of calling other tools.
    pub guest: Option<Guest>,
    /// Files whose text is all that the plugin consists of. The plugin is not loaded if a
    /// rule keeps one of them out of prompts.
    pub files: Vec<PathBuf>,
    /// Observer of everything that happens between the plugin and its host.
    pub trace: Trace,
}

/// The tools of a plugin that may replace others of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overrides {
    /// None of them.
    Nothing,
    /// Those with these names.
    Named(Vec<String>),
    /// All of them.
    Any,
}

/// Stores the handshake of a plugin for as long as its files are unchanged.
pub trait Memory: Send + Sync {
    /// Returns the stored handshake.
    fn load(&self) -> Option<Value>;
    /// Stores a handshake.
    fn store(&self, introduction: &Value);
}

/// Returns a number that identifies the state of some files.
pub type Stamp = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Protocol of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Detected in the handshake.
    Auto,
    /// Version 1: the plugin answers `describe`.
    Describe,
    /// Version 2: the plugin answers `describe`, as haft's own programs do.
    Second,
    /// The plugin answers `init`.
    Init,
}

impl Plugin {
    /// Creates the configuration of a plugin from its program and arguments.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, arguments: Vec<OsString>) -> Self {
        let program = program.into();
        Self {
            label: program.to_string_lossy().into_owned(),
            program,
            shown: None,
            arguments,
            environment: None,
            dir: None,
            protocol: Protocol::Auto,
            timeout: None,
            start_timeout: None,
            limits_set_in: "its `Plugin`".to_owned(),
            overrides: Overrides::Nothing,
            first_line: None,
            may_be_empty: false,
            log: None,
            check: None,
            installer: Installer::UserTrustingFolders,
            memory: None,
            stamp: None,
            guest: None,
            files: Vec::new(),
            trace: Trace::default(),
        }
    }
}

/// How to run programs that are tools or provide tools.
#[derive(Clone)]
pub struct Programs {
    /// For programs that the user chose; they keep network access.
    pub(crate) own: Arc<ExecContext>,
    /// For programs from a project; they have network access only if commands do.
    pub(crate) guests: Arc<ExecContext>,
    /// For programs without access to files.
    pub(crate) scratch_only: Arc<ExecContext>,
    pub(crate) nowhere: PathBuf,
    /// Folder to run in.
    pub(crate) dir: PathBuf,
    /// Folders, in addition to the work folder and the roots, from which the user's own
    /// programs cannot start programs.
    pub(crate) inert: Vec<PathBuf>,
    /// Exceptions among these folders, from which they may start programs.
    pub(crate) startable: Vec<PathBuf>,
    /// Records what they change.
    pub(crate) changes: Arc<ProgramChanges>,
    /// Judges their connections, if they have no network of their own.
    pub(crate) connections: Arc<ProgramConnections>,
}

impl Programs {
    /// Returns the default environment of a program.
    fn usual(&self, installer: Installer) -> Vec<(OsString, OsString)> {
        environment::for_programs(self.of(installer).environment.iter().cloned(), &[])
    }

    /// Returns a version for programs without access to files.
    fn without_files(&self) -> Self {
        Self {
            own: Arc::clone(&self.scratch_only),
            guests: Arc::clone(&self.scratch_only),
            dir: self.nowhere.clone(),
            ..self.clone()
        }
    }
}

/// A plugin in a session: its current process, if it has one, and its history of crashes.
pub(crate) struct Host {
    plugin: Plugin,
    programs: Programs,
    slot: Mutex<Slot>,
    /// Held during a call of a plugin that can only handle one call at a time.
    turn: Mutex<()>,
    /// Names of its tools in the session.
    names: std::sync::Mutex<Vec<String>>,
}

struct Slot {
    process: Option<Arc<Process>>,
    /// The question that it answered in the handshake, once known.
    question: Option<Question>,
    is_second: bool,
    crashes: u32,
    crashed: Option<Instant>,
}

impl Host {
    pub(crate) fn new(plugin: Plugin, programs: &Programs) -> Self {
        let programs = match plugin.guest {
            Some(_) => programs.without_files(),
            None => programs.clone(),
        };
        Self {
            programs,
            plugin,
            slot: Mutex::new(Slot {
                process: None,
                question: None,
                is_second: false,
                crashes: 0,
                crashed: None,
            }),
            turn: Mutex::new(()),
            names: std::sync::Mutex::default(),
        }
    }

    pub(crate) fn take_names(&self) -> Vec<String> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *names)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let names = self.names.lock();
        names.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_names(&self, names: Vec<String>) {
        *self.names.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }

    pub(crate) fn label(&self) -> &str {
        &self.plugin.label
    }

    /// Returns the files that it was read from.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.plugin.files
    }

    /// Whether its tool of this name may replace another one.
    pub(crate) fn overrides(&self, tool: &str) -> bool {
        match &self.plugin.overrides {
            Overrides::Nothing => false,
            Overrides::Named(names) => names.iter().any(|name| name == tool),
            Overrides::Any => true,
        }
    }

    /// Returns how to make its tool of this name replace another one.
    pub(crate) fn how_to_override(&self, tool: &str) -> String {
        match &self.plugin.overrides {
            Overrides::Named(_) => {
                format!("to replace it, write `name = \"{tool}\"` in the module")
            }
            Overrides::Nothing | Overrides::Any => "to replace it, set `override: true`".to_owned(),
        }
    }

    /// Returns its tools, from the cache or from a handshake.
    async fn handshake(&self) -> Result<Vec<Described>, Error> {
        let mut slot = self.slot.lock().await;
        let remembered = self.plugin.memory.as_ref().and_then(|memory| memory.load());
        if let Some(known) = remembered.and_then(|known| CachedHandshake::read(&known)) {
            slot.question = Some(known.question);
            slot.is_second = known.introduction.is_second;
            return Ok(known.introduction.tools);
        }
        let started = handshake::start(self, slot.question).await?;
        slot.question = Some(started.question);
        slot.is_second = started.introduction.is_second;
        slot.process = Some(Arc::new(started.process));
        let known = CachedHandshake {
            question: started.question,
            introduction: started.introduction,
        };
        if let Some(memory) = &self.plugin.memory {
            memory.store(&known.written());
        }
        Ok(known.introduction.tools)
    }

    /// Returns the state of its files.
    pub(crate) fn stamp(&self) -> Option<u64> {
        self.plugin.stamp.as_ref().map(|stamp| stamp())
    }

    /// Ends the process after its files have changed, and forgets earlier crashes.
    pub(crate) async fn restart(&self) {
        let mut slot = self.slot.lock().await;
        let old = slot.process.take();
        slot.crashes = 0;
        slot.crashed = None;
        slot.question = None;
        drop(slot);
        if let Some(old) = old {
            old.end().await;
        }
    }

    /// Returns a running process, which is started if necessary.
    async fn process(&self) -> Result<(Arc<Process>, bool), Error> {
        self.settle().await;
        let mut slot = self.slot.lock().await;
        if slot
            .process
            .as_ref()
            .is_some_and(|process| process.is_retired())
        {
            slot.process = None;
        }
        if let Some(process) = &slot.process
            && process.over().is_none()
        {
            return Ok((Arc::clone(process), slot.is_second));
        }
        // A process that ended after its last call counts as a crash.
        if let Some(process) = slot.process.take() {
            drop(process);
            slot.crash();
        }
        if slot.crashes >= CRASHES {
            return Err(self.failed(format!(
                "is disabled: it ended {CRASHES} times in a row; see `haft plugin log`; it is started again when its file changes"
            )));
        }
        if let Some(crashed) = slot.crashed {
            let wait = BACKOFF * 2_u32.saturating_pow(slot.crashes.saturating_sub(1));
            tokio::time::sleep_until(crashed + wait).await;
        }
        let started = match handshake::start(self, slot.question).await {
            Ok(started) => started,
            Err(error) => {
                slot.crash();
                return Err(error);
            }
        };
        slot.question = Some(started.question);
        slot.is_second = started.introduction.is_second;
        let process = Arc::new(started.process);
        slot.process = Some(Arc::clone(&process));
        Ok((process, slot.is_second))
    }

    /// Retires a process that is still busy with a cancelled call, so that the next call
    /// does not have to wait for it.
    async fn settle(&self) {
        let process = self.slot.lock().await.process.clone();
        if let Some(process) = process
            && tokio::time::timeout(CONFIRMED, process.settled())
                .await
                .is_err()
        {
            process.retire();
        }
    }

    /// Resets the crash counter after an answered call.
    async fn answered(&self) {
        let mut slot = self.slot.lock().await;
        slot.crashes = 0;
        slot.crashed = None;
    }

    /// Handles a process that ended during a call, or that must be ended.
    async fn process_failed(&self, process: &Arc<Process>, over: Over) -> Error {
        let (status, words) = process.last_words(Some(over)).await;
        let mut slot = self.slot.lock().await;
        // If several calls fail together, the crash counts once. A process that was ended
        // because of another call does not count.
        if slot.is(process) {
            slot.process = None;
            slot.crash();
        }
        drop(slot);
        let how = match (over, status) {
            (Over::Babbling, _) => {
                "wrote more than 16 MB or 10,000 lines that are not messages, and was stopped"
                    .to_owned()
            }
            (Over::Unnamed, _) => {
                "gave an answer without a call_id that could be for another call, and was ended"
                    .to_owned()
            }
            (Over::Ended, Some(Exit::Code(code))) => format!("exited (code {code})"),
            (Over::Ended, Some(Exit::Signal(signal))) => format!("exited (signal {signal})"),
            (Over::Ended | Over::Left, _) => "closed its output".to_owned(),
        };
        self.failed(format!("{how}{}", self.quoted(&words)))
    }

    /// Stops using a process, because an answer may come late. It ends when no call waits
    /// for it any more.
    async fn discard(&self, process: &Arc<Process>) {
        process.retire();
        let mut slot = self.slot.lock().await;
        if slot.is(process) {
            slot.process = None;
        }
        drop(slot);
        if process.is_idle() {
            process.end().await;
        }
    }

    /// Returns the end of the process's log, with a hint if the sandbox may be the cause.
    fn quoted(&self, words: &str) -> String {
        if words.is_empty() {
            return String::new();
        }
        let advice = self.programs.advice(self.plugin.installer, words);
        let advice = advice.map(|advice| format!("\n[{advice}]"));
        format!(
            "; the end of its stderr:\n{words}{}",
            advice.unwrap_or_default()
        )
    }

    /// Returns the name under which it is started and its changes are recorded.
    fn recorded_name(&self) -> String {
        format!("plugin {}", self.plugin.label)
    }

    fn failed(&self, what: impl std::fmt::Display) -> Error {
        Error::failed(format!("plugin {} {what}", self.plugin.label))
    }

    /// Starts the program and returns the check to repeat after the start.
    async fn start(&self) -> Result<(haft_ops::executor::Conversation, Option<Recheck>), Error> {
        let recheck = match &self.plugin.check {
            Some(check) => Some(check().map_err(Error::failed)?),
            None => None,
        };
        let start = Start {
            name: self.recorded_name(),
            program: self.plugin.program.clone(),
            shown: self.plugin.shown.clone(),
            arguments: self.plugin.arguments.clone(),
            environment: match &self.plugin.environment {
                Some(environment) => environment.clone(),
                None => self.programs.usual(self.plugin.installer),
            },
            cache: None,
            dir: self.plugin.dir.clone(),
            log: self.plugin.log.clone(),
            installer: self.plugin.installer,
        };
        Ok((self.programs.converse(start).await?, recheck))
    }
}

impl Slot {
    fn is(&self, process: &Arc<Process>) -> bool {
        let current = self.process.as_ref();
        current.is_some_and(|current| Arc::ptr_eq(current, process))
    }

    fn crash(&mut self) {
        self.crashes += 1;
        self.crashed = Some(Instant::now());
    }
}
