//! The confinement of a session's commands, computed once as far as possible.

use super::ExecContext;
use super::caches::OpenCaches;
use super::denied_paths::{self, DeniedPaths, SearchCache};
use super::findings::{Baseline, Finding};
use super::monitor::Monitor;
use super::network::OpenNetwork;
use super::state;
use super::survey::{self, Names};
use crate::blocking::{self, Weight};
use crate::executor::sandbox::{self, Confinement, Enforcement, Helper, Level, Plan, Request};
use crate::executor::{Program, Refusal};
use crate::git::{self, ConfigGate, Controls, Registry};
use crate::scope::{self, Identity, PathFilter, Root};
use crate::{Result, private};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Confines the commands of a session.
#[derive(Debug)]
pub struct Sandbox {
    helper: Helper,
    request: Request,
    /// Folder for files that a command created at protected paths.
    moved_out: Option<PathBuf>,
    /// Enforcement that this machine provides. Probing takes longer than a command, so the first command
    /// assumes full enforcement. If the machine cannot provide it, that command does not
    /// run, and the machine is probed.
    enforcement: Mutex<Known>,
    monitor: Arc<Monitor>,
    /// The repositories of each root. Searched when the first command runs, because most
    /// interactive sessions run none.
    repositories: Vec<Arc<Registry>>,
    /// The work folder and the roots as the session opened them, since their paths may lead
    /// elsewhere later. `None` if one could not be opened.
    opened: Vec<Option<Root>>,
    names: Arc<Mutex<Names>>,
    /// Cache for finding denied paths.
    search_cache: Arc<Mutex<SearchCache>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Known {
    Assumed(Enforcement),
    Found(Enforcement),
}

impl Sandbox {
    /// Creates a sandbox that confines commands as `request` says. Its `repositories` are
    /// searched when the first command runs.
    #[must_use]
    pub fn new(helper: Helper, request: Request, moved_out: Option<PathBuf>) -> Self {
        let mut request = request;
        let real = |path: PathBuf| scope::real(&path).unwrap_or(path);
        request.roots = roots(&request).drain(1..).map(real).collect();
        request.work_dir = real(request.work_dir);
        let roots = roots(&request);
        Self {
            opened: roots
                .iter()
                .map(|root| Root::open(root.clone()).ok())
                .collect(),
            helper,
            request,
            moved_out,
            enforcement: Mutex::new(Known::Assumed(sandbox::most())),
            monitor: Arc::default(),
            repositories: roots.iter().map(|root| Registry::of(root)).collect(),
            names: Arc::default(),
            search_cache: Arc::default(),
        }
    }

    /// Returns the same confinement without network.
    #[must_use]
    pub fn without_network(&self) -> Self {
        let mut request = self.request.clone();
        request.network = sandbox::Network::Off;
        Self::new(self.helper.clone(), request, self.moved_out.clone()).with_monitor(&self.monitor)
    }

    /// Returns the same confinement with more folders that commands may write.
    #[must_use]
    pub fn with_folders(&self, folders: &[PathBuf]) -> Self {
        let mut request = self.request.clone();
        request.roots.extend_from_slice(folders);
        Self::new(self.helper.clone(), request, self.moved_out.clone()).with_monitor(&self.monitor)
    }

    /// Uses the monitor that the session's other sandboxes share.
    #[must_use]
    pub fn with_monitor(self, monitor: &Arc<Monitor>) -> Self {
        Self {
            monitor: Arc::clone(monitor),
            ..self
        }
    }

    /// Returns what the machine enforces, and probes it if necessary.
    pub async fn enforcement(&self) -> Enforcement {
        if let Known::Found(found) = &*lock(&self.enforcement) {
            return found.clone();
        }
        let helper = self.helper.clone();
        let found = self.find(move || sandbox::probe_now(&helper)).await;
        found.unwrap_or_else(|reason| Enforcement::None { reason })
    }

    /// Whether commands can open network sockets at all, as far as that is known. Without
    /// namespaces they cannot, unless they have the whole network.
    #[must_use]
    pub fn has_sockets(&self) -> bool {
        let known = lock(&self.enforcement);
        let (Known::Assumed(enforcement) | Known::Found(enforcement)) = &*known;
        let is_full = matches!(enforcement, Enforcement::Full { .. });
        is_full || self.request.network == sandbox::Network::On
    }

    /// Returns the paths and network that commands may use.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    pub(super) fn moved_out(&self) -> Option<&Path> {
        self.moved_out.as_deref()
    }

    /// Records the current states of the paths that are checked after a command.
    pub(super) fn baseline(&self, confined: &Confined) -> Baseline {
        let gate = Arc::clone(&confined.gate);
        Baseline::record(&confined.confinement, &self.repositories, gate)
    }

    pub(super) fn monitor(&self) -> &Arc<Monitor> {
        &self.monitor
    }

    /// Returns the changes since the last check, by processes that commands left running.
    pub(super) fn since_last(&self) -> Vec<Finding> {
        self.monitor.since_last(self.moved_out())
    }

