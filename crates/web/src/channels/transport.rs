//! Interface of the services that deliver messages, and how they fail.

use async_trait::async_trait;
use haft_ops::Error;
use std::time::Duration;

/// One part of a message, short enough for the service.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    /// Name of the channel.
    pub(super) channel: &'a str,
    /// Recipient: a chat id or an address, depending on the service.
    pub(super) chat: &'a str,
    pub(super) text: &'a str,
}

/// Time limits of an attempt.
#[derive(Clone, Copy)]
pub(super) struct TimeLimit {
    /// Time left for this attempt.
    pub(super) left: Duration,
    /// Time limit for all attempts together, for error messages.
    pub(super) total: Duration,
}

/// A service that delivers parts of a message.
#[async_trait]
pub(super) trait Transport: Send + Sync {
    /// Returns the host that the service connects to.
    fn host(&self) -> Option<String>;

    /// Returns the maximum length of a part in UTF-16 units; `None` means unlimited.
    fn max_length(&self) -> Option<usize>;

    /// Checks whether `chat` can be a recipient, and returns the reason if not.
    fn check(&self, chat: &str) -> Result<(), String>;

    /// Makes one attempt.
    async fn attempt(&self, part: Part<'_>, time: TimeLimit) -> Result<(), Failure>;
}

/// When to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retry {
    /// Never: it would fail again, or deliver the message twice.
    Never,
    /// After a backoff.
    Backoff,
    /// After the time that the service asked for.
    After(Duration),
}

/// A failed attempt.
#[derive(Debug)]
pub(super) struct Failure {
    /// The reason, without secrets.
    pub(super) reason: String,
    pub(super) retry: Retry,
    /// Whether the part may have been delivered nevertheless.
    pub(super) uncertain: bool,
}

impl Failure {
    /// A failure that a retry cannot fix.
    pub(super) fn permanent(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            retry: Retry::Never,
            uncertain: false,
        }
    }

    /// A failure that a retry may fix.
    pub(super) fn transient(reason: impl Into<String>) -> Self {
        Self {
            retry: Retry::Backoff,
            ..Self::permanent(reason)
        }
    }

    /// A failure after which the part may have been delivered, so a retry might duplicate it.
    pub(super) fn uncertain(reason: impl Into<String>) -> Self {
        Self {
            uncertain: true,
            ..Self::permanent(reason)
        }
    }

    /// Converts to the error for the caller, which includes how much was delivered.
    pub(super) fn into_error(self, delivered: usize, parts: usize, tries: usize) -> Error {
        let mut reason = self.reason;
        if tries > 1 {
            reason.push_str(&format!(" ({tries} tries)"));
        }
        if parts == 1 && self.uncertain {
            reason.push_str("; it may have been delivered");
        }
        if parts > 1 {
            let was = if delivered == 1 { "was" } else { "were" };
            reason.push_str(&format!("; {delivered} of {parts} parts {was} delivered"));
            if self.uncertain {
                reason.push_str(&format!(", and part {} may have been", delivered + 1));
            }
        }
        Error::NotSent {
            reason,
            delivered,
            parts,
            tries,
            uncertain: self.uncertain,
        }
    }
}
