//! Who answers: the providers of models.
//!
//! Everybody else knows a [`Model`]. Below here, `rig/` translates between
//! what was said and what each protocol calls it, and is the only place that knows
//! the library; `lane.rs` keeps the bytes of a conversation, so that a turn costs
//! what is new in it; `http.rs` sends them; `failure.rs` says what went wrong
//! without saying the key.

mod address;
mod failure;
mod frames;
mod http;
mod lane;
mod replay;
mod rig;
mod secret;

pub use replay::{Recording, RecordingError, replay};
pub use secret::Secret;

use crate::{Model, Price};
use address::Endpoint;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// How long the first byte of an answer may take, and each one after it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A protocol that models are spoken to in, by the names the configuration has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// Anthropic's Messages.
    Anthropic,
    /// `OpenAI`'s Responses.
    OpenaiResponses,
    /// `OpenAI`'s Chat Completions, which many others speak too.
    OpenaiCompletions,
    /// Google's Gemini.
    Google,
    /// A local Ollama.
    Ollama,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Anthropic,
        Self::OpenaiResponses,
        Self::OpenaiCompletions,
        Self::Google,
        Self::Ollama,
    ];

    /// Its name in the configuration.
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

    /// The variable its key is usually in; `None` where it needs none.
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

/// Who to connect to, and how.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The protocol.
    pub provider: Provider,
    /// The model, as the provider names it.
    pub model: String,
    /// Another address than the provider's own: up to where the path of the protocol
    /// begins.
    pub base_url: Option<String>,
    /// The key.
    pub api_key: Option<Secret>,
    /// How many tokens the model can take, where that is not known or known better.
    pub context_window: Option<u64>,
    /// The most tokens of an answer.
    pub max_output: Option<u64>,
    /// How long the first byte of an answer may take.
    pub first_byte: Duration,
    /// How long an answer may pause.
    pub idle: Duration,
}

impl Settings {
    /// A model of a provider, without a key.
    pub fn new(provider: Provider, model: impl Into<String>) -> Self {
        Self {
            provider,
            model: model.into(),
            base_url: None,
            api_key: None,
            context_window: None,
            max_output: None,
            first_byte: PATIENCE,
            idle: PATIENCE,
        }
    }
}

/// Settings that lead to no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A provider nobody knows.
    #[error(
        "unknown provider {}: it can be {}",
        crate::provider::failure::quoted(name),
        known()
    )]
    Provider {
        /// Its name.
        name: String,
    },
    /// No model.
    #[error("no model for provider {provider}: set `model`, or --model")]
    Model {
        /// Whose.
        provider: Provider,
    },
    /// No key, where one is needed.
    #[error("no key for provider {provider}: set {variable}, or `api_key` in haft.yaml")]
    Key {
        /// Whose.
        provider: Provider,
        /// Where it is looked for.
        variable: &'static str,
    },
    /// A key that no header can hold.
    #[error("the key for provider {provider} holds characters that no key has: copy it again")]
    KeyCharacters {
        /// Whose.
        provider: Provider,
    },
    /// An address that is none.
    #[error("`base_url` of provider {provider} {reason}")]
    Address {
        /// Whose.
        provider: Provider,
        /// What is wrong with it.
        reason: &'static str,
    },
}

fn known() -> String {
    let names: Vec<&str> = Provider::ALL.iter().map(|known| known.name()).collect();
    format!("{} or replay", names.join(", "))
}

/// A model, ready to be asked. Nothing is sent and no certificate is read before it
/// is. Models of one process share their connections.
///
/// # Errors
/// When the settings lead to no model.
pub fn connect(settings: Settings) -> Result<Arc<dyn Model>, SettingsError> {
    let endpoint = Endpoint::new(&settings)?;
    Ok(rig::model(settings, endpoint))
}

/// What a model costs, where that is known: the list price of its provider when this
/// version was made, without discounts and surcharges.
#[must_use]
pub fn price(provider: Provider, model: &str) -> Option<Price> {
    rig::price(provider, model)
}
