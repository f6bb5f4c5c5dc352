//! The model that the user has chosen, and how much it thinks.

use super::model_of;
use haft_agent::Model;
use haft_agent::provider::Effort;
use haft_config::model::Model as Chosen;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The configuration of the model, and what the user has changed since.
#[derive(Default)]
pub(crate) struct ModelChoice(Mutex<State>);

#[derive(Default, Clone)]
struct State {
    configured: Chosen,
    /// Name of the model; `None` for the provider's default.
    name: Option<String>,
}

impl ModelChoice {
    pub(crate) fn new(configured: Chosen) -> Self {
        let name = configured.model.clone();
        Self(Mutex::new(State { configured, name }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the model, as the user has written it.
    pub(crate) fn name(&self) -> Option<String> {
        self.lock().name.clone()
    }

    pub(crate) fn effort(&self) -> Option<Effort> {
        self.lock().configured.effort
    }

    /// Connects with other choices, which are kept if that succeeds. Without a level the
    /// provider decides how much the model thinks.
    pub(crate) fn set(
        &self,
        name: Option<&str>,
        effort: Option<Option<Effort>>,
    ) -> Result<Arc<dyn Model>, String> {
        self.change(|state| {
            if let Some(name) = name {
                state.name = Some(name.to_owned());
            }
            if let Some(effort) = effort {
                state.configured.effort = effort;
            }
        })
    }

    fn change(&self, change: impl FnOnce(&mut State)) -> Result<Arc<dyn Model>, String> {
        let mut state = self.lock().clone();
        change(&mut state);
        let name = state.name.as_deref();
        match model_of(&state.configured, name) {
            Ok(Some(model)) => {
                *self.lock() = state;
                Ok(model)
            }
            Ok(None) => Err(match name {
                Some(name) => format!("no provider configured for model {name}"),
                None => "no provider configured".to_owned(),
            }),
            Err(failure) => Err(failure.message),
        }
    }
}
