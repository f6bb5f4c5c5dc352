//! Describing a session.

mod channels;
mod folders;
mod held;
mod names;
mod offer;

use super::approve::{Approval, Approve, Approver};
use super::files::{self, Backing, Disk, Files, Ground};
use super::sibling::{Origin, Place};
use super::{Runtime, Session, closing};
use crate::commands::Commands;
use crate::event::{Event, EventSink};
use crate::external::executable::Executable;
use crate::external::plugin::{Host, Plugin};
use crate::external::source::Sourced;
use crate::journal::Journal;
use crate::queue::Queue;
use crate::registry::Duplicate;
use crate::state::State;
use crate::toolset::{Paths, UnknownPreset};
use crate::{AnyTool, Effect, Mode, Policy, Tool, Toolset, erase, toolsets};
pub use folders::Folders;
use haft_ops::backend::Kept;
use haft_ops::exec::Vigil;
use haft_ops::messenger::{Messenger, NoChannels};
use haft_ops::scope::{FileRules, Places, PrivateTemp, Stands};
use haft_ops::spill::Spill;
use names::folder_for;
pub(super) use names::{absolute, is_plain, session_id};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No toolset of that name.
    #[error("unknown toolset \"{name}\"; there are: {}", toolsets::NAMES.join(", "))]
    UnknownToolset {
        /// The name.
        name: String,
    },
    /// The toolset has no preset of that name.
    #[error(transparent)]
    UnknownPreset(#[from] UnknownPreset),
    /// Two tools of one name.
    #[error(transparent)]
    Duplicate(#[from] Duplicate),
    /// Commands are confined, which takes a folder of the session's own.
    #[error(
        "commands that are confined need a state folder: give `folders` with `state`, or no commands"
    )]
    NoState,
    /// Plugins are programs, and nobody has said how to run those.
    #[error("plugins need to be run: give the builder `commands`, or `programs_run`")]
    NoPrograms,
    /// The toolset's paths need a place to start at.
    #[error("no backend configured: give the builder `dir`, `backend` or `backend_factory`")]
    NoBackend,
    /// The backend could not be made.
    #[error("the backend cannot be used: {0}")]
    Backend(#[source] haft_ops::Error),
    /// A tree of several backends, for a toolset that works in one folder.
    #[error("routes are for toolsets of absolute paths (deepagents); \"{0}\" works in one folder")]
    Routes(&'static str),
    /// A route that cannot be.
    #[error("backend: {0} {1}")]
    Route(String, String),
    /// An id that nothing can be named after.
    #[error("the id of a session has at most 64 letters, digits, - and _: \"{0}\"")]
    Session(String),
    /// The state folder cannot be used.
    #[error("the state folder cannot be used: {0}")]
    State(#[source] std::io::Error),
    /// The work folder or a root cannot be used.
    #[error("the work folder cannot be used: {0}")]
    Scope(#[source] haft_ops::Error),
}

/// Describes a session.
pub struct Builder {
    dir: Option<PathBuf>,
    toolset: String,
    own_toolset: Option<Toolset>,
    preset: Selection,
    added: Vec<Arc<dyn AnyTool>>,
    brought: Vec<(Arc<dyn AnyTool>, Listed)>,
    roots: Vec<PathBuf>,
    protect: Vec<PathBuf>,
    rules: FileRules,
    folders: Folders,
    backing: Choice,
    id: Option<String>,
    journal: Option<Arc<dyn Journal>>,
    timeout: Option<Duration>,
    concurrency: usize,
    watch: Option<EventSink>,
    approval: Approval,
    commands: Option<Commands>,
    plugins: Vec<Plugin>,
    executables: Vec<Executable>,
    pub(super) sources: Vec<Arc<Sourced>>,
    rules_begin: Option<PathBuf>,
    programs_run: Option<Commands>,
    programs_read: Vec<PathBuf>,
    pub(crate) inert: Vec<PathBuf>,
    pub(crate) startable: Vec<PathBuf>,
    messenger: Option<Arc<dyn Messenger>>,
    state: State,
    holding: Vec<Kept>,
    interrupt_on: BTreeSet<String>,
}

/// Makes the place of files of a session from its id.
pub(super) type Factory = Arc<dyn Fn(&str) -> Result<Backing, haft_ops::Error> + Send + Sync>;

/// Who says where files live.
enum Choice {
    /// Nobody: in the work folder.
    WorkFolder,
    Given(Backing),
    Made(Factory),
}

/// When a tool is offered that belongs to a toolset and lives elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// When the preset names it, or every tool is asked for.
    ByPreset,
    /// Always.
    Always,
}

enum Selection {
    Default,
    Named(String),
    Every,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            dir: None,
            toolset: toolsets::NAMES
                .first()
                .copied()
                .unwrap_or_default()
                .to_owned(),
            own_toolset: None,
            preset: Selection::Default,
            added: Vec::new(),
            brought: Vec::new(),
            roots: Vec::new(),
            protect: Vec::new(),
            rules: Mode::Workspace.rules(),
            folders: Folders::default(),
            backing: Choice::WorkFolder,
            id: None,
            journal: None,
            timeout: None,
            concurrency: 4,
            watch: None,
            approval: Approval::default(),
            commands: None,
            plugins: Vec::new(),
            executables: Vec::new(),
            sources: Vec::new(),
            rules_begin: None,
            programs_run: None,
            programs_read: Vec::new(),
            inert: Vec::new(),
            startable: Vec::new(),
            messenger: None,
            state: State::default(),
            holding: Vec::new(),
            interrupt_on: BTreeSet::new(),
        }
    }

    /// The work folder.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// The toolset, by name.
    #[must_use]
    pub fn toolset(mut self, name: impl Into<String>) -> Self {
        self.toolset = name.into();
        self
    }

    /// A toolset of your own.
    #[must_use]
    pub fn with_toolset(mut self, toolset: Toolset) -> Self {
        self.own_toolset = Some(toolset);
        self
    }

    /// Which of its tools, by the name of a preset.
    #[must_use]
    pub fn preset(mut self, name: impl Into<String>) -> Self {
        self.preset = Selection::Named(name.into());
        self
    }

    /// All of its tools, whatever the presets say.
    #[must_use]
    pub fn every_tool(mut self) -> Self {
        self.preset = Selection::Every;
        self
    }

    /// With a tool of your own.
    #[must_use]
    pub fn tool(self, tool: impl Tool) -> Self {
        self.any_tool(erase(tool))
    }

    /// With a tool of any kind.
    #[must_use]
    pub fn any_tool(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.added.push(tool);
        self
    }

    /// With a tool that belongs to the toolset and lives in another crate. It is held to
    /// as the toolset's own are: numbers out of range are taken as the nearest in it.
    #[must_use]
    pub fn own_tool(mut self, tool: Arc<dyn AnyTool>, listed: Listed) -> Self {
        self.brought.push((tool, listed));
        self
    }

    /// More folders with the rights of the work folder.
    #[must_use]
    pub fn roots(mut self, roots: Vec<PathBuf>) -> Self {
        self.roots = roots;
        self
    }

    /// Folders and files that are never written.
    #[must_use]
    pub fn protect(mut self, protect: Vec<PathBuf>) -> Self {
        self.protect = protect;
        self
    }

    /// What may be read and written. [`Mode::rules`] makes them.
    #[must_use]
    pub fn rules(mut self, rules: FileRules) -> Self {
        self.rules = rules;
        self
    }

    /// The person's folders.
    #[must_use]
    pub fn folders(mut self, folders: Folders) -> Self {
        self.folders = folders;
        self
    }

    /// Another place for files than the work folder: a backend, whose paths start
    /// at its root, or a [`Backing`].
    #[must_use]
    pub fn backend(mut self, backing: impl Into<Backing>) -> Self {
        self.backing = Choice::Given(backing.into());
        self
    }

    /// The same, made when the session is, from its id.
    #[must_use]
    pub fn backend_factory(
        mut self,
        make: impl Fn(&str) -> Result<Backing, haft_ops::Error> + Send + Sync + 'static,
    ) -> Self {
        self.backing = Choice::Made(Arc::new(make));
        self
    }

    /// The id of the session, where it was given one already: letters, digits, `-` and
    /// `_`. What it keeps on the disk is named after it.
    #[must_use]
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Where calls are recorded; without it, nowhere.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Bounds every call.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
        self
    }

    /// How many of several calls run at a time.
    #[must_use]
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.concurrency = calls.max(1);
        self
    }

    /// How commands are run; without it, none is.
    #[must_use]
    pub fn commands(mut self, commands: Commands) -> Self {
        self.commands = Some(commands);
        self
    }

    /// With the tools of a program that speaks JSON lines.
    #[must_use]
    pub fn plugin<A: Into<OsString>>(
        self,
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        self.add_plugin(Plugin::new(program, arguments))
    }

    /// The same, with everything that can be said of it.
    #[must_use]
    pub fn add_plugin(mut self, plugin: Plugin) -> Self {
        self.plugins.push(plugin);
        self
    }

    /// With a program that is a tool. It takes the place of a built-in one with its
    /// name.
    #[must_use]
    pub fn executable(mut self, executable: Executable) -> Self {
        self.executables.push(executable);
        self
    }

    /// How programs are run that are tools or bring some, where it is not as commands
    /// are: those may run elsewhere, and without the network.
    #[must_use]
    pub fn programs_run(mut self, commands: Commands) -> Self {
        self.programs_run = Some(commands);
        self
    }

    /// What programs may read that are tools or bring some, wherever it lies: their
    /// own files, in a folder that is closed otherwise.
    #[must_use]
    pub fn programs_read(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.programs_read.extend(paths);
        self
    }

    /// Who sends messages; without it, nobody does.
    #[must_use]
    pub fn messenger(mut self, messenger: Arc<dyn Messenger>) -> Self {
        self.messenger = Some(messenger);
        self
    }

    /// Watches what happens.
    #[must_use]
    pub fn on_event(mut self, watch: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.watch = Some(Arc::new(watch));
        self
    }

    /// The rules that calls are judged by; without any, all are allowed.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        self.approval.put(policy);
        self
    }

    /// The folder that relative paths in rules start from, when the work folder was
    /// not the person's choice; they hold from the work folder too.
    #[must_use]
    pub fn rules_begin(mut self, folder: impl Into<PathBuf>) -> Self {
        self.rules_begin = Some(folder.into());
        self
    }

    /// What becomes of calls that a rule asks about.
    #[must_use]
    pub fn approve(mut self, approve: Approve) -> Self {
        self.approval.approve = approve;
        self
    }

    /// Who is asked; without anybody, such calls are refused.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approval.approver = Some(approver);
        self
    }

    /// What tools remember from an earlier session.
    #[must_use]
    pub fn remembering(mut self, state: Map<String, Value>) -> Self {
        self.state = State::from(state);
        self
    }

    /// A person is asked before every call of these tools, by name. Neither a rule nor
    /// [`Approve::Auto`] changes that.
    #[must_use]
    pub fn interrupt_on<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.interrupt_on.extend(tools.into_iter().map(Into::into));
        self
    }

    /// A person is asked before every call of this effect. A rule that allows it
    /// does not change that; [`Approve::Auto`] does.
    #[must_use]
    pub fn ask_first(mut self, reason: impl Into<String>, effect: Effect) -> Self {
        self.approval.asked_first.push((reason.into(), effect));
        self
    }

    /// Makes the session.
    ///
    /// # Errors
    /// When a name is unknown or taken, or a folder cannot be used.
    pub fn build(self) -> Result<Runtime, BuildError> {
        let toolset = match self.own_toolset {
            Some(toolset) => toolset,
            None => toolsets::by_name(&self.toolset)
                .ok_or(BuildError::UnknownToolset { name: self.toolset })?,
        };
        let listed = match &self.preset {
            Selection::Every => None,
            Selection::Default => Some(toolset.preset(None)?.tools),
            Selection::Named(name) => Some(toolset.preset(Some(name))?.tools),
        };
        let messenger = self.messenger.unwrap_or_else(|| Arc::new(NoChannels));
        let channels = messenger.channels();
        // What could only fail is not offered.
        let runs = self.commands.is_some()
            && (toolset.paths == Paths::Virtual
                || matches!(
                    self.backing,
                    Choice::WorkFolder | Choice::Given(Backing::Disk(_))
                ));
        let choice = offer::Choice {
            toolset: &toolset,
            listed,
            runs,
            channels: &channels,
        };
        let (tools, reserve) = choice.tools(self.brought)?;
        for tool in self.added {
            tools.add_any(tool)?;
        }

        let id = match self.id {
            Some(id) if is_plain(&id) => id,
            Some(id) => return Err(BuildError::Session(id)),
            None => session_id(),
        };
        let dir = self.dir.clone().unwrap_or_else(|| PathBuf::from("."));
        let outputs = self
            .folders
            .state
            .as_ref()
            .map(|state| folder_for(state, "outputs", &dir));
        let temp = self.folders.state.as_ref().map(|state| PrivateTemp {
            folder: folder_for(state, "tmp", &dir),
            stands: self
                .commands
                .as_ref()
                .map_or(Stands::ForShared, Commands::temp_stands),
        });
        let place = match self.backing {
            Choice::Given(backing) => Place::Given(backing),
            Choice::Made(make) => Place::Made(make),
            Choice::WorkFolder if toolset.paths == Paths::Virtual && self.dir.is_none() => {
                return Err(BuildError::NoBackend);
            }
            Choice::WorkFolder => Place::Given(Backing::Disk(Disk::default())),
        };
        let ground = Ground {
            places: Places {
                work_dir: absolute(&dir),
                roots: self.roots,
                readable: outputs.iter().cloned().collect(),
                own: [&self.folders.config, &self.folders.state]
                    .into_iter()
                    .flatten()
                    .chain(&self.folders.own)
                    .cloned()
                    .collect(),
                home: self.folders.home,
                git_configs: self.folders.git_configs,
                protect: files::protected(self.protect, &dir),
                temp,
                rules: self.rules,
            },
            moved: outputs.as_ref().map(|outputs| outputs.join(&id)),
            outputs: outputs.clone(),
            vigil: {
                let state = self.folders.state.as_ref();
                Arc::new(Vigil::new(
                    state.map(|state| folder_for(state, "watch", &dir)),
                ))
            },
            state: self.folders.state,
            called: self.folders.called,
            plugins: self.programs_run.or_else(|| self.commands.clone()),
            programs_read: self.programs_read,
            inert: self.inert,
            startable: self.startable,
            commands: self.commands,
        };
        let origin = Origin { ground, place };
        let Files {
            backend,
            held,
            scope,
            surroundings,
            plugins,
        } = origin.files(&id, &toolset)?;
        held.restore(self.holding);
        let mut bases: Vec<PathBuf> = Vec::new();
        let begin = self.rules_begin.into_iter().chain([absolute(&dir)]);
        for base in begin.chain([scope.work_dir().to_owned()]) {
            let real = haft_ops::scope::real(&base).unwrap_or(base);
            if !bases.contains(&real) {
                bases.push(real);
            }
        }
        if toolset.paths == Paths::Virtual {
            bases.push(PathBuf::from("/"));
        }
        let programs = closing::programs(plugins, &self.approval.policy(), &bases, &scope);
        let spill = outputs.map(|outputs| {
            let spill = Spill::new(outputs.join(&id));
            match toolset.paths {
                Paths::Virtual => spill.called(Path::new(files::OUTPUTS).join(&id)),
                Paths::Expanding | Paths::Plain => spill,
            }
        });
        let session = Session {
            spill,
            state: Arc::new(self.state),
            interrupt_on: self.interrupt_on,
            agent: None,
            clock: None,
            messenger,
            id,
            tools,
            reserve,
            backend,
            held,
            scope,
            paths: toolset.paths,
            bases,
            surroundings,
            processes: Arc::new(OnceLock::new()),
            toolset: Arc::new(toolset),
            journal: self.journal,
            queue: Queue::default(),
            timeout: self.timeout,
            concurrency: self.concurrency,
            watch: self.watch,
            approval: Arc::new(self.approval.ready()),
            events: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            plugins: match &programs {
                None if !self.plugins.is_empty() => return Err(BuildError::NoPrograms),
                None => Vec::new(),
                Some(programs) => {
                    let host = |plugin| Arc::new(Host::new(plugin, programs));
                    self.plugins.into_iter().map(host).collect()
                }
            },
            programs,
            executables: self.executables,
            sources: self.sources,
            met: tokio::sync::OnceCell::new(),
            elder: None,
            origin: Arc::new(origin),
        };
        let session = Arc::new(session);
        session.tools.belong_to(&session);
        Ok(Runtime { session })
    }
}
