//! What confines the commands of a session, worked out once as far as it can be.

use crate::blocking::{self, Weight};
use crate::executor::sandbox::{
    self, Confinement, Enforcement, Helper, Plan, Request, probe, repositories,
};
use crate::executor::{Program, Refusal};
use crate::{Error, Result, private};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What confines the commands of a session.
#[derive(Debug)]
pub struct Sandbox {
    helper: Helper,
    request: Request,
    /// Where goes what a command made at a protected place.
    moved_out: Option<PathBuf>,
    /// Found at the first command: most sessions of a person run none.
    found: Mutex<Option<Found>>,
}

#[derive(Debug, Clone)]
struct Found {
    enforcement: Enforcement,
    repositories: Arc<[PathBuf]>,
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
            found: Mutex::new(None),
        }
    }

    /// What the machine enforces.
    pub async fn enforcement(&self) -> Enforcement {
        self.found().await.enforcement
    }

    /// What commands may reach.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    pub(super) fn moved_out(&self) -> Option<&Path> {
        self.moved_out.as_deref()
    }

    /// The confinement of one command.
    pub(super) async fn confine(&self, program: &Program) -> Result<(Confinement, Enforcement)> {
        let found = self.found().await;
        let refused = |error: sandbox::Error| {
            crate::executor::cannot(program, Refusal::Unconfined, error.to_string())
        };
        let strength = found.enforcement.strength().map_err(refused)?;
        private::folder(&self.request.temp)
            .map_err(|source| Error::io("make the private temp folder", "/tmp", source))?;
        let request = Request {
            repositories: found.repositories.to_vec(),
            ..self.request.clone()
        };
        let plan = Plan::new(&request).map_err(refused)?;
        Ok((Confinement { strength, plan }, found.enforcement))
    }

    /// The confinement after the machine refused the one it was thought to be
    /// capable of; none if nothing else is to be had.
    pub(super) async fn confine_anew(
        &self,
        program: &Program,
        refused: &Enforcement,
    ) -> Result<Option<(Confinement, Enforcement)>> {
        let helper = self.helper.clone();
        let now = blocking::run(Weight::Heavy, move || Ok(sandbox::probe_anew(&helper))).await?;
        if now == *refused {
            return Ok(None);
        }
        if let Some(found) = &mut *self.lock() {
            found.enforcement = now;
        }
        self.confine(program).await.map(Some)
    }

    async fn found(&self) -> Found {
        if let Some(found) = &*self.lock() {
            return found.clone();
        }
        let helper = self.helper.clone();
        let roots: Vec<PathBuf> = std::iter::once(self.request.work_dir.clone())
            .chain(
                self.request
                    .roots
                    .iter()
                    .map(|root| self.request.work_dir.join(root)),
            )
            .collect();
        let looked = blocking::run(Weight::Heavy, move || {
            Ok(Found {
                enforcement: probe(&helper),
                repositories: roots.iter().flat_map(|root| repositories(root)).collect(),
            })
        })
        .await;
        // A machine that cannot even look enforces nothing.
        let found = looked.unwrap_or_else(|error| Found {
            enforcement: Enforcement::None {
                reason: error.to_string(),
            },
            repositories: Arc::default(),
        });
        match &found.enforcement {
            Enforcement::Full { .. } => tracing::info!("{}", found.enforcement),
            // Never silent: whoever started this should know.
            lower => tracing::warn!("{lower} (`haft doctor` says more)"),
        }
        self.lock().get_or_insert(found).clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Found>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
