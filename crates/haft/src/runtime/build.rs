//! Building a session.

mod approvals;
mod channels;
mod edits;
mod folders;
mod names;
mod offer;
mod restore;

use super::approve::Approval;
use super::files::{self, Backing, Disk, FileSetup};
use super::session::{ExternalTools, SharedSettings};
use super::sibling::{BackingSource, Origin};
use super::{Runtime, Session, hidden_paths};
use crate::commands::Commands;
use crate::event::{Event, EventSink};
use crate::external::executable::Executable;
use crate::external::plugin::{Host, Plugin};
use crate::external::source::Sourced;
use crate::journal::Journal;
use crate::registry::Duplicate;
use crate::state::State;
use crate::toolset::{Paths, UnknownPreset};
use crate::{AnyTool, Mode, Policy, Tool, Toolset, erase, toolsets};
pub use folders::Folders;
use haft_ops::backend::Kept;
use haft_ops::edit::Repairs;
use haft_ops::exec::Monitor;
use haft_ops::messenger::{Messenger, NoChannels};
use haft_ops::scope::{FileRules, PrivateTemp, ReplacesShared, ScopeConfig};
use haft_ops::spill::Spill;
use names::folder_for;
pub(super) use names::{absolute, is_plain, session_id};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Reasons why a session cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No toolset has this name.
    #[error("unknown toolset \"{name}\"; there are: {}", toolsets::NAMES.join(", "))]
    UnknownToolset {
        /// The requested name.
        name: String,
    },
    /// The toolset has no preset of this name.
    #[error(transparent)]
    UnknownPreset(#[from] UnknownPreset),
    /// Two tools have the same name.
    #[error(transparent)]
    Duplicate(#[from] Duplicate),
    /// Sandboxed commands need a private folder of the session.
    #[error(
        "commands that are confined need a state folder: give `folders` with `state`, or no commands"
    )]
    NoState,
    /// Plugins are programs, and the session has no way to run programs.
    #[error("plugins need to be run: give the builder `commands`, or `programs_run`")]
    NoPrograms,
    /// A toolset with virtual paths needs a folder or a backend.
    #[error("no backend configured: give the builder `dir`, `backend` or `backend_factory`")]
    NoBackend,
    /// The backend could not be created.
    #[error("the backend cannot be used: {0}")]
    Backend(#[source] haft_ops::Error),
    /// The toolset works in one folder and cannot use a tree of several backends.
    #[error("routes are for toolsets of absolute paths (deepagents); \"{0}\" works in one folder")]
    Routes(&'static str),
    /// A route is invalid: its path, and why.
    #[error("backend: {0} {1}")]
    Route(String, String),
    /// The id cannot be used in file names.
    #[error("the id of a session has at most 64 letters, digits, - and _: \"{0}\"")]
    Session(String),
    /// The state folder cannot be used.
    #[error("the state folder cannot be used: {0}")]
    State(#[source] std::io::Error),
    /// The work folder or a root cannot be used.
    #[error("the work folder cannot be used: {0}")]
    Scope(#[source] haft_ops::Error),
}

/// Builds a session. [`Runtime::builder`] creates one.
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
    edit_repairs: Repairs,
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
    restored_files: Vec<Kept>,
    interrupt_on: BTreeSet<String>,
    effects: Option<haft_ops::effects::Store>,
}

/// Creates the backing of a session from its id.
pub(super) type Factory = Arc<dyn Fn(&str) -> Result<Backing, haft_ops::Error> + Send + Sync>;

/// Location of the session's files.
enum Choice {
    /// In the work folder, because the caller did not choose.
    WorkFolder,
    Given(Backing),
    Made(Factory),
}

/// When to offer a tool that belongs to a toolset but is defined in another crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// If the preset lists it, or every tool is requested.
    ByPreset,
    /// Always, whatever the preset.
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
            edit_repairs: Repairs::Safe,
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
            restored_files: Vec::new(),
            interrupt_on: BTreeSet::new(),
            effects: None,
        }
    }

    /// Sets the work folder.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// Selects the toolset by name.
    #[must_use]
    pub fn toolset(mut self, name: impl Into<String>) -> Self {
        self.toolset = name.into();
        self
    }

    /// Uses the given toolset instead of a built-in one.
    #[must_use]
    pub fn with_toolset(mut self, toolset: Toolset) -> Self {
        self.own_toolset = Some(toolset);
        self
    }

    /// Selects the tools of the toolset by the name of a preset.
    #[must_use]
    pub fn preset(mut self, name: impl Into<String>) -> Self {
        self.preset = Selection::Named(name.into());
        self
    }

    /// Offers all tools of the toolset, whatever the presets list.
    #[must_use]
    pub fn every_tool(mut self) -> Self {
        self.preset = Selection::Every;
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(self, tool: impl Tool) -> Self {
        self.any_tool(erase(tool))
    }

    /// Adds a tool with JSON arguments.
    #[must_use]
    pub fn any_tool(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.added.push(tool);
        self
    }

    /// Adds a tool that belongs to the toolset but is defined in another crate. Its
    /// arguments are treated as those of the toolset's own tools: numbers out of range are
    /// clamped.
    #[must_use]
    pub fn own_tool(mut self, tool: Arc<dyn AnyTool>, listed: Listed) -> Self {
        self.brought.push((tool, listed));
        self
    }

    /// Adds folders with the same rights as the work folder.
    #[must_use]
    pub fn roots(mut self, roots: Vec<PathBuf>) -> Self {
        self.roots = roots;
        self
    }

    /// Adds folders and files that are never written.
    #[must_use]
    pub fn protect(mut self, protect: Vec<PathBuf>) -> Self {
        self.protect = protect;
        self
    }

    /// Sets which files may be read and written; see [`Mode::rules`].
    #[must_use]
    pub fn rules(mut self, rules: FileRules) -> Self {
        self.rules = rules;
        self
    }

    /// Sets the user's folders.
    #[must_use]
    pub fn folders(mut self, folders: Folders) -> Self {
        self.folders = folders;
        self
    }

    /// Puts files elsewhere than in the work folder: into a backend, whose paths start at
    /// its root, or a [`Backing`].
    #[must_use]
    pub fn backend(mut self, backing: impl Into<Backing>) -> Self {
        self.backing = Choice::Given(backing.into());
        self
    }

    /// Same as [`Builder::backend`], but the backing is created together with the session,
    /// from its id.
    #[must_use]
    pub fn backend_factory(
        mut self,
        make: impl Fn(&str) -> Result<Backing, haft_ops::Error> + Send + Sync + 'static,
    ) -> Self {
        self.backing = Choice::Made(Arc::new(make));
        self
    }

    /// Sets the id of the session: letters, digits, `-` and `_`. Default: a new id.
    #[must_use]
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the journal. Without one, calls are not recorded.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Sets a time limit for every call.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
        self
    }

    /// Sets how many calls of [`Runtime::run_all`] run at once.
    #[must_use]
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.concurrency = calls.max(1);
        self
    }

    /// Sets how commands are run. Without it, the session cannot run commands.
    #[must_use]
    pub fn commands(mut self, commands: Commands) -> Self {
        self.commands = Some(commands);
        self
    }

    /// Adds the tools of a plugin: a program that communicates in JSON lines.
    #[must_use]
    pub fn plugin<A: Into<OsString>>(
        self,
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        self.add_plugin(Plugin::new(program, arguments))
    }

    /// Same as [`Builder::plugin`], with all options.
    #[must_use]
    pub fn add_plugin(mut self, plugin: Plugin) -> Self {
        self.plugins.push(plugin);
        self
    }

    /// Adds a program that is a tool. It replaces a built-in tool of the same name.
    #[must_use]
    pub fn executable(mut self, executable: Executable) -> Self {
        self.executables.push(executable);
        self
    }

    /// Sets how to run programs that are tools or provide tools, if not in the same way as
    /// commands: those may run on another machine, or without network access.
    #[must_use]
    pub fn programs_run(mut self, commands: Commands) -> Self {
        self.programs_run = Some(commands);
        self
    }

    /// Adds paths that such programs may always read, usually their own files.
    #[must_use]
    pub fn programs_read(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.programs_read.extend(paths);
        self
    }

    /// Sets the messenger. Without one, no messages can be sent.
    #[must_use]
    pub fn messenger(mut self, messenger: Arc<dyn Messenger>) -> Self {
        self.messenger = Some(messenger);
        self
    }

    /// Sets a listener for all events.
    #[must_use]
    pub fn on_event(mut self, watch: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.watch = Some(Arc::new(watch));
        self
    }

    /// Sets the rules that decide about calls. Without rules, all calls are allowed.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        self.approval.put(policy);
        self
    }

    /// Sets the folder that relative paths in rules start from, for a work folder that the
    /// user did not choose. They also apply from the work folder.
    #[must_use]
    pub fn rules_begin(mut self, folder: impl Into<PathBuf>) -> Self {
        self.rules_begin = Some(folder.into());
        self
    }

    /// Restores the values that tools stored in an earlier session.
    #[must_use]
    pub fn remembering(mut self, state: Map<String, Value>) -> Self {
        self.state = State::from(state);
        self
    }

    /// Records what calls change in this store, so that it can be shown and undone. Without
    /// a store nothing is recorded.
    #[must_use]
    pub fn effects(mut self, store: haft_ops::effects::Store) -> Self {
        self.effects = Some(store);
        self
    }

    /// Builds the session.
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
        // A tool that could only fail is not offered.
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
            replaces_shared: self
                .commands
                .as_ref()
                .map_or(ReplacesShared::Always, Commands::temp_replaces_shared),
        });
        let place = match self.backing {
            Choice::Given(backing) => BackingSource::Given(backing),
            Choice::Made(make) => BackingSource::Made(make),
            Choice::WorkFolder if toolset.paths == Paths::Virtual && self.dir.is_none() => {
                return Err(BuildError::NoBackend);
            }
            Choice::WorkFolder => BackingSource::Given(Backing::Disk(Disk::default())),
        };
        let setup = FileSetup {
            scope_config: ScopeConfig {
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
            monitor: {
                let state = self.folders.state.as_ref();
                Arc::new(Monitor::new(
                    state.map(|state| folder_for(state, "watch", &dir)),
                ))
            },
            caches: self
                .folders
                .state
                .as_ref()
                .map(|state| folder_for(state, "caches", &dir)),
            state: self.folders.state,
            called: self.folders.called,
            plugins: self.programs_run.or_else(|| self.commands.clone()),
            programs_read: self.programs_read,
            inert: self.inert,
            startable: self.startable,
            commands: self.commands,
        };
        let origin = Origin { setup, place };
        let mut files = origin.files(&id, &toolset)?;
        files.memory_files.restore(self.restored_files);
        let mut bases: Vec<PathBuf> = Vec::new();
        let begin = self.rules_begin.into_iter().chain([absolute(&dir)]);
        for base in begin.chain([files.scope.work_dir().to_owned()]) {
            let real = haft_ops::scope::real(&base).unwrap_or(base);
            if !bases.contains(&real) {
                bases.push(real);
            }
        }
        if toolset.paths == Paths::Virtual {
            bases.push(PathBuf::from("/"));
        }
        let policy = self.approval.policy();
        files.programs = hidden_paths::programs(files.programs, &policy, &bases, &files.scope);
        let plugins = match &files.programs {
            None if !self.plugins.is_empty() => return Err(BuildError::NoPrograms),
            None => Vec::new(),
            Some(programs) => {
                let host = |plugin| Arc::new(Host::new(plugin, programs));
                self.plugins.into_iter().map(host).collect()
            }
        };
        let spill = outputs.map(|outputs| {
            let spill = Spill::new(outputs.join(&id));
            match toolset.paths {
                Paths::Virtual => spill.called(Path::new(files::OUTPUTS).join(&id)),
                Paths::Expanding | Paths::Plain => spill,
            }
        });
        let shared = SharedSettings {
            toolset,
            reserve,
            bases,
            messenger,
            timeout: self.timeout,
            edit_repairs: self.edit_repairs,
            concurrency: self.concurrency,
            watch: self.watch,
            effects: self.effects,
            origin,
        };
        let session = Session {
            journal: self.journal,
            spill,
            state: Arc::new(self.state),
            approval: Arc::new(self.approval.ready()),
            interrupt_on: self.interrupt_on,
            external: ExternalTools {
                plugins,
                executables: self.executables,
                sources: self.sources,
                ..ExternalTools::default()
            },
            ..Session::new(Arc::new(shared), id, tools, files)
        };
        Ok(session.start())
    }
}
