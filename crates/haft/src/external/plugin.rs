//! Plugins: programs in any language that speak JSON lines.
//!
//! A plugin is started once, says which tools it has, and is then called. It is
//! confined as commands are, but keeps the network. What it does wrong is its own
//! failure: a call that hangs or crashes ends its process, the next one starts
//! another, and after five in a row nothing more is started.

mod desk;
mod introduce;
mod lines;
mod meanwhile;
mod mend;
mod message;
mod pipe;
mod process;
mod remember;
mod tool;
mod whose;

use super::source::Start;
use super::standing::Standing;
use crate::Error;
use crate::guest::Guest;
use desk::Over;
use haft_ops::exec::{Surroundings, environment};
use haft_ops::executor::Exit;
use message::{Described, Question};
use process::Process;
use remember::Remembered;
use serde_json::Value;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

pub(crate) use message::clean;
pub(super) use message::{cleaned, field, taken};
pub(crate) use tool::tools;
pub(super) use tool::{closed, worded};

/// What a plugin writes, as the host understands it: for programs that test plugins.
pub mod protocol {
    pub use super::lines::{Arrived, Assembler, LONGEST};
    pub use super::message::{
        Described, Introduction, Outcome, Question, call_id, image_data, introduction, outcome,
    };
    pub use super::tool::{accepts, definition};
}

/// How many crashes in a row are borne.
const CRASHES: u32 = 5;

/// How long after a crash the next start waits; it doubles from crash to crash.
const BACKOFF: Duration = Duration::from_millis(100);

/// How long a plugin that was told that nobody waits for a call has to confirm it, before
/// the next call goes to another process.
const CONFIRMED: Duration = Duration::from_millis(300);

/// How much is kept of what a plugin writes to its log.
pub(super) const LOG: u64 = 1 << 20;

/// Says whether a program may run now, or why not.
pub type Check = Arc<dyn Fn() -> Result<Recheck, String> + Send + Sync>;

/// Says whether what a [`Check`] looked at is untouched. A program is found by its name,
/// so its file can be swapped between the check and its start: this is asked once the
/// program has begun, and before it gets anything to work on.
pub type Recheck = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// A plugin, as it was configured.
#[derive(Clone)]
pub struct Plugin {
    /// What it is called in messages.
    pub label: String,
    /// The program: a path, or a name to look up in the `PATH` below.
    pub program: PathBuf,
    /// The program as messages show it, if that is not as it is: what a variable in its
    /// path holds may be secret.
    pub shown: Option<String>,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// All of its environment. Without one it sees the usual variables of the session's
    /// commands: `PATH HOME USER SHELL LANG LC_* TZ TERM TMPDIR`.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// The folder it runs in; the work folder if there is none.
    pub dir: Option<PathBuf>,
    /// Which protocol it speaks.
    pub protocol: Protocol,
    /// How long a call may take. Without it, what its definition says, the limit of the
    /// session, or 120 seconds.
    pub timeout: Option<Duration>,
    /// How long it may take to introduce itself after each start; 10 seconds without it.
    pub start_timeout: Option<Duration>,
    /// Where the two limits are set, for messages.
    pub limits_set_in: String,
    /// Which of its tools take the place of others with their names.
    pub overrides: Overrides,
    /// A line that it gets before anything else.
    pub first_line: Option<String>,
    /// Whether it may have no tools: a Lua file may be a library for those beside it.
    pub may_be_empty: bool,
    /// Where what it says to its log is kept.
    pub log: Option<PathBuf>,
    /// Whether it may run now: it must be what it was when it was trusted.
    pub check: Option<Check>,
    /// Who vouches for it.
    pub standing: Standing,
    /// What is remembered of it: then it is only started when it is called.
    pub memory: Option<Arc<dyn Memory>>,
    /// A number that is another one when its files have changed: then it is started
    /// anew.
    pub stamp: Option<Stamp>,
    /// Whether it works on the files of the session from outside. Then it runs with no
    /// network and no files but those of the system and its own, and what it asks for
    /// is not other tools but these.
    pub guest: Option<Guest>,
    /// The files that haft read it from, if it is nothing but their text. It is left out
    /// where the rules keep one of them from a prompt.
    pub files: Vec<PathBuf>,
}

