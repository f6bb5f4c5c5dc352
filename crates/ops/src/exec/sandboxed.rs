//! What confines the commands of a session, worked out once as far as it can be.

use super::Surroundings;
use super::closed::{self, Covered, Found};
use super::state;
use super::tidy::tidy;
use super::touched::{Before, Touched};
use super::vigil::Vigil;
use crate::blocking::{self, Weight};
use crate::executor::sandbox::{self, Confinement, Enforcement, Helper, Plan, Request};
use crate::executor::{Program, Refusal};
use crate::git::{self, Controls, Register, Since};
use crate::private::Held;
use crate::scope::{self, Closing, Identity, Root};
use crate::{Result, private};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What confines the commands of a session.
#[derive(Debug)]
pub struct Sandbox {
    helper: Helper,
    request: Request,
    /// Where goes what a command made at a protected place.
    moved_out: Option<PathBuf>,
    /// What the machine enforces. To find out takes longer than a command, so the
    /// first one is told to put on all there is: if the machine cannot, that one
    /// does not run, and then it is found out.
    enforcement: Mutex<Known>,
    vigil: Arc<Vigil>,
    /// The repositories of each root. Walked at the first command: most sessions of
    /// a person run none.
    repositories: Vec<Arc<Register>>,
    /// The work folder and the roots as the session began with them. Their names could
    /// be made to lead elsewhere since; one that could not be opened is none.
    opened: Vec<Option<Root>>,
    names: Arc<Mutex<Names>>,
    /// What was found of what rules close.
    found: Arc<Mutex<Found>>,
}

/// Other names of protected files, as they were last found.
#[derive(Debug, Default)]
struct Names {
    is_tidied: bool,
    /// The private temp folders in use, locked so that no other session removes them.
    held: HashMap<PathBuf, Held>,
    /// Of what the person protects, which is looked through once.
    listed: Option<git::Sought>,
    sought: git::Sought,
    found: Vec<PathBuf>,
}

