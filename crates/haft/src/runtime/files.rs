//! Where the files of a session live, and what its commands see of them.

use super::build::{BuildError, absolute};
use super::held::HeldFiles;
use crate::commands::Commands;
use crate::external::plugin::Programs;
use crate::toolset::{Paths, Reach, Toolset};
use haft_ops::backend::local::{Litter, Local};
use haft_ops::backend::{Composite, Limited, Mount};
use haft_ops::exec::{Surroundings, Vigil};
use haft_ops::executor::sandbox::Network;
use haft_ops::scope::{FileRules, Places, Reading, Seen, Writing};
use haft_ops::{Backend, Scope, private};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The folder of a virtual tree that has the outputs of the session.
pub(super) const OUTPUTS: &str = "/.haft/outputs";

/// How much a session holds in memory, at each place that is to be there.
const STATE: u64 = 256 << 20;

/// Where the files of a session live.
#[derive(Clone)]
pub enum Backing {
    /// On this machine's disk.
    Disk(Disk),
    /// In a backend of its own; paths start at its root.
    Own(Arc<dyn Backend>),
    /// In memory, as long as the session.
    State,
    /// Each path of a tree in another one. The longest that fits decides, and is
    /// taken off; what none fits is in the work folder.
    Routes(Vec<(String, Backing)>),
}

/// A folder of the disk as the place of files.
#[derive(Debug, Clone)]
pub struct Disk {
    /// The folder; the work folder if there is none.
    pub root: Option<PathBuf>,
    /// How paths name what is in it, in a toolset of absolute paths.
    pub naming: Naming,
    /// The largest file that such a toolset reads, in bytes.
    pub largest: u64,
}

/// How absolute paths name the files of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// From the folder: `/a` is `a` in it.
    Virtual,
    /// As the machine does: the folder's own path comes first.
    Real,
}

impl Disk {
    /// Files up to 10 MB are read.
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
    /// In memory, as long as the session.
    #[must_use]
    pub fn state() -> Self {
        Self::State
    }

    /// With memory in the places where files are to be in it.
    fn made(self, at: &str, held: &mut HeldFiles) -> Self {
        match self {
            Self::State => Self::Own(held.place(at, STATE)),
            Self::Routes(routes) => Self::Routes(
                routes
                    .into_iter()
                    .map(|(at, backing)| {
                        let made = backing.made(&at, held);
                        (at, made)
                    })
                    .collect(),
            ),
            other => other,
        }
    }

    /// Whether each session has files of its own there.
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

/// What a session is made from, as far as files are concerned.
#[derive(Clone)]
pub(super) struct Ground {
    /// The folders and rules, for commands as the mode says.
    pub(super) places: Places,
    /// Other paths of the work folder, through links.
    pub(super) called: Vec<PathBuf>,
    pub(super) outputs: Option<PathBuf>,
    /// Where what commands must not leave behind is put.
    pub(super) moved: Option<PathBuf>,
    pub(super) state: Option<PathBuf>,
    pub(super) commands: Option<Commands>,
    /// How plugins are run, when there are any.
    pub(super) plugins: Option<Commands>,
    /// What plugins may read wherever it lies: themselves.
    pub(super) programs_read: Vec<PathBuf>,
    /// Where the person's own programs start none from, beside the roots.
    pub(super) inert: Vec<PathBuf>,
    pub(super) startable: Vec<PathBuf>,
    /// What is watched in this session and those beside it.
    pub(super) vigil: Arc<Vigil>,
}

/// The files of a session.
pub(super) struct Files {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) scope: Scope,
    /// Those of them that are in memory.
    pub(super) held: HeldFiles,
    pub(super) surroundings: Option<Surroundings>,
    /// How plugins are run, and where.
    pub(super) plugins: Option<Programs>,
}