/// Which tools of a plugin take the place of others with their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overrides {
    /// None.
    Nothing,
    /// Those with these names.
    Named(Vec<String>),
    /// Every one.
    Any,
}

/// What a plugin said of itself, kept for as long as it is what it was.
pub trait Memory: Send + Sync {
    /// What is remembered.
    fn load(&self) -> Option<Value>;
    /// Remembers it.
    fn store(&self, introduction: &Value);
}

/// Tells one state of some files from another.
pub type Stamp = Arc<dyn Fn() -> u64 + Send + Sync>;

/// Which protocol a plugin speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Found out.
    Auto,
    /// It answers `describe`.
    Describe,
    /// It answers `describe` and speaks the second protocol, as haft's own programs do.
    Second,
    /// It answers `init`.
    Init,
}

impl Plugin {
    /// A plugin with nothing but a program and its arguments.
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
            standing: Standing::Vouched,
            memory: None,
            stamp: None,
            guest: None,
            files: Vec::new(),
        }
    }
}

/// How programs are run that are tools or bring some.
#[derive(Clone)]
pub struct Programs {
    /// Those that the person chose, which keep the network.
    pub(crate) own: Arc<Surroundings>,
    /// Guests, which have it where commands do.
    pub(crate) guests: Arc<Surroundings>,
    /// Those that reach nothing but what they ask for; and where they run.
    pub(crate) alone: Arc<Surroundings>,
    pub(crate) nowhere: PathBuf,
    /// Where they run.
    pub(crate) dir: PathBuf,
    /// Folders beside the work folder and the roots from which the person's own start
    /// no program.
    pub(crate) inert: Vec<PathBuf>,
    /// Folders among all these from which they may start programs.
    pub(crate) startable: Vec<PathBuf>,
}

impl Programs {
    /// What a program sees of the environment when nothing else is said.
    fn usual(&self, standing: Standing) -> Vec<(OsString, OsString)> {
        environment::for_programs(self.of(standing).environment.iter().cloned(), &[])
    }

    /// For those that reach nothing but what they ask for.
    fn alone(&self) -> Self {
        Self {
            own: Arc::clone(&self.alone),
            guests: Arc::clone(&self.alone),
            dir: self.nowhere.clone(),
            ..self.clone()
        }
    }
}

/// A plugin of a session: its process, when there is one, and its past.
pub(crate) struct Host {
    plugin: Plugin,
    programs: Programs,
    slot: Mutex<Slot>,
    /// One call at a time, for those that can do no more.
    turn: Mutex<()>,
    /// The tools that it has in the session.
    names: std::sync::Mutex<Vec<String>>,
}

struct Slot {
    process: Option<Arc<Process>>,
    /// The question that it answers, once that is known.
    question: Option<Question>,
    is_second: bool,
    crashes: u32,
    crashed: Option<Instant>,
}

