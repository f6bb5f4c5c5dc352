//! The port through which messages leave: a trait only. What it takes to reach
//! a service (TLS, HTTP, SMTP) stays outside this crate.

use crate::Result;
use async_trait::async_trait;

/// Sends messages to people, over channels that the configuration names.
///
/// A call is cancelled by being dropped; what was sent by then stays sent.
#[async_trait]
pub trait Messenger: Send + Sync + 'static {
    /// The names of the channels, sorted.
    fn channels(&self) -> Vec<String>;

    /// Which host a channel talks to, without a port, for the policy. `None`
    /// where it talks to none (a console) and where there is no such channel.
    fn host(&self, channel: &str) -> Option<String>;

    /// Sends one message, in several parts where the service takes no more at
    /// a time.
    ///
    /// # Errors
    /// [`Error::UnknownChannel`](crate::Error::UnknownChannel), or
    /// [`Error::NotSent`](crate::Error::NotSent) with how much of it arrived.
    async fn send(&self, message: &Message) -> Result<Sent>;
}

/// What to send, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The name of a channel.
    pub channel: String,
    /// Who gets it there: the id of a chat, an address, whatever the channel's
    /// service names its recipients by.
    pub chat: String,
    /// The text.
    pub content: String,
}

/// A message that was accepted by its service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// In how many parts it went.
    pub parts: usize,
    /// How often something was tried: as often as there are parts, unless a
    /// try had to be repeated.
    pub tries: usize,
}

/// A messenger of a session that has no channels.
#[derive(Debug, Clone, Copy)]
pub struct NoChannels;

#[async_trait]
impl Messenger for NoChannels {
    fn channels(&self) -> Vec<String> {
        Vec::new()
    }

    fn host(&self, _channel: &str) -> Option<String> {
        None
    }

    async fn send(&self, message: &Message) -> Result<Sent> {
        Err(crate::Error::UnknownChannel {
            name: message.channel.clone(),
            known: Vec::new(),
        })
    }
}
