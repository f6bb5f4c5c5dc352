//! Chooses the provider. An address or a key is used only with the provider it was
//! configured for.

use super::layer::{Layer, Role};
use super::sources::{Origin, Sources, in_layer};
use crate::environment::Environment;
use haft_agent::provider::{Provider, Secret};

/// Providers whose keys are looked up in the environment, in this order, with their
/// default models.
const DEFAULT_MODELS: [(Provider, &str); 4] = [
    (Provider::Anthropic, "claude-sonnet-4-5"),
    (Provider::OpenaiResponses, "gpt-5"),
    (Provider::OpenaiCompletions, "gpt-5"),
    (Provider::Google, "gemini-2.5-pro"),
];

/// Returns the provider's default model.
pub fn default_model(provider: Provider) -> Option<&'static str> {
    let default = DEFAULT_MODELS.iter().find(|(known, _)| *known == provider);
    default.map(|(_, model)| *model)
}

/// Returns the provider's key from the environment.
pub fn key_of(provider: Provider, environment: &Environment) -> Option<Secret> {
    let variable = provider.key_variable()?;
    let value = environment
        .text(variable)
        .filter(|value| !value.trim().is_empty());
    value.map(Secret::new)
}

/// Splits `anthropic/claude-…` into provider and model.
pub fn prefix(model: &str) -> Option<(Provider, &str)> {
    let (provider, rest) = model.split_once('/')?;
    Some((provider.parse().ok()?, rest))
}

/// An address or a key, with the provider it was configured for.
#[derive(Debug, Clone)]
pub struct ForProvider<T> {
    pub(crate) value: T,
    pub(crate) provider: Option<String>,
}

impl<T> ForProvider<T> {
    /// Returns the value if it was configured for this provider.
    pub fn for_provider(&self, provider: Provider) -> Option<&T> {
        let matches = self.provider.as_deref() == Some(provider.name());
        matches.then_some(&self.value)
    }
}

/// Settings of one source: command line and environment, or a file.
#[derive(Debug)]
struct Level {
    /// Name of the file in messages.
    file: Option<String>,
    is_project: bool,
    provider: Option<String>,
    /// Provider that the model's name starts with.
    prefix: Option<Provider>,
    has_address: bool,
}

/// All sources, in order of precedence.
#[derive(Debug)]
pub(crate) struct Levels {
    levels: Vec<Level>,
    environment: Environment,
}

impl Levels {
    pub(crate) fn read(sources: &Sources) -> Self {
        let level = |layer: &Layer| Level {
            file: (layer.role != Role::Explicit).then(|| layer.shown.clone()),
            is_project: layer.role == Role::Project,
            // A value whose variable is not set still counts as set, but names no provider.
            provider: match in_layer(layer, |file| &file.provider) {
                Ok(given) => given.map(|given| given.value.0),
                Err(_) => Some(String::new()),
            },
            prefix: match in_layer(layer, |file| &file.model) {
                Ok(Some(model)) => prefix(&model.value).map(|(provider, _)| provider),
                _ => None,
            },
            has_address: match &layer.file.base_url {
                Some(setting) => layer.found(setting).is_some(),
                None => false,
            },
        };
        Self {
            levels: sources.layers.iter().map(level).collect(),
            environment: sources.environment.clone(),
        }
    }

    /// Returns the provider according to all sources.
    pub(crate) fn of_all(&self) -> Option<String> {
        self.choose(|| self.levels.iter())
    }

    /// Returns the provider according to the user's own sources.
    pub(crate) fn of_user(&self) -> Option<String> {
        self.choose(|| self.levels.iter().filter(|level| !level.is_project))
    }

    /// Whether the user sets `provider`. Then a slash in a model's name is just part of
    /// the name.
    pub(crate) fn user_sets_provider(&self) -> bool {
        let mut levels = self.levels.iter().filter(|level| !level.is_project);
        levels.any(|level| level.provider.is_some())
    }

    /// Returns the provider that a value in a file was written for: the one in that file,
    /// or the one chosen by sources below it.
    pub(crate) fn provider_for(&self, from: &Origin) -> Option<String> {
        let Origin::File(file, _) = from else {
            return None;
        };
        let is_same = |level: &Level| level.file.as_ref() == Some(file);
        let at = self.levels.iter().position(is_same)?;
        let found = self.choose(|| self.levels.iter().skip(at));
        match self.levels[at].is_project {
            true => found,
            false => found.or_else(|| self.of_user()),
        }
    }

    fn choose<'a, I: Iterator<Item = &'a Level>>(&self, levels: impl Fn() -> I) -> Option<String> {
        let configured = levels().find_map(|level| level.provider.clone());
        let name = |provider: Provider| provider.name().to_owned();
        configured
            .or_else(|| levels().find_map(|level| level.prefix).map(name))
            .or_else(|| {
                // An address without a provider most likely offers the OpenAI completions
                // API.
                let has_address = levels().any(|level| level.has_address);
                has_address.then(|| name(Provider::OpenaiCompletions))
            })
            .or_else(|| {
                let mut known = DEFAULT_MODELS.iter().map(|(provider, _)| *provider);
                known
                    .find(|known| key_of(*known, &self.environment).is_some())
                    .map(name)
            })
    }
}
