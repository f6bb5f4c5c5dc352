//! What every kind of channel can do, and how it fails.

use async_trait::async_trait;
use haft_ops::Error;
use std::time::Duration;

/// One part of a message, small enough for its service.
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    /// The name of the channel.
    pub(super) channel: &'a str,
    /// Who gets it.
    pub(super) chat: &'a str,
    /// The text.
    pub(super) text: &'a str,
}

/// The time of a try.
#[derive(Clone, Copy)]
pub(super) struct Time {
    /// What is left for it.
    pub(super) left: Duration,
    /// What there was before the first, for words.
    pub(super) whole: Duration,
}

/// One way of getting a part of a message out.
#[async_trait]
pub(super) trait Carrier: Send + Sync {
    /// The host it talks to.
    fn host(&self) -> Option<String>;

    /// How long a part may be, in UTF-16 units; `None` where there is no limit.
    fn most(&self) -> Option<usize>;

    /// Whether this can be a recipient; if not, why.
    fn check(&self, chat: &str) -> Result<(), String>;

    /// Tries once.
    async fn attempt(&self, part: Part<'_>, time: Time) -> Result<(), Failure>;
}

/// When to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// Never: the answer would be the same, or the message there twice.
    Never,
    /// After a while of our own choice.
    Soon,
    /// After the time the service asked for.
    After(Duration),
}

/// A try that did not work.
#[derive(Debug)]
pub(super) struct Failure {
    /// Why, in words without secrets.
    pub(super) reason: String,
    /// When to try again.
    pub(super) again: Again,
    /// Whether the part may have arrived all the same.
    pub(super) uncertain: bool,
}

impl Failure {
    /// A failure that stays one.
    pub(super) fn lasting(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            again: Again::Never,
            uncertain: false,
        }
    }

    /// A failure that may pass.
    pub(super) fn passing(reason: impl Into<String>) -> Self {
        Self {
            again: Again::Soon,
            ..Self::lasting(reason)
        }
    }

    /// A failure of which nobody knows whether it is one.
    pub(super) fn uncertain(reason: impl Into<String>) -> Self {
        Self {
            uncertain: true,
            ..Self::lasting(reason)
        }
    }

    /// The error for the caller, who wants to know how much of it is out.
    pub(super) fn told(self, delivered: usize, parts: usize, tries: usize) -> Error {
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