    /// Checks, once, the changes made by sessions that were killed in this work folder.
    pub(super) async fn recall(&self) {
        self.monitor.recall(self.moved_out()).await;
    }

    /// Refuses to run a command while a protected path holds something that could not be
    /// moved away.
    fn check_stuck(&self, program: &Program) -> Result<()> {
        let Some(path) = self.monitor.stuck() else {
            return Ok(());
        };
        let detail = format!(
            "something at the protected path {} could not be moved away",
            path.display()
        );
        Err(crate::executor::cannot(program, Refusal::Stuck, detail))
    }

    /// Returns the confinement of one command, and what the preparation noticed.
    pub(super) async fn confine(
        &self,
        program: &Program,
        context: &ExecContext,
    ) -> Result<Confined> {
        self.recall().await;
        self.check_stuck(program)?;
        let enforcement = match &*lock(&self.enforcement) {
            Known::Assumed(enforcement) | Known::Found(enforcement) => enforcement.clone(),
        };
        let refused = |error: sandbox::Error| {
            crate::executor::cannot(program, Refusal::Unconfined, error.to_string())
        };
        let mut strength = enforcement.strength().map_err(refused)?;
        let mut enforcement = enforcement;
        let mut network = None;
        if self.request.network == sandbox::Network::Session && strength.level == Level::Full {
            match context.network.open(&self.helper).await {
                Ok(opened) => network = Some(opened),
                Err(error) if error.is_passing() => {
                    let detail = error.to_string();
                    return Err(crate::executor::cannot(program, Refusal::Busy, detail));
                }
                // The machine has no namespaces, or none any more.
                Err(error) => {
                    let helper = self.helper.clone();
                    let found = self.find(move || sandbox::probe_anew(&helper)).await;
                    enforcement = found.map_err(|reason| {
                        crate::executor::cannot(program, Refusal::Busy, reason)
                    })?;
                    strength = enforcement.strength().map_err(refused)?;
                    if strength.level == Level::Full {
                        return Err(refused(error));
                    }
                }
            }
        }
        let folders = self.folders();
        self.check(folders.iter().map(|folder| scope::identity_of(folder)))?;
        for folder in &folders {
            check_listable(folder, program)?;
        }
        let failed_looks = scope::shut::failed_looks();
        let isolation = context.isolation.as_ref();
        let temp = isolation.map_or(&self.request.temp, |isolation| &isolation.temp);
        private::folder(temp).map_err(|source| {
            let folder = temp.display();
            let detail = format!("cannot create the temp folder {folder}: {source}");
            crate::executor::cannot(program, Refusal::Unconfined, detail)
        })?;
        // Only existing folders are hidden. If the home is a work folder, a command could
        // otherwise create haft's own settings.
        let own = self.request.own.iter();
        for own in own.filter(|own| own.ends_with("haft") && self.is_in_roots(own)) {
            private::folder(own).map_err(|source| {
                let detail = format!("haft's own folder {}: {source}", own.display());
                crate::executor::cannot(program, Refusal::Unconfined, detail)
            })?;
        }
        if isolation.is_some() {
            lock(&self.names).hold(temp);
        }
        let denied = match &context.filter {
            Some(filter) => self.denied_paths(program, Arc::clone(filter)).await?,
            None => DeniedPaths::default(),
        };
        // If the link were removed, the search would no longer find its target.
        let mut protect = self.request.protect.clone();
        protect.extend(denied.links);
        let (mut repositories, noticed) = self.survey().await?.map_err(|root| {
            let root = root.display();
            let detail = format!(
                "{root} could not be listed, so haft cannot find what to protect in it; try again"
            );
            crate::executor::cannot(program, Refusal::Unconfined, detail)
        })?;
        let earlier = self.monitor.protected().into_iter();
        repositories
            .paths
            .extend(earlier.filter(|path| state::may_be_there(path)));
        let request = Request {
            protect,
            denied: denied.paths.into_iter().collect(),
            repositories,
            temp: temp.clone(),
            execution: match isolation {
                Some(isolation) => isolation.execution.clone(),
                None => self.request.execution.clone(),
            },
            ..self.request.clone()
        };
        let mut plan = Plan::new(&request).map_err(refused)?;
        if scope::shut::failed_looks() != failed_looks {
            let detail = "a process keeps taking away the permissions of a folder, so haft cannot \
                          find what to protect in it; end that process, then try again";
            let detail = detail.to_owned();
            return Err(crate::executor::cannot(
                program,
                Refusal::Unconfined,
                detail,
            ));
        }
        let caches = match &context.caches {
            Some(caches) if isolation.is_none() => {
                caches
                    .open(&self.helper, strength.level, &self.request)
                    .await
            }
            _ => None,
        };
        if let Some(caches) = &caches {
            caches.add_to(&mut plan).map_err(refused)?;
        }
        self.monitor.remember_protected(plan.protected());
        // These are the identities that the supervisor will insist on.
        self.check(plan.found().map(|(_, found)| Some(found)))?;
        let watched = plan.watched().iter().map(|watched| &watched.path);
        let missing = watched.filter(|path| git::is_missing_control(path));
        let gate = Arc::new(ConfigGate::new(
            plan.configs().iter().cloned(),
            missing.cloned(),
        ));
        Ok(Confined {
            gate,
            confinement: Confinement { strength, plan },
            enforcement,
            noticed,
            network,
            caches,
        })
    }

