//! What confines the commands of a session, worked out once as far as it can be.

use super::closed::{self, Found};
use super::tidy::tidy;
use super::touched::{Before, Touched};
use crate::blocking::{self, Weight};
use crate::executor::sandbox::{
    self, Confinement, Enforcement, Helper, Plan, Request, probe, repositories,
};
use crate::executor::{Program, Refusal};
use crate::scope::Closing;
use crate::{Result, private};
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
    /// What commands left running could still touch.
    pending: Mutex<Vec<Before>>,
    /// Looked for at the first command: most sessions of a person run none.
    repositories: Mutex<Option<Arc<[PathBuf]>>>,
    /// What was found of what rules close.
    found: Arc<Mutex<Found>>,
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
        Self {
            helper,
            request,
            moved_out,
            enforcement: Mutex::new(Known::Assumed(sandbox::most())),
            pending: Mutex::default(),
            repositories: Mutex::new(None),
            found: Arc::default(),
        }
    }

    /// What the machine enforces.
    pub async fn enforcement(&self) -> Enforcement {
        if let Known::Found(found) = &*lock(&self.enforcement) {
            return found.clone();
        }
        let helper = self.helper.clone();
        self.find(move || probe(&helper)).await
    }

    /// What commands may reach.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    pub(super) fn moved_out(&self) -> Option<&Path> {
        self.moved_out.as_deref()
    }

    /// Keeps an eye on what a command was not to touch, beyond its own end.
    pub(super) fn look_again(&self, before: Before) {
        let mut pending = lock(&self.pending);
        // The oldest have seen the most; a session does not collect them for ever.
        if pending.len() < 20 {
            pending.push(before);
        }
    }

    /// What was touched since a command ended, by what it left running.
    pub(super) fn since_last(&self) -> Vec<Touched> {
        let mut touched: Vec<Touched> = Vec::new();
        for before in &mut *lock(&self.pending) {
            for one in before.compare(self.moved_out()) {
                if !touched.contains(&one) {
                    touched.push(one);
                }
            }
        }
        touched
    }

    /// The confinement of one command.
    pub(super) async fn confine(
        &self,
        program: &Program,
        closing: Option<&Arc<dyn Closing>>,
    ) -> Result<(Confinement, Enforcement)> {
        let enforcement = match &*lock(&self.enforcement) {
            Known::Assumed(enforcement) | Known::Found(enforcement) => enforcement.clone(),
        };
        let refused = |error: sandbox::Error| {
            crate::executor::cannot(program, Refusal::Unconfined, error.to_string())
        };
        let strength = enforcement.strength().map_err(refused)?;
        private::folder(&self.request.temp).map_err(|source| {
            let folder = self.request.temp.display();
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
        let closed = match closing {
            Some(closing) => self.closed(program, Arc::clone(closing)).await?,
            None => Vec::new(),
        };
        let request = Request {
            closed,
            repositories: self.repositories().await.to_vec(),
            ..self.request.clone()
        };
        let plan = Plan::new(&request).map_err(refused)?;
        Ok((Confinement { strength, plan }, enforcement))
    }

    /// What rules close to a command that is about to start.
    async fn closed(&self, program: &Program, closing: Arc<dyn Closing>) -> Result<Vec<PathBuf>> {
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
        let Request {
            work_dir, roots, ..
        } = &self.request;
        std::iter::once(work_dir.clone())
            .chain(roots.iter().map(|root| work_dir.join(root)))
            .collect()
    }

    fn is_in_roots(&self, path: &Path) -> bool {
        let Request {
            work_dir, roots, ..
        } = &self.request;
        path.starts_with(work_dir) || roots.iter().any(|root| path.starts_with(root))
    }

    /// The confinement after the machine refused the one it was thought to be
    /// capable of; none if nothing else is to be had.
    pub(super) async fn confine_anew(
        &self,
        program: &Program,
        closing: Option<&Arc<dyn Closing>>,
        refused: &Enforcement,
    ) -> Result<Option<(Confinement, Enforcement)>> {
        let helper = self.helper.clone();
        let now = self.find(move || sandbox::probe_anew(&helper)).await;
        if now == *refused {
            return Ok(None);
        }
        self.confine(program, closing).await.map(Some)
    }

    async fn find(&self, look: impl FnOnce() -> Enforcement + Send + 'static) -> Enforcement {
        let looked = blocking::run(Weight::Heavy, move || Ok(look())).await;
        // A machine that cannot even look enforces nothing.
        let found = looked.unwrap_or_else(|error| Enforcement::None {
            reason: error.to_string(),
        });
        match &found {
            Enforcement::Full { .. } => tracing::info!("{found}"),
            // Never silent: whoever started this should know.
            lower => tracing::warn!(target: "haft", "{lower} (`haft doctor` says more)"),
        }
        *lock(&self.enforcement) = Known::Found(found.clone());
        found
    }

    async fn repositories(&self) -> Arc<[PathBuf]> {
        if let Some(found) = &*lock(&self.repositories) {
            return Arc::clone(found);
        }
        let roots = self.folders();
        let temp = self.request.temp.clone();
        let found = blocking::run(Weight::Heavy, move || {
            tidy(&temp);
            Ok(roots.iter().flat_map(|root| repositories(root)).collect())
        })
        .await
        .unwrap_or_default();
        Arc::clone(lock(&self.repositories).get_or_insert(found))
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
