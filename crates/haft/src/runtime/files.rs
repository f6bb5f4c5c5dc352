//! The files of a session: where they live, and which of them commands see.

use super::build::{BuildError, absolute};
use super::memory_files::MemoryFiles;
use crate::commands::Commands;
use crate::external::plugin::Programs;
use crate::toolset::{Paths, Reach, Toolset};
use haft_ops::backend::local::{Litter, Local};
use haft_ops::backend::{Composite, Limited, Mount};
use haft_ops::exec::{ExecContext, Monitor};
use haft_ops::executor::sandbox::Network;
use haft_ops::scope::{FileRules, Reading, ScopeConfig, Visibility, Writing};
use haft_ops::{Backend, Scope, private};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Folder of a virtual tree with the session's saved outputs.
pub(super) const OUTPUTS: &str = "/.haft/outputs";

/// Maximum size of the files in memory, in bytes, for each part of the tree.
const STATE: u64 = 256 << 20;

/// Location of a session's files.
#[derive(Clone)]
pub enum Backing {
    /// On the disk of this machine.
    Disk(Disk),
    /// In the given backend; paths start at its root.
    Own(Arc<dyn Backend>),
    /// In memory, until the session ends.
    State,
    /// In several backings by path prefix. The longest matching prefix decides and is
    /// removed from the path; other paths are in the work folder.
    Routes(Vec<(String, Backing)>),
}

/// A folder on disk that holds the files of a session.
#[derive(Debug, Clone)]
pub struct Disk {
    /// The folder; `None` for the work folder.
    pub root: Option<PathBuf>,
    /// Meaning of absolute paths, for toolsets that use them.
    pub naming: Naming,
    /// Maximum size of a file that such a toolset reads, in bytes.
    pub largest: u64,
}

/// Meaning of absolute paths in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// Relative to the folder: `/a` is the file `a` in it.
    Virtual,
    /// Real paths, which start with the path of the folder.
    Real,
}

impl Disk {
    /// Default of `largest`: 10 MB.
    pub const LARGEST: u64 = 10 << 20;
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            root: None,
            naming: Naming::Virtual,
            largest: Self::LARGEST,
        }
    }
}

impl Backing {
    /// Returns a backing in memory that lasts as long as the session.
    #[must_use]
    pub fn state() -> Self {
        Self::State
    }

    /// Creates the parts of the tree that are in memory.
    fn made(self, at: &str, memory_files: &mut MemoryFiles) -> Self {
        match self {
            Self::State => Self::Own(memory_files.place(at, STATE)),
            Self::Routes(routes) => Self::Routes(
                routes
                    .into_iter()
                    .map(|(at, backing)| {
                        let made = backing.made(&at, memory_files);
                        (at, made)
                    })
                    .collect(),
            ),
            other => other,
        }
    }

    /// Whether each session has its own files there.
    pub(super) fn is_of_a_session(&self) -> bool {
        match self {
            Self::State => true,
            Self::Routes(routes) => routes.iter().any(|(_, backing)| backing.is_of_a_session()),
            Self::Disk(_) | Self::Own(_) => false,
        }
    }
}

impl<B: Backend> From<B> for Backing {
    fn from(backend: B) -> Self {
        Self::Own(Arc::new(backend))
    }
}

/// Everything that the files and commands of a session are created from.
#[derive(Clone)]
pub(super) struct FileSetup {
    /// Folders and rules of commands, as the sandbox mode says.
    pub(super) scope_config: ScopeConfig,
    /// Other paths of the work folder, through links.
    pub(super) called: Vec<PathBuf>,
    pub(super) outputs: Option<PathBuf>,
    /// Folder that receives files which commands must not leave behind.
    pub(super) moved: Option<PathBuf>,
    pub(super) state: Option<PathBuf>,
    /// Folder for the caches of commands.
    pub(super) caches: Option<PathBuf>,
    pub(super) commands: Option<Commands>,
    /// Settings for running plugins, if there are any.
    pub(super) plugins: Option<Commands>,
    /// Files that plugins may always read: their own.
    pub(super) programs_read: Vec<PathBuf>,
    /// Folders from which the user's own programs start nothing, in addition to the roots.
    pub(super) inert: Vec<PathBuf>,
    pub(super) startable: Vec<PathBuf>,
    /// Watches protected paths for this session and its siblings.
    pub(super) monitor: Arc<Monitor>,
}

