//! Whoever answers: the port between the loop and providers.

use crate::provider::Secret;
use crate::{Answer, Said};
use async_trait::async_trait;
use haft::Definition;
use std::sync::Arc;
use std::time::Duration;

/// A model that can be asked.
#[async_trait]
pub trait Model: Send + Sync {
    /// Who it is.
    fn id(&self) -> ModelId;

    /// How many tokens it can take at once, if that is known.
    fn context_window(&self) -> Option<u64> {
        None
    }

    /// The key that it is asked with. Nobody who watches is shown it, and no record has
    /// it; what the model says of it reaches the tools as it is.
    fn secret(&self) -> Option<&Secret> {
        None
    }

    /// Sends a conversation and waits for the whole answer, showing pieces as they
    /// come. Dropping the future ends the request. It does not try again by itself.
    ///
    /// # Errors
    /// When there is no whole answer. No error has a key in it.
    async fn answer(
        &self,
        request: Request<'_>,
        show: &(dyn Fn(Piece) + Send + Sync),
    ) -> Result<Answer, ModelError>;
}

/// A provider and one of its models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelId {
    /// As the configuration names it.
    pub provider: String,
    /// As the provider names it.
    pub model: String,
}

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The session, for providers that keep a cache by name.
    pub session: &'a str,
    /// The system prompt.
    pub system: &'a str,
    /// The tools, in a stable order.
    pub tools: &'a [Definition],
    /// What was said so far; the last is not the model's.
    pub history: &'a [Arc<Said>],
    /// The most tokens of an answer, if there is a bound.
    pub max_output: Option<u64>,
}

/// A piece of an answer that is on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Piece {
    /// Words.
    Text(String),
    /// Reasoning.
    Reasoning(String),
    /// The name of a tool that will be called, as soon as it is known.
    Call(String),
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of trouble.
    pub trouble: Trouble,
    /// What happened, to what address (without a key), and what to do.
    pub message: String,
    /// When the provider wants to be asked again.
    pub retry_after: Option<Duration>,
}

/// Kinds of trouble with a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trouble {
    /// It could not be reached, or the connection broke.
    Network,
    /// It answered with this status.
    Status(u16),
    /// What it sent ended early.
    Cut,
    /// What it sent had nothing in it.
    Empty,
    /// What it sent makes no sense.
    Malformed,
    /// The conversation is longer than the model can take.
    TooLong,
    /// The request has more bytes than the provider takes.
    TooLarge,
    /// It cannot work, whatever is tried: no key, no such model, an encoding that is
    /// not possible, a recording that is over.
    Hopeless,
}

impl ModelError {
    /// Trouble of a kind.
    pub fn new(trouble: Trouble, message: impl Into<String>) -> Self {
        Self {
            trouble,
            message: message.into(),
            retry_after: None,
        }
    }

    /// Whether the same request may go well a little later.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self.trouble {
            Trouble::Network | Trouble::Cut | Trouble::Empty | Trouble::Malformed => true,
            Trouble::Status(code) => code == 408 || code == 429 || code >= 500,
            Trouble::TooLong | Trouble::TooLarge | Trouble::Hopeless => false,
        }
    }
}