impl Host {
    pub(crate) fn new(plugin: Plugin, programs: &Programs) -> Self {
        let programs = match plugin.guest {
            Some(_) => programs.alone(),
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

    /// The files that it was read from.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.plugin.files
    }

    /// Whether its tool of this name takes the place of another.
    pub(crate) fn overrides(&self, tool: &str) -> bool {
        match &self.plugin.overrides {
            Overrides::Nothing => false,
            Overrides::Named(names) => names.iter().any(|name| name == tool),
            Overrides::Any => true,
        }
    }

    /// What makes its tool of this name take the place of another.
    pub(crate) fn how_to_override(&self, tool: &str) -> String {
        match &self.plugin.overrides {
            Overrides::Named(_) => {
                format!("to replace it, write `name = \"{tool}\"` in the module")
            }
            Overrides::Nothing | Overrides::Any => {
                "`override: true` puts it in its place".to_owned()
            }
        }
    }

    /// Says which tools it has: from memory, or by starting and asking it.
    async fn introduce(&self) -> Result<Vec<Described>, Error> {
        let mut slot = self.slot.lock().await;
        let remembered = self.plugin.memory.as_ref().and_then(|memory| memory.load());
        if let Some(known) = remembered.and_then(|known| Remembered::read(&known)) {
            slot.question = Some(known.question);
            slot.is_second = known.introduction.is_second;
            return Ok(known.introduction.tools);
        }
        let met = introduce::meet(self, slot.question).await?;
        slot.question = Some(met.question);
        slot.is_second = met.introduction.is_second;
        slot.process = Some(Arc::new(met.process));
        let known = Remembered {
            question: met.question,
            introduction: met.introduction,
        };
        if let Some(memory) = &self.plugin.memory {
            memory.store(&known.written());
        }
        Ok(known.introduction.tools)
    }

    /// The state of its files.
    pub(crate) fn stamp(&self) -> Option<u64> {
        self.plugin.stamp.as_ref().map(|stamp| stamp())
    }

    /// Its files have changed: what runs is ended, and what it did before is past.
    pub(crate) async fn renew(&self) {
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

    /// The process to call, started if there is none.
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
        // One that ended since its last call crashed as well.
        if let Some(process) = slot.process.take() {
            drop(process);
            slot.crash();
        }
        if slot.crashes >= CRASHES {
            return Err(self.failed(format!(
                "is disabled: it ended {CRASHES} times in a row; `haft plugin log` has what it said, and a change of its file starts it again"
            )));
        }
        if let Some(crashed) = slot.crashed {
            let wait = BACKOFF * 2_u32.saturating_pow(slot.crashes.saturating_sub(1));
            tokio::time::sleep_until(crashed + wait).await;
        }
        let met = match introduce::meet(self, slot.question).await {
            Ok(met) => met,
            Err(error) => {
                slot.crash();
                return Err(error);
            }
        };
        slot.question = Some(met.question);
        slot.is_second = met.introduction.is_second;
        let process = Arc::new(met.process);
        slot.process = Some(Arc::clone(&process));
        Ok((process, slot.is_second))
    }

    /// It may be busy with a call that nobody waits for any more: no other one is to pay
    /// for that.
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

    /// A call was answered.
    async fn answered(&self) {
        let mut slot = self.slot.lock().await;
        slot.crashes = 0;
        slot.crashed = None;
    }

    /// A process ended in the middle of a call, or has to be ended.
    async fn broke(&self, process: &Arc<Process>, over: Over) -> Error {
        let (status, words) = process.last_words(Some(over)).await;
        let mut slot = self.slot.lock().await;
        // Of several calls that it took with it one counts it, and not when it was
        // ended for the sake of another.
        if slot.is(process) {
            slot.process = None;
            slot.crash();
        }
        drop(slot);
        let how = match (over, status) {
            (Over::Babbling, _) => {
                "wrote more than 16MB, or 10,000 lines, that are no message, and was ended"
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

    /// Its process is not to be used again: an answer may come late. The last of those
    /// who still wait for something of it ends it.
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

    /// The last words of its process, and what they may have to do with where it runs.
    fn quoted(&self, words: &str) -> String {
        if words.is_empty() {
            return String::new();
        }
        let advice = self.programs.advice(self.plugin.standing, words);
        let advice = advice.map(|advice| format!("\n[{advice}]"));
        format!("; its last words:\n{words}{}", advice.unwrap_or_default())
    }

    fn failed(&self, what: impl std::fmt::Display) -> Error {
        Error::failed(format!("plugin {} {what}", self.plugin.label))
    }

    /// Starts the program, and says how to look again at what it is.
    async fn start(&self) -> Result<(haft_ops::executor::Conversation, Option<Recheck>), Error> {
        let recheck = match &self.plugin.check {
            Some(check) => Some(check().map_err(Error::failed)?),
            None => None,
        };
        let start = Start {
            name: format!("plugin {}", self.plugin.label),
            program: self.plugin.program.clone(),
            shown: self.plugin.shown.clone(),
            arguments: self.plugin.arguments.clone(),
            environment: match &self.plugin.environment {
                Some(environment) => environment.clone(),
                None => self.programs.usual(self.plugin.standing),
            },
            cache: None,
            dir: self.plugin.dir.clone(),
            log: self.plugin.log.clone(),
            standing: self.plugin.standing,
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