/// The files of a session.
pub(super) struct Files {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) scope: Scope,
    /// The files that are in memory.
    pub(super) memory_files: MemoryFiles,
    pub(super) exec_context: Option<ExecContext>,
    /// How to run programs that are tools or provide tools.
    pub(super) programs: Option<Programs>,
}

impl FileSetup {
    /// Creates the files of a session for the toolset's style of paths.
    pub(super) fn files(self, backing: Backing, toolset: &Toolset) -> Result<Files, BuildError> {
        let mut memory_files = MemoryFiles::default();
        let files = match (toolset.paths, backing.made("/", &mut memory_files)) {
            (Paths::Virtual, backing) => self.tree(backing)?,
            (_, Backing::Own(backend)) => {
                let (dir, roots) = (
                    self.scope_config.work_dir.clone(),
                    self.scope_config.roots.clone(),
                );
                Files {
                    backend,
                    memory_files: MemoryFiles::default(),
                    scope: Scope::detached(),
                    exec_context: None,
                    programs: self.exec_context(dir, roots)?.1,
                }
            }
            (_, Backing::Disk(Disk { root, .. })) => self.disk(root, toolset.reach)?,
            (_, Backing::State | Backing::Routes(_)) => {
                return Err(BuildError::Routes(toolset.name));
            }
        };
        Ok(Files {
            memory_files,
            ..files
        })
    }

    fn local(&self) -> Local {
        local(self.state.as_deref())
    }

    fn disk(mut self, root: Option<PathBuf>, reach: Reach) -> Result<Files, BuildError> {
        if let Some(root) = root {
            self.scope_config.work_dir = self.scope_config.work_dir.join(root);
        }
        let scope = Scope::disk(reach.of(self.scope_config.clone())).map_err(BuildError::Scope)?;
        let backend = Arc::new(self.local());
        let (exec_context, programs) =
            self.exec_context(scope.work_dir().to_owned(), scope.roots())?;
        Ok(Files {
            backend,
            memory_files: MemoryFiles::default(),
            scope,
            exec_context,
            programs,
        })
    }

    /// Creates a virtual tree with absolute paths.
    fn tree(mut self, backing: Backing) -> Result<Files, BuildError> {
        let session = Scope::disk(self.scope_config.clone()).map_err(BuildError::Scope)?;
        let mut work_dir = session.work_dir().to_owned();
        let called = std::mem::take(&mut self.called).into_iter();
        let called = called.chain([self.scope_config.work_dir.clone()]);
        let called = called.map(|name| (name, work_dir.clone())).collect();
        let mut roots = session.roots();
        // Files protected in the work folder are protected through every mount.
        for folder in roots.iter().chain([&work_dir]) {
            let names = ["haft.yaml", ".git/config", ".git/hooks"];
            self.scope_config
                .protect
                .extend(names.map(|name| folder.join(name)));
        }
        let mut mounts = Vec::new();
        match backing {
            Backing::Routes(routes) => {
                let mut routes = routes;
                if !routes.iter().any(|(at, _)| at.trim_matches('/').is_empty()) {
                    routes.push(("/".to_owned(), Backing::Disk(Disk::default())));
                }
                for (at, backing) in routes {
                    let at = route(&at)?;
                    if mounts.iter().any(|mount: &Mount| mount.at == at) {
                        let at = at.display().to_string();
                        return Err(BuildError::Route(at, "is given twice".to_owned()));
                    }
                    mounts.push(self.mount(at, backing)?);
                }
            }
            Backing::Disk(disk) if disk.naming == Naming::Real => {
                let largest = disk.largest;
                let first = self.mount("/".into(), Backing::Disk(disk))?;
                first.scope.work_dir().clone_into(&mut work_dir);
                let folders = [vec![work_dir.clone()], session.roots()].concat();
                for root in folders {
                    let disk = Disk {
                        root: Some(root.clone()),
                        naming: Naming::Virtual,
                        largest,
                    };
                    mounts.push(self.mount(root, Backing::Disk(disk))?);
                }
            }
            backing => mounts.push(self.mount("/".into(), backing)?),
        }
        // Commands start in the folder at the root of the tree, if that is on disk. Other
        // folders on disk count as roots.
        for mount in mounts.iter().filter(|mount| mount.scope.is_on_disk()) {
            let folder = mount.scope.work_dir();
            if mount.at == Path::new("/") {
                folder.clone_into(&mut work_dir);
            } else if !folder.starts_with(&work_dir) {
                roots.push(folder.to_owned());
            }
        }
        if let Some(outputs) = &self.outputs {
            private::folder(outputs).map_err(BuildError::State)?;
            mounts.push(outputs_mount(outputs).map_err(BuildError::Scope)?);
        }
        let (exec_context, programs) = self.exec_context(work_dir.clone(), roots)?;
        let (backend, scope) = Composite::new(mounts, work_dir);
        let mut scope = scope.called(called);
        if exec_context
            .as_ref()
            .is_some_and(|run| run.remote_folder.is_none())
        {
            scope = scope.with_commands();
        }
        Ok(Files {
            backend: Arc::new(backend),
            memory_files: MemoryFiles::default(),
            scope,
            exec_context,
            programs,
        })
    }