impl Ground {
    /// Makes them, as the toolset writes paths.
    pub(super) fn files(self, backing: Backing, toolset: &Toolset) -> Result<Files, BuildError> {
        let mut held = HeldFiles::default();
        let files = match (toolset.paths, backing.made("/", &mut held)) {
            (Paths::Virtual, backing) => self.tree(backing)?,
            (_, Backing::Own(backend)) => {
                let (dir, roots) = (self.places.work_dir.clone(), self.places.roots.clone());
                Files {
                    backend,
                    held: HeldFiles::default(),
                    scope: Scope::detached(),
                    surroundings: None,
                    plugins: self.surroundings(dir, roots)?.1,
                }
            }
            (_, Backing::Disk(Disk { root, .. })) => self.disk(root, toolset.reach)?,
            (_, Backing::State | Backing::Routes(_)) => {
                return Err(BuildError::Routes(toolset.name));
            }
        };
        Ok(Files { held, ..files })
    }

    fn local(&self) -> Local {
        local(self.state.as_deref())
    }

    fn disk(mut self, root: Option<PathBuf>, reach: Reach) -> Result<Files, BuildError> {
        if let Some(root) = root {
            self.places.work_dir = self.places.work_dir.join(root);
        }
        let scope = Scope::disk(reach.of(self.places.clone())).map_err(BuildError::Scope)?;
        let backend = Arc::new(self.local());
        let (surroundings, plugins) =
            self.surroundings(scope.work_dir().to_owned(), scope.roots())?;
        Ok(Files {
            backend,
            held: HeldFiles::default(),
            scope,
            surroundings,
            plugins,
        })
    }

    /// One tree of absolute paths.
    fn tree(mut self, backing: Backing) -> Result<Files, BuildError> {
        let session = Scope::disk(self.places.clone()).map_err(BuildError::Scope)?;
        let mut work_dir = session.work_dir().to_owned();
        let called = std::mem::take(&mut self.called).into_iter();
        let called = called.chain([self.places.work_dir.clone()]);
        let called = called.map(|name| (name, work_dir.clone())).collect();
        let mut roots = session.roots();
        // What is protected in the work folder is so through every mount.
        for folder in roots.iter().chain([&work_dir]) {
            let names = ["haft.yaml", ".git/config", ".git/hooks"];
            self.places
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
                        return Err(BuildError::Route(at, "is there twice".to_owned()));
                    }
                    mounts.push(self.mount(at, backing)?);
                }
            }
            Backing::Disk(disk) if disk.naming == Naming::Real => {
                let largest = disk.largest;
                let first = self.mount("/".into(), Backing::Disk(disk))?;
                first.scope.work_dir().clone_into(&mut work_dir);
                let places = [vec![work_dir.clone()], session.roots()].concat();
                for root in places {
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
        // Commands work where the tree begins, when that is on the disk, and in its
        // other folders as in roots.
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
            mounts.push(kept(outputs).map_err(BuildError::Scope)?);
        }
        let (surroundings, plugins) = self.surroundings(work_dir.clone(), roots)?;
        let (backend, scope) = Composite::new(mounts, work_dir);
        let mut scope = scope.called(called);
        if surroundings
            .as_ref()
            .is_some_and(|run| run.elsewhere.is_none())
        {
            scope = scope.with_commands();
        }
        Ok(Files {
            backend: Arc::new(backend),
            held: HeldFiles::default(),
            scope,
            surroundings,
            plugins,
        })
    }

    fn mount(&self, at: PathBuf, backing: Backing) -> Result<Mount, BuildError> {
        let (backend, scope): (Arc<dyn Backend>, Scope) = match backing {
            Backing::Own(backend) => (backend, Scope::detached()),
            Backing::Disk(disk) => {
                let root = disk.root.as_deref().unwrap_or(Path::new(""));
                let places = Places {
                    work_dir: self.places.work_dir.join(root),
                    roots: Vec::new(),
                    readable: Vec::new(),
                    ..self.places.clone()
                };
                let scope =
                    Scope::disk(Reach::Roots.of(places)).map_err(|error| match &disk.root {
                        None => BuildError::Scope(error),
                        Some(root) => BuildError::Route(
                            root.display().to_string(),
                            format!("cannot be used: {error}"),
                        ),
                    })?;
                self.check(root, &scope)?;
                (Arc::new(Limited::new(self.local(), disk.largest)), scope)
            }
            // What is to be in memory was made above.
            Backing::State | Backing::Routes(_) => {
                let at = at.display().to_string();
                return Err(BuildError::Route(at, "has routes of its own".to_owned()));
            }
        };
        Ok(Mount {
            at,
            backend,
            scope,
            seen: Seen::FromAbove,
        })
    }

    /// Whoever may write in the work folder could make a link in it lead anywhere.
    fn check(&self, root: &Path, scope: &Scope) -> Result<(), BuildError> {
        let work_dir = Scope::disk(self.places.clone()).map_err(BuildError::Scope)?;
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

    /// As they are now, for as long as the session lasts: a link that is changed
    /// later leads commands no further than file tools.
    fn surroundings(self, work_dir: PathBuf, roots: Vec<PathBuf>) -> Result<Run, BuildError> {
        let places = Places {
            work_dir,
            roots,
            ..self.places
        };
        let moved = self.moved;
        let network = self
            .commands
            .as_ref()
            .map_or(Network::Off, Commands::network);
        // What a program does is told by whoever looks next.
        let vigil = self.vigil;
        let surroundings = |commands: Commands, places: &Places| {
            let made = commands.surroundings(places, moved.clone(), &vigil);
            made.map_err(|_| BuildError::NoState)
        };
        let commands = self
            .commands
            .map(|commands| surroundings(commands, &places));
        let commands = commands.transpose()?;
        let mut for_plugins = places.clone();
        // Outputs may have been programs of commands.
        let mut inert = self.inert;
        inert.extend(places.readable.iter().cloned());
        for_plugins.readable.extend(self.programs_read);
        let alone = alone(&for_plugins);
        let plugins = match self.plugins {
            None => None,
            Some(own) => Some(Programs {
                alone: Arc::new(surroundings(
                    own.clone().with_network(Network::Off),
                    &alone,
                )?),
                nowhere: alone.work_dir.clone(),
                guests: Arc::new(surroundings(
                    own.clone().with_network(network),
                    &for_plugins,
                )?),
                own: Arc::new(surroundings(own, &for_plugins)?),
                dir: places.work_dir.clone(),
                inert,
                startable: self.startable,
            }),
        };
        Ok((commands, plugins))
    }
}