impl Names {
    /// Locks a temp folder for as long as the session lasts.
    fn hold(&mut self, temp: &Path) {
        if self.held.contains_key(temp) {
            return;
        }
        match Held::new(temp) {
            Ok(held) => _ = self.held.insert(temp.to_owned(), held),
            Err(error) => tracing::warn!(%error, "the private temp folder cannot be locked"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Known {
    Assumed(Enforcement),
    Found(Enforcement),
}

impl Sandbox {
    /// Confines commands as the request says. Its `repositories` are looked for
    /// at the first command.
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
            vigil: Arc::default(),
            repositories: roots.iter().map(|root| Register::of(root)).collect(),
            names: Arc::default(),
            found: Arc::default(),
        }
    }

    /// The same, with one eye on what others in the session left running.
    #[must_use]
    pub fn watching(self, vigil: &Arc<Vigil>) -> Self {
        Self {
            vigil: Arc::clone(vigil),
            ..self
        }
    }

    /// What the machine enforces.
    pub async fn enforcement(&self) -> Enforcement {
        if let Known::Found(found) = &*lock(&self.enforcement) {
            return found.clone();
        }
        let helper = self.helper.clone();
        let found = self.find(move || sandbox::probe_now(&helper)).await;
        found.unwrap_or_else(|reason| Enforcement::None { reason })
    }

    /// What commands may reach.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    pub(super) fn moved_out(&self) -> Option<&Path> {
        self.moved_out.as_deref()
    }

    /// How the places are now that are looked at after a command.
    pub(super) fn look(&self, confinement: &Confinement) -> Before {
        Before::look(confinement, &self.repositories)
    }

    /// What is watched in the session.
    pub(super) fn vigil(&self) -> &Arc<Vigil> {
        &self.vigil
    }

    /// What was touched since a command ended, by what it left running.
    pub(super) fn since_last(&self) -> Vec<Touched> {
        self.vigil.since_last(self.moved_out())
    }

    /// Looks at what sessions left that were killed in this work folder, once.
    pub(super) async fn recall(&self) {
        self.vigil.recall(self.moved_out()).await;
    }

    /// No command runs while something is at a protected place that could not be moved
    /// out of the way.
    fn check_stuck(&self, program: &Program) -> Result<()> {
        let Some(path) = self.vigil.stuck() else {
            return Ok(());
        };
        let detail = format!(
            "something is at {}, which is protected, and could not be moved out of the way",
            path.display()
        );
        Err(crate::executor::cannot(program, Refusal::Stuck, detail))
    }

    /// The confinement of one command, and what was noticed on the way.
    pub(super) async fn confine(
        &self,
        program: &Program,
        surroundings: &Surroundings,
    ) -> Result<Confined> {
        self.recall().await;
        self.check_stuck(program)?;
        let enforcement = match &*lock(&self.enforcement) {
            Known::Assumed(enforcement) | Known::Found(enforcement) => enforcement.clone(),
        };
        let refused = |error: sandbox::Error| {
            crate::executor::cannot(program, Refusal::Unconfined, error.to_string())
        };
        let strength = enforcement.strength().map_err(refused)?;
        let folders = self.folders();
        self.check(folders.iter().map(|folder| scope::identity_of(folder)))?;
        for folder in &folders {
            check_listable(folder, program)?;
        }
        let apart = surroundings.apart.as_ref();
        let temp = apart.map_or(&self.request.temp, |apart| &apart.temp);
        private::folder(temp).map_err(|source| {
            let folder = temp.display();
            let detail = format!("no folder for temporary files, {folder}: {source}");
            crate::executor::cannot(program, Refusal::Unconfined, detail)
        })?;
        // Covered only if they are there: in a home that is a work folder, a command
        // could make haft's own settings.
        let own = self.request.own.iter();
        for own in own.filter(|own| own.ends_with("haft") && self.is_in_roots(own)) {
            private::folder(own).map_err(|source| {
                let detail = format!("haft's own folder {}: {source}", own.display());
                crate::executor::cannot(program, Refusal::Unconfined, detail)
            })?;
        }
        if apart.is_some() {
            lock(&self.names).hold(temp);
        }
        let closed = match &surroundings.closing {
            Some(closing) => self.closed(program, Arc::clone(closing)).await?,
            None => Covered::default(),
        };
        // What a removed link led to would be found no more.
        let mut protect = self.request.protect.clone();
        protect.extend(closed.links);
        let (mut repositories, noticed) = self.survey().await?;
        let earlier = self.vigil.protected().into_iter();
        repositories
            .paths
            .extend(earlier.filter(|path| state::may_be_there(path)));
        let request = Request {
            protect,
            closed: closed.paths.into_iter().collect(),
            repositories,
            temp: temp.clone(),
            execution: match apart {
                Some(apart) => apart.execution.clone(),
                None => self.request.execution.clone(),
            },
            ..self.request.clone()
        };
        let plan = Plan::new(&request).map_err(refused)?;
        self.vigil.protects(plan.protected());
        // What the plan found is what the supervisor insists on.
        self.check(plan.found().map(|(_, found)| Some(found)))?;
        Ok(Confined {
            confinement: Confinement { strength, plan },
            enforcement,
            noticed,
        })
    }

    /// Makes sure that these are the folders that the session began with.
    fn check(&self, found: impl Iterator<Item = Option<Identity>>) -> Result<()> {
        for ((folder, opened), found) in self.folders().iter().zip(&self.opened).zip(found) {
            match opened {
                Some(opened) => opened.is_still(found)?,
                None => return Err(scope::moved(folder)),
            }
        }
        Ok(())
    }

    /// What rules close to a command that is about to start.
    async fn closed(&self, program: &Program, closing: Arc<dyn Closing>) -> Result<Covered> {
        let roots = self.folders();
        let found = Arc::clone(&self.found);
        let looked = blocking::run(Weight::Heavy, move || {
            let roots: Vec<PathBuf> = roots
                .iter()
                .filter_map(|root| crate::scope::real(root))
                .collect();
            Ok(closed::paths(&*closing, &roots, &mut lock(&found)))
        });
        let refused = |detail| crate::executor::cannot(program, Refusal::Closed, detail);
        looked.await?.map_err(refused)
    }

    /// The work folder and the roots.
    fn folders(&self) -> Vec<PathBuf> {
        roots(&self.request)
    }

    fn is_in_roots(&self, path: &Path) -> bool {
        self.folders().iter().any(|root| path.starts_with(root))
    }

    /// The confinement after the machine refused the one it was thought to be
    /// capable of; none if nothing else is to be had.
    pub(super) async fn confine_anew(
        &self,
        program: &Program,
        surroundings: &Surroundings,
        refused: &Enforcement,
    ) -> Result<Option<Confined>> {
        let helper = self.helper.clone();
        let now = self.find(move || sandbox::probe_anew(&helper)).await;
        let now = now.map_err(|reason| crate::executor::cannot(program, Refusal::Busy, reason))?;
        if now == *refused {
            return Ok(None);
        }
        self.confine(program, surroundings).await.map(Some)
    }

    /// Finds out what the machine enforces. Where that cannot be said just now, the
    /// next command asks again.
    async fn find(
        &self,
        look: impl FnOnce() -> Result<Enforcement, String> + Send + 'static,
    ) -> Result<Enforcement, String> {
        let looked = blocking::run(Weight::Heavy, move || Ok(look())).await;
        let found = looked.unwrap_or_else(|error| Err(error.to_string()))?;
        match &found {
            Enforcement::Full { .. } => tracing::info!("{found}"),
            // Never silent: whoever started this should know.
            lower => tracing::warn!(target: "haft", "{lower} (`haft doctor` says more)"),
        }
        *lock(&self.enforcement) = Known::Found(found.clone());
        Ok(found)
    }

    /// What git obeys below the roots, other names of what is protected, and what was
    /// noticed while that was looked for.
    async fn survey(&self) -> Result<(Controls, Vec<Touched>)> {
        let repositories = self.repositories.clone();
        let names = Arc::clone(&self.names);
        let request = self.request.clone();
        blocking::run(Weight::Heavy, move || {
            Ok(survey(&repositories, &request, &mut lock(&names)))
        })
        .await
    }
}

/// How one command is confined.
pub(super) struct Confined {
    pub(super) confinement: Confinement,
    pub(super) enforcement: Enforcement,
    /// What is to be said of the time since the last command.
    pub(super) noticed: Vec<Touched>,
}

/// Refuses to work in a folder of this user that cannot be listed: repositories in it would
/// not be found, and a command could open it.
fn check_listable(folder: &Path, program: &Program) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, folder, flags, Mode::empty());
    let is_shut = opened.err() == Some(Errno::ACCESS);
    if !is_shut || scope::shut_folder(&folder.join(".git")).is_none() {
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

fn survey(
    repositories: &[Arc<Register>],
    request: &Request,
    names: &mut Names,
) -> (Controls, Vec<Touched>) {
    if !names.is_tidied {
        names.is_tidied = true;
        names.hold(&request.temp);
        tidy(&request.temp);
    }
    let home = request.homes.first().map(PathBuf::as_path);
    let mut noticed = Vec::new();
    let mut places = Controls::default();
    for register in repositories {
        let looked = register.look(Since::Between);
        // Somebody else's are protected from now on, and are no command's work.
        let made = looked.new.into_iter().filter(|_| register.is_busy());
        noticed.extend(made.map(|path| Touched::Repository { path }));
        if let Some(folders) = looked.cut_off {
            tracing::warn!(
                target: "haft",
                "only {folders} folders of {} were searched for repositories", register.root().display()
            );
            let folders = Some(folders);
            noticed.push(Touched::CutOff { folders });
        }
        places.extend(register.guarded(home));
    }
    let roots = roots(request);
    let listed = names.listed.get_or_insert_with(|| {
        let listed = request.protect.iter();
        let listed: Vec<_> = listed.map(|path| request.work_dir.join(path)).collect();
        git::with_other_names(listed.iter().map(PathBuf::as_path))
    });
    let mut files = places.paths.clone();
    for root in &roots {
        files.push(root.join("haft.yaml"));
        files.extend(git::in_folder(root, home).paths);
    }
    let mut sought = git::with_other_names(files.iter().map(PathBuf::as_path));
    sought.extend(listed.iter().copied());
    let known = git::with_other_names(names.found.iter().map(PathBuf::as_path));
    if sought != names.sought || known != sought {
        let mut found = (Vec::new(), true);
        if !sought.is_empty() {
            let mut searched = roots;
            searched.push(request.temp.clone());
            found = git::same_files(&sought, &searched);
        }
        if !found.1 {
            noticed.push(Touched::CutOff { folders: None });
        }
        names.sought = sought;
        names.found = found.0;
    }
    places.paths.extend(names.found.iter().cloned());
    (places, noticed)
}

/// The work folder and the other roots.
fn roots(request: &Request) -> Vec<PathBuf> {
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