    fn mount(&self, at: PathBuf, backing: Backing) -> Result<Mount, BuildError> {
        let (backend, scope): (Arc<dyn Backend>, Scope) = match backing {
            Backing::Own(backend) => (backend, Scope::detached()),
            Backing::Disk(disk) => {
                let root = disk.root.as_deref().unwrap_or(Path::new(""));
                let scope_config = ScopeConfig {
                    work_dir: self.scope_config.work_dir.join(root),
                    roots: Vec::new(),
                    readable: Vec::new(),
                    ..self.scope_config.clone()
                };
                let scope =
                    Scope::disk(Reach::Roots.of(scope_config)).map_err(|error| {
                        match &disk.root {
                            None => BuildError::Scope(error),
                            Some(root) => BuildError::Route(
                                root.display().to_string(),
                                format!("cannot be used: {error}"),
                            ),
                        }
                    })?;
                self.check(root, &scope)?;
                (Arc::new(Limited::new(self.local(), disk.largest)), scope)
            }
            // Parts in memory were created above.
            Backing::State | Backing::Routes(_) => {
                let at = at.display().to_string();
                return Err(BuildError::Route(at, "has routes of its own".to_owned()));
            }
        };
        Ok(Mount {
            at,
            backend,
            scope,
            visibility: Visibility::Listed,
        })
    }

    /// Refuses a root that the work folder could redirect: anyone who may write there could
    /// replace a link in it.
    fn check(&self, root: &Path, scope: &Scope) -> Result<(), BuildError> {
        let work_dir = Scope::disk(self.scope_config.clone()).map_err(BuildError::Scope)?;
        let is_named_inside = !root.is_absolute() || root.starts_with(work_dir.work_dir());
        if is_named_inside
            && root.components().all(|part| part != Component::ParentDir)
            && !scope.work_dir().starts_with(work_dir.work_dir())
        {
            let root = root.display().to_string();
            return Err(BuildError::Route(
                root,
                "leads out of the work folder".to_owned(),
            ));
        }
        Ok(())
    }

