//! The interface between the agent and the providers of models.

use crate::provider::Secret;
use crate::{Message, ModelAnswer};
use async_trait::async_trait;
use haft::Definition;
use std::sync::Arc;
use std::time::Duration;

/// A model that answers requests.
#[async_trait]
pub trait Model: Send + Sync {
    /// Returns the provider and the name of the model.
    fn id(&self) -> ModelId;

    /// Returns the context window in tokens, if it is known.
    fn context_window(&self) -> Option<u64> {
        None
    }

    /// Returns the API key. It is redacted from events and from the record, but not from
    /// the arguments of calls: tools receive them as the model sent them.
    fn secret(&self) -> Option<&Secret> {
        None
    }

    /// Sends a conversation and returns the complete answer. `show` receives chunks as they
    /// arrive. Dropping the future ends the request. This method does not retry.
    ///
    /// # Errors
    /// If the answer is missing or incomplete. Errors never contain the key.
    async fn answer(
        &self,
        request: Request<'_>,
        show: &(dyn Fn(Chunk) + Send + Sync),
    ) -> Result<ModelAnswer, ModelError>;
}

/// A provider and one of its models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelId {
    /// Provider, by its name in the configuration.
    pub provider: String,
    /// Model, by the name that the provider uses.
    pub model: String,
}

/// A request to a model.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Session id, for providers whose prompt cache has a name.
    pub session: &'a str,
    /// System prompt.
    pub system: &'a str,
    /// Tools, in a stable order so that the provider can cache them.
    pub tools: &'a [Definition],
    /// The conversation. The last message is not the model's.
    pub history: &'a [Arc<Message>],
    /// Maximum number of tokens in the answer.
    pub max_output: Option<u64>,
}

/// A chunk of an answer while it is streamed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Chunk {
    /// Text for the user.
    Text(String),
    /// Reasoning, as far as the provider reveals it.
    Reasoning(String),
    /// Name of a tool that will be called, as soon as it is known.
    Call(String),
}

/// A failed request to a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// Decides whether a retry makes sense.
    pub kind: ModelErrorKind,
    /// The failure, the host, and how to fix it. Never contains the key.
    pub message: String,
    /// Delay that the provider asks for before a retry.
    pub retry_after: Option<Duration>,
}

/// Kinds of failed requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The provider cannot be reached, or does not respond.
    Network,
    /// The connection broke before the answer began. A server may do this to a request that
    /// is too large for it.
    Disconnected,
    /// The provider returned this HTTP status.
    Status(u16),
    /// The answer ended early.
    Truncated,
    /// The answer was empty.
    Empty,
    /// The answer is not valid.
    Malformed,
    /// The conversation exceeds the model's context window.
    TooLong,
    /// The request has more bytes than the provider accepts.
    TooLarge,
    /// A retry cannot help: TLS cannot be set up, or a recording has ended.
    Permanent,
}

impl ModelError {
    /// Creates an error without a retry delay.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
        }
    }

    /// Whether the same request may succeed a little later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self.kind {
            ModelErrorKind::Network
            | ModelErrorKind::Disconnected
            | ModelErrorKind::Truncated
            | ModelErrorKind::Empty
            | ModelErrorKind::Malformed => true,
            ModelErrorKind::Status(code) => code == 408 || code == 429 || code >= 500,
            ModelErrorKind::TooLong | ModelErrorKind::TooLarge | ModelErrorKind::Permanent => false,
        }
    }
}