    /// Checks that these are the folders that the session opened.
    fn check(&self, found: impl Iterator<Item = Option<Identity>>) -> Result<()> {
        for ((folder, opened), found) in self.folders().iter().zip(&self.opened).zip(found) {
            match opened {
                Some(opened) => opened.is_still(found)?,
                None => return Err(scope::moved(folder)),
            }
        }
        Ok(())
    }

    /// Returns the paths that rules deny to a command that is about to start.
    async fn denied_paths(
        &self,
        program: &Program,
        filter: Arc<dyn PathFilter>,
    ) -> Result<DeniedPaths> {
        let roots = self.folders();
        let found = Arc::clone(&self.search_cache);
        let looked = blocking::run(Weight::Heavy, move || {
            let roots: Vec<PathBuf> = roots
                .iter()
                .filter_map(|root| crate::scope::real(root))
                .collect();
            Ok(denied_paths::find(&*filter, &roots, &mut lock(&found)))
        });
        let refused = |detail| crate::executor::cannot(program, Refusal::CannotHide, detail);
        looked.await?.map_err(refused)
    }

    /// Returns the work folder and the roots.
    fn folders(&self) -> Vec<PathBuf> {
        roots(&self.request)
    }

    fn is_in_roots(&self, path: &Path) -> bool {
        self.folders().iter().any(|root| path.starts_with(root))
    }

    /// Returns the confinement after the machine refused the assumed one, or `None` if it
    /// offers no other.
    pub(super) async fn confine_anew(
        &self,
        program: &Program,
        context: &ExecContext,
        refused: &Enforcement,
    ) -> Result<Option<Confined>> {
        let helper = self.helper.clone();
        let now = self.find(move || sandbox::probe_anew(&helper)).await;
        let now = now.map_err(|reason| crate::executor::cannot(program, Refusal::Busy, reason))?;
        if now == *refused {
            return Ok(None);
        }
        self.confine(program, context).await.map(Some)
    }

    /// Probes what the machine enforces. If the probe fails, the next command repeats it.
    async fn find(
        &self,
        look: impl FnOnce() -> Result<Enforcement, String> + Send + 'static,
    ) -> Result<Enforcement, String> {
        let looked = blocking::run(Weight::Heavy, move || Ok(look())).await;
        let found = looked.unwrap_or_else(|error| Err(error.to_string()))?;
        match &found {
            Enforcement::Full { .. } => tracing::info!("{found}"),
            // Never silent: the user should know.
            lower => tracing::warn!(target: "haft", "{lower} (`haft doctor` says more)"),
        }
        *lock(&self.enforcement) = Known::Found(found.clone());
        Ok(found)
    }

    /// Returns the files below the roots that control git, other names of protected files,
    /// and what the search noticed; or the root that could not be listed.
    async fn survey(&self) -> Result<Result<(Controls, Vec<Finding>), PathBuf>> {
        let repositories = self.repositories.clone();
        let names = Arc::clone(&self.names);
        let request = self.request.clone();
        blocking::run(Weight::Heavy, move || {
            Ok(survey::run(&repositories, &request, &mut lock(&names)))
        })
        .await
    }
}

/// Confinement of one command.
pub(super) struct Confined {
    pub(super) confinement: Confinement,
    /// Git configurations that it may change as far as that is harmless.
    pub(super) gate: Arc<ConfigGate>,
    pub(super) enforcement: Enforcement,
    /// Findings since the last command, to report with this one.
    pub(super) noticed: Vec<Finding>,
    /// The network to join.
    pub(super) network: Option<Arc<OpenNetwork>>,
    /// The caches that it uses.
    pub(super) caches: Option<Arc<OpenCaches>>,
}

/// Refuses to work in a folder of this user that cannot be listed: repositories in it would
/// not be found, and a command could open it.
fn check_listable(folder: &Path, program: &Program) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, folder, flags, Mode::empty());
    let is_shut = opened.err() == Some(Errno::ACCESS);
    if !is_shut || scope::shut::shut_folder(&folder.join(".git")).is_none() {
        return Ok(());
    }
    let folder = folder.display();
    let detail = format!(
        "{folder} cannot be listed, so haft cannot find what to protect in it; run `chmod u+rwx {folder}`"
    );
    Err(crate::executor::cannot(
        program,
        Refusal::Unconfined,
        detail,
    ))
}

/// Returns the work folder and the other roots.
pub(super) fn roots(request: &Request) -> Vec<PathBuf> {
    let Request {
        work_dir, roots, ..
    } = request;
    std::iter::once(work_dir.clone())
        .chain(roots.iter().map(|root| work_dir.join(root)))
        .collect()
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
