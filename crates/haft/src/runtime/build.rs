//! Describing a session.

use super::approve::{Approval, Approve, Approver};
use super::{Runtime, Session};
use crate::commands::Commands;
use crate::event::{Event, EventSink};
use crate::journal::Journal;
use crate::queue::Queue;
use crate::registry::Duplicate;
use crate::schema::Ranges;
use crate::toolset::UnknownPreset;
use crate::{AnyTool, Effect, Mode, Policy, Tool, Tools, Toolset, erase, toolsets};
use haft_ops::backend::local::{Litter, Local};
use haft_ops::scope::{FileRules, Places, PrivateTemp, Stands};
use haft_ops::spill::Spill;
use haft_ops::{Backend, Scope};
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Folders of the person, which only a front end can know.
#[derive(Debug, Clone, Default)]
pub struct Folders {
    /// Their home, where the secret places are.
    pub home: Option<PathBuf>,
    /// haft's configuration.
    pub config: Option<PathBuf>,
    /// haft's state: outputs, and notes of temporary files.
    pub state: Option<PathBuf>,
    /// More folders that are haft's own, closed to tools as the others are.
    pub own: Vec<PathBuf>,
}

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
    /// The work folder or a root cannot be used.
    #[error("the work folder cannot be used: {0}")]
    Scope(#[source] haft_ops::Error),
}

/// Describes a session.
pub struct Builder {
    dir: PathBuf,
    toolset: String,
    own_toolset: Option<Toolset>,
    preset: Selection,
    added: Vec<Arc<dyn AnyTool>>,
    roots: Vec<PathBuf>,
    protect: Vec<PathBuf>,
    rules: FileRules,
    folders: Folders,
    backend: Option<Arc<dyn Backend>>,
    journal: Option<Arc<dyn Journal>>,
    timeout: Option<Duration>,
    concurrency: usize,
    watch: Option<EventSink>,
    approval: Approval,
    commands: Option<Commands>,
}

enum Selection {
    Default,
    Named(String),
    Every,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            dir: PathBuf::from("."),
            toolset: toolsets::NAMES
                .first()
                .copied()
                .unwrap_or_default()
                .to_owned(),
            own_toolset: None,
            preset: Selection::Default,
            added: Vec::new(),
            roots: Vec::new(),
            protect: Vec::new(),
            rules: Mode::Workspace.rules(),
            folders: Folders::default(),
            backend: None,
            journal: None,
            timeout: None,
            concurrency: 4,
            watch: None,
            approval: Approval::default(),
            commands: None,
        }
    }

    /// The work folder.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = dir.into();
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

    /// Another place for files than the disk. Paths then start at its root.
    #[must_use]
    pub fn backend(mut self, backend: impl Backend) -> Self {
        self.backend = Some(Arc::new(backend));
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

    /// Watches what happens.
    #[must_use]
    pub fn on_event(mut self, watch: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.watch = Some(Box::new(watch));
        self
    }

    /// The rules that calls are judged by; without any, all are allowed.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.approval.policy = policy;
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
        let tools = Tools::default();
        let listed = match &self.preset {
            Selection::Every => None,
            Selection::Default => Some(toolset.preset(None)?.tools),
            Selection::Named(name) => Some(toolset.preset(Some(name))?.tools),
        };
        // What could only fail is not offered.
        let runs = self.commands.is_some() && self.backend.is_none();
        for tool in &toolset.tools {
            let is_listed = listed.is_none_or(|listed| {
                listed.contains(&tool.definition().name.as_str())
                    && (runs || tool.effect() != Effect::Execute)
            });
            if is_listed {
                tools.insert(Arc::clone(tool), Ranges::Clamp)?;
            }
        }
        for tool in self.added {
            tools.add_any(tool)?;
        }

        let id = session_id();
        let outputs = self
            .folders
            .state
            .as_ref()
            .map(|state| folder_for(state, "outputs", &self.dir));
        let temp = self.folders.state.as_ref().map(|state| PrivateTemp {
            folder: folder_for(state, "tmp", &self.dir),
            stands: self
                .commands
                .as_ref()
                .map_or(Stands::ForShared, Commands::temp_stands),
        });
        let (backend, scope, surroundings) = match self.backend {
            Some(backend) => (backend, Scope::detached(), None),
            None => {
                let places = Places {
                    work_dir: absolute(&self.dir),
                    roots: self.roots,
                    readable: outputs.iter().cloned().collect(),
                    own: [&self.folders.config, &self.folders.state]
                        .into_iter()
                        .flatten()
                        .chain(&self.folders.own)
                        .cloned()
                        .collect(),
                    home: self.folders.home,
                    protect: self.protect,
                    temp,
                    rules: self.rules,
                };
                let moved = outputs.as_ref().map(|outputs| outputs.join(&id));
                let mut places_of_commands = places.clone();
                let scope = Scope::disk(toolset.reach.of(places)).map_err(BuildError::Scope)?;
                // As they are now, for as long as the session lasts: a link that is
                // changed later leads commands no further than file tools.
                places_of_commands.work_dir = scope.work_dir().to_owned();
                places_of_commands.roots = scope.roots();
                let surroundings = self
                    .commands
                    .map(|commands| commands.surroundings(&places_of_commands, moved))
                    .transpose()
                    .map_err(|_| BuildError::NoState)?;
                (local(self.folders.state.as_ref()), scope, surroundings)
            }
        };
        let session = Session {
            spill: outputs.map(|outputs| Spill::new(outputs.join(&id))),
            id,
            tools,
            backend,
            scope,
            paths: toolset.paths,
            surroundings,
            processes: OnceLock::new(),
            toolset,
            journal: self.journal,
            queue: Queue::default(),
            timeout: self.timeout,
            concurrency: self.concurrency,
            watch: self.watch,
            approval: self.approval.ready(),
            events: AtomicU64::new(0),
            calls: AtomicU64::new(0),
        };
        Ok(Runtime {
            session: Arc::new(session),
        })
    }
}

/// The disk, with what killed processes left behind cleaned up.
fn local(state: Option<&PathBuf>) -> Arc<dyn Backend> {
    match state {
        None => Arc::new(Local::new()),
        Some(state) => {
            let litter = Litter::new(state.join("litter"));
            litter.sweep();
            Arc::new(Local::with_litter(litter))
        }
    }
}

/// Outputs and temporary files lie by work folder: a later session in the same
/// folder may read what an earlier one was told of, one in another folder may
/// not.
fn folder_for(state: &std::path::Path, kind: &str, dir: &std::path::Path) -> PathBuf {
    let real = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    // FNV-1a: stable between versions and machines, which the standard hasher is not.
    for byte in real.as_os_str().as_encoded_bytes() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    }
    state.join(kind).join(format!("{hash:016x}"))
}

fn absolute(dir: &std::path::Path) -> PathBuf {
    std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned())
}

/// Sorts by time, and is not the same twice.
fn session_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let random = RandomState::new().hash_one((now, std::process::id()));
    format!("{:011x}-{:08x}", now.as_millis(), random & 0xffff_ffff)
}
