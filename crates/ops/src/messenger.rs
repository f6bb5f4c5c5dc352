//! The interface for sending messages. The implementations, which need TLS, HTTP and SMTP,
//! are outside this crate.

use crate::Result;
use async_trait::async_trait;

/// Sends messages to people over the channels in the configuration.
///
/// Dropping the future cancels the call, but does not recall parts that were sent already.
#[async_trait]
pub trait Messenger: Send + Sync + 'static {
    /// Returns the names of the channels, sorted.
    fn channels(&self) -> Vec<String>;

    /// Returns the host that a channel connects to, without the port, for policy rules.
    /// `None` if it does not connect to a host (a console) or does not exist.
    fn host(&self, channel: &str) -> Option<String>;

    /// Sends one message, in several parts if the service limits their length.
    ///
    /// # Errors
    /// [`Error::UnknownChannel`](crate::Error::UnknownChannel), or
    /// [`Error::NotSent`](crate::Error::NotSent), which says how much was delivered.
    async fn send(&self, message: &Message) -> Result<Sent>;
}

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Name of the channel.
    pub channel: String,
    /// The recipient, such as a chat id or an address; the format depends on the service.
    pub chat: String,
    /// Text of the message.
    pub content: String,
}

/// Result of sending a message that the service accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Number of parts sent.
    pub parts: usize,
    /// Number of attempts; more than `parts` if some had to be repeated.
    pub tries: usize,
}

/// A messenger for sessions without channels.
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
