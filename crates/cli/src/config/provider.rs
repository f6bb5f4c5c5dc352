//! Which provider is in force, and which one an address or a key was given for. The three
//! belong together: an address and a key are used only with the provider they were
//! written for.

use super::layer::Role;
use super::sources::{Origin, Sources, in_layer};
use crate::env;
use haft_agent::provider::{Provider, Secret};

/// Providers whose keys are looked for in the environment, in this order, and the model
/// that each is asked for if nobody names one.
const USUAL: [(Provider, &str); 4] = [
    (Provider::Anthropic, "claude-sonnet-4-5"),
    (Provider::OpenaiResponses, "gpt-5"),
    (Provider::OpenaiCompletions, "gpt-5"),
    (Provider::Google, "gemini-2.5-pro"),
];

/// The model that a provider is asked for if nobody names one.
pub(crate) fn usual_model(provider: Provider) -> Option<&'static str> {
    let usual = USUAL.iter().find(|(known, _)| *known == provider);
    usual.map(|(_, model)| *model)
}

/// The key that the environment has for a provider.
pub(crate) fn key_of(provider: Provider) -> Option<Secret> {
    let variable = provider.key_variable()?;
    let value = env::text(variable).filter(|value| !value.trim().is_empty());
    value.map(Secret::new)
}

/// The provider in `anthropic/claude-…`, and the rest.
pub(crate) fn prefix(model: &str) -> Option<(Provider, &str)> {
    let (provider, rest) = model.split_once('/')?;
    Some((provider.parse().ok()?, rest))
}

/// An address or a key, and the provider that it was given for.
#[derive(Debug, Clone)]
pub(crate) struct GivenFor<T> {
    pub(crate) value: T,
    pub(crate) provider: Option<String>,
}

impl<T> GivenFor<T> {
    /// It, if it was given for this provider.
    pub(crate) fn for_provider(&self, provider: Provider) -> Option<&T> {
        let is_for_it = self.provider.as_deref() == Some(provider.name());
        is_for_it.then_some(&self.value)
    }
}

/// What one level says: a flag or variable, or a file.
#[derive(Debug)]
struct Level {
    /// The file, by its name for messages.
    file: Option<String>,
    is_project: bool,
    provider: Option<String>,
    /// The provider that the name of the model begins with.
    prefix: Option<Provider>,
    has_address: bool,
}

/// What every level says, the strongest first.
#[derive(Debug)]
pub(crate) struct Levels(Vec<Level>);

impl Levels {
    pub(crate) fn read(sources: &Sources<'_>) -> Self {
        let prefix_of = |model: &str| prefix(model).map(|(provider, _)| provider);
        // Of the three only the model has a flag.
        let model = sources.explicit("model").ok().flatten();
        let mut levels = vec![Level {
            file: None,
            is_project: false,
            provider: None,
            prefix: model.and_then(|model| prefix_of(model.value.as_str()?)),
            has_address: false,
        }];
        for layer in &sources.layers {
            // A value whose variable is not set is nobody's name.
            let text = |name: &str| {
                let given = layer.get(name).map(|node| in_layer(layer, name, node))?;
                let value = given.ok().map(|given| given.value);
                Some(value.and_then(|value| Some(value.as_str()?.to_owned())))
            };
            levels.push(Level {
                file: Some(layer.shown.clone()),
                is_project: layer.role == Role::Project,
                provider: text("provider").map(Option::unwrap_or_default),
                prefix: text("model").and_then(|model| prefix_of(&model?)),
                has_address: layer.get("base_url").is_some(),
            });
        }
        Self(levels)
    }

    /// The provider that is in force by everything that is said.
    pub(crate) fn of_all(&self) -> Option<String> {
        in_force(|| self.0.iter())
    }

    /// The provider that is in force by what the person says, whatever the project does.
    pub(crate) fn of_person(&self) -> Option<String> {
        in_force(|| self.0.iter().filter(|level| !level.is_project))
    }

    /// Whether the person names a provider by itself. Then the name of a model is a name
    /// and nothing else.
    pub(crate) fn person_names_it(&self) -> bool {
        let mut levels = self.0.iter().filter(|level| !level.is_project);
        levels.any(|level| level.provider.is_some())
    }

    /// The provider that something in a file was written for: the one beside it, or what
    /// is in force below that file.
    pub(crate) fn beside(&self, from: &Origin) -> Option<String> {
        let Origin::File(file, _) = from else {
            return None;
        };
        let is_it = |level: &Level| level.file.as_ref() == Some(file);
        let at = self.0.iter().position(is_it)?;
        let found = in_force(|| self.0.iter().skip(at));
        match self.0[at].is_project {
            true => found,
            false => found.or_else(|| self.of_person()),
        }
    }
}

fn in_force<'a, I: Iterator<Item = &'a Level>>(levels: impl Fn() -> I) -> Option<String> {
    let said = levels().find_map(|level| level.provider.clone());
    let name = |provider: Provider| provider.name().to_owned();
    said.or_else(|| levels().find_map(|level| level.prefix).map(name))
        .or_else(|| {
            // An address without a provider: what most of them speak.
            let has_address = levels().any(|level| level.has_address);
            has_address.then(|| name(Provider::OpenaiCompletions))
        })
        .or_else(|| {
            let mut known = USUAL.iter().map(|(provider, _)| *provider);
            known.find(|known| key_of(*known).is_some()).map(name)
        })
}