/// How commands are run; how programs are that are tools or bring some.
type Run = (Option<Surroundings>, Option<Programs>);

/// The outputs of the session: read, never written, and met by name only.
fn kept(outputs: &Path) -> haft_ops::Result<Mount> {
    let places = Places {
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
        scope: Scope::disk(places)?,
        seen: Seen::ByNameOnly,
    })
}

/// A route as an absolute path without detours.
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
        return wrong("is where kept outputs are");
    }
    Ok(path.components().collect())
}

/// The places of programs that have no files: a scratch folder of their own, and what
/// the system needs to start them. With the sandbox off they are kept from nothing.
fn alone(places: &Places) -> Places {
    let mut alone = places.clone();
    if crate::commands::is_off(places.rules) {
        return alone;
    }
    alone.rules = alone.rules.tightened(FileRules {
        reading: Reading::RootsAndSystem,
        writing: Writing::Nothing,
    });
    alone.roots.clear();
    alone.protect.clear();
    if let Some(temp) = &mut alone.temp {
        temp.folder.as_mut_os_string().push("-alone");
    }
    // A program has to run somewhere: here it sees nothing that it would not anyway.
    alone.work_dir = PathBuf::from("/usr/bin");
    alone
}

/// The disk, with what killed processes left behind cleaned up.
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

/// A folder of the person's, made absolute before anything depends on it.
pub(super) fn protected(protect: Vec<PathBuf>, work_dir: &Path) -> Vec<PathBuf> {
    let work_dir = absolute(work_dir);
    let named = protect
        .into_iter()
        .filter(|path| !path.as_os_str().is_empty());
    named.map(|path| work_dir.join(path)).collect()
}