    /// Resolves all paths now, for the whole session, so that a link that is changed later
    /// does not let commands reach more than file tools.
    fn exec_context(self, work_dir: PathBuf, roots: Vec<PathBuf>) -> Result<Run, BuildError> {
        let scope_config = ScopeConfig {
            work_dir,
            roots,
            ..self.scope_config
        };
        let moved = self.moved;
        let network = self
            .commands
            .as_ref()
            .map_or(Network::Off, Commands::network);
        // Changes by any program are reported by whichever check comes next.
        let monitor = self.monitor;
        let caches = self.caches;
        let exec_context = |commands: Commands, scope_config: &ScopeConfig| {
            let made = commands.exec_context(scope_config, moved.clone(), &monitor, caches.clone());
            made.map_err(|_| BuildError::NoState)
        };
        let commands = self
            .commands
            .map(|commands| exec_context(commands, &scope_config));
        let commands = commands.transpose()?;
        let mut for_plugins = scope_config.clone();
        // Saved outputs may have been programs that commands created.
        let mut inert = self.inert;
        inert.extend(scope_config.readable.iter().cloned());
        for_plugins.readable.extend(self.programs_read);
        let scratch_only = scratch_only(&for_plugins);
        let plugins = match self.plugins {
            None => None,
            Some(own) => {
                // Caches hold what commands wrote.
                let own = Commands {
                    caches: None,
                    ..own
                };
                Some(Programs {
                    scratch_only: Arc::new(exec_context(
                        own.clone().with_network(Network::Off),
                        &scratch_only,
                    )?),
                    nowhere: scratch_only.work_dir.clone(),
                    guests: Arc::new(exec_context(
                        own.clone().with_network(network),
                        &for_plugins,
                    )?),
                    own: Arc::new(exec_context(own, &for_plugins)?),
                    dir: scope_config.work_dir.clone(),
                    inert,
                    startable: self.startable,
                    changes: Arc::default(),
                    connections: Arc::default(),
                })
            }
        };
        Ok((commands, plugins))
    }
}

/// Settings for running commands, and for running tool programs and plugins.
type Run = (Option<ExecContext>, Option<Programs>);

/// Mounts the session's saved outputs: read-only, and not listed.
fn outputs_mount(outputs: &Path) -> haft_ops::Result<Mount> {
    let scope_config = ScopeConfig {
        work_dir: outputs.to_owned(),
        roots: Vec::new(),
        readable: Vec::new(),
        home: None,
        git_configs: Vec::new(),
        own: Vec::new(),
        protect: Vec::new(),
        temp: None,
        rules: FileRules {
            reading: Reading::Roots,
            writing: Writing::Nothing,
        },
    };
    Ok(Mount {
        at: OUTPUTS.into(),
        backend: Arc::new(Local::new()),
        scope: Scope::disk(scope_config)?,
        visibility: Visibility::ByNameOnly,
    })
}

/// Returns a route as an absolute path without `.` and `..`.
fn route(at: &str) -> Result<PathBuf, BuildError> {
    let path = Path::new(at);
    let wrong = |why: &str| Err(BuildError::Route(at.to_owned(), why.to_owned()));
    let plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    if !path.is_absolute() {
        return wrong("must begin with /");
    }
    if !path.components().all(plain) || at.contains('\0') {
        return wrong("must be a plain path");
    }
    if path.starts_with("/.haft") {
        return wrong("is reserved for saved outputs");
    }
    Ok(path.components().collect())
}

/// Returns the places for programs that need no files: a private scratch folder and what
/// the system needs to start them. With the sandbox off, they can reach everything.
fn scratch_only(scope_config: &ScopeConfig) -> ScopeConfig {
    let mut scratch_only = scope_config.clone();
    if crate::commands::is_off(scope_config.rules) {
        return scratch_only;
    }
    scratch_only.rules = scratch_only.rules.tightened(FileRules {
        reading: Reading::RootsAndSystem,
        writing: Writing::Nothing,
    });
    scratch_only.roots.clear();
    scratch_only.protect.clear();
    if let Some(temp) = &mut scratch_only.temp {
        temp.folder.as_mut_os_string().push("-alone");
    }
    // A program has to start somewhere; this folder shows it nothing new.
    scratch_only.work_dir = PathBuf::from("/usr/bin");
    scratch_only
}

/// Returns the disk, after removing what killed processes left behind.
fn local(state: Option<&Path>) -> Local {
    match state {
        None => Local::new(),
        Some(state) => {
            let litter = Litter::new(state.join("litter"));
            litter.sweep();
            Local::with_litter(litter)
        }
    }
}

/// Makes protected paths absolute before anything depends on them.
pub(super) fn protected(protect: Vec<PathBuf>, work_dir: &Path) -> Vec<PathBuf> {
    let work_dir = absolute(work_dir);
    let named = protect
        .into_iter()
        .filter(|path| !path.as_os_str().is_empty());
    named.map(|path| work_dir.join(path)).collect()
}
