//! The providers of models.
//!
//! The rest of the agent knows only [`Model`]. `remote.rs` is one that asks a provider: it
//! builds the request and reads the answer with `wire/`, where one module knows each wire
//! format. `http.rs` sends requests, `failure.rs` describes errors without showing the key,
//! and `catalog.rs` holds prices and limits. `replay.rs` answers from a recording instead.

mod address;
mod catalog;
mod draft;
mod effort;
mod failure;
mod http;
mod ids;
mod remote;
mod replay;
mod wire;

pub use effort::{Effort, UnknownEffort};
pub use haft::Secret;
pub use replay::{Recording, RecordingError, replay};

use crate::{Model, Price};
use address::Endpoint;
use remote::Remote;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Default timeout for the first byte of an answer, and for pauses in it.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A provider, which implies a wire format. The configuration uses the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// Anthropic's Messages.
    Anthropic,
    /// `OpenAI`'s Responses.
    OpenaiResponses,
    /// `OpenAI`'s Chat Completions, which many other servers support.
    OpenaiCompletions,
    /// Google's Gemini.
    Google,
    /// A local Ollama.
    Ollama,
}

impl Provider {
    /// All providers.
    pub const ALL: [Self; 5] = [
        Self::Anthropic,
        Self::OpenaiResponses,
        Self::OpenaiCompletions,
        Self::Google,
        Self::Ollama,
    ];

    /// Returns the name in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenaiResponses => "openai-responses",
            Self::OpenaiCompletions => "openai-completions",
            Self::Google => "google",
            Self::Ollama => "ollama",
        }
    }

    /// Returns the environment variable with the key; `None` if no key is needed.
    #[must_use]
    pub fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenaiResponses | Self::OpenaiCompletions => Some("OPENAI_API_KEY"),
            Self::Google => Some("GEMINI_API_KEY"),
            Self::Ollama => None,
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Provider {
    type Err = SettingsError;

    fn from_str(name: &str) -> Result<Self, SettingsError> {
        let found = Self::ALL.into_iter().find(|known| known.name() == name);
        found.ok_or_else(|| SettingsError::Provider {
            name: name.to_owned(),
        })
    }
}

/// Settings of a connection to a model.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The provider, which decides the wire format.
    pub provider: Provider,
    /// The model, as the provider names it.
    pub model: String,
    /// Address to use instead of the provider's own, without the path of the protocol.
    pub base_url: Option<String>,
    /// API key. Only `base_url` makes it optional.
    pub api_key: Option<Secret>,
    /// Context window in tokens; overrides what is known of the model.
    pub context_window: Option<u64>,
    /// Maximum number of tokens in an answer.
    pub max_output: Option<u64>,
    /// How much the model thinks; `None` leaves that to the provider.
    pub effort: Option<Effort>,
    /// Timeout for the first byte of an answer.
    pub first_byte: Duration,
    /// Timeout for pauses within an answer.
    pub idle: Duration,
}

impl Settings {
    /// Creates settings without a key.
    pub fn new(provider: Provider, model: impl Into<String>) -> Self {
        Self {
            provider,
            model: model.into(),
            base_url: None,
            api_key: None,
            context_window: None,
            max_output: None,
            effort: None,
            first_byte: TIMEOUT,
            idle: TIMEOUT,
        }
    }
}

/// A setting that is missing or not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The provider is unknown.
    #[error(
        "unknown provider {}; known providers: {}",
        crate::provider::failure::quoted(name),
        known()
    )]
    Provider {
        /// The name as given.
        name: String,
    },
    /// The model is missing.
    #[error("no model for provider {provider}: set `model`, or --model")]
    Model {
        /// The provider of the model.
        provider: Provider,
    },
    /// The key is missing.
    #[error("no key for provider {provider}: set {variable}, or `api_key` in haft.yaml")]
    Key {
        /// The provider of the model.
        provider: Provider,
        /// Environment variable that may contain the key.
        variable: &'static str,
    },
    /// The key cannot be sent in a header.
    #[error("the key for provider {provider} contains invalid characters: copy it again")]
    KeyCharacters {
        /// The provider of the model.
        provider: Provider,
    },
    /// The address is not valid.
    #[error("`base_url` of provider {provider} {reason}")]
    Address {
        /// The provider of the model.
        provider: Provider,
        /// The problem, as the rest of the sentence.
        reason: &'static str,
    },
}

fn known() -> String {
    let names: Vec<&str> = Provider::ALL.iter().map(|known| known.name()).collect();
    format!("{} or replay", names.join(", "))
}

/// Creates a model. Nothing is sent and no certificate is read before the first request.
/// The models of a process share their connections.
///
/// # Errors
/// When a setting is missing or not valid.
pub fn connect(settings: Settings) -> Result<Arc<dyn Model>, SettingsError> {
    let endpoint = Endpoint::new(&settings)?;
    Ok(Arc::new(Remote::new(settings, endpoint)))
}

/// Returns the names of a provider's models, as far as this version knows them.
#[must_use]
pub fn model_names(provider: Provider) -> Vec<&'static str> {
    catalog::names(provider)
}

/// Returns the price of a model, if it is known: the provider's list price when this version
/// was made, without discounts and surcharges.
#[must_use]
pub fn price(provider: Provider, model: &str) -> Option<Price> {
    catalog::known(provider, model)?.price
}
