//! Channels that deliver messages: one file per service, and retries shared by all of them.

mod console;
mod discord;
mod email;
mod http;
mod redact;
mod retry;
mod settings;
mod slack;
mod split;
mod telegram;
mod transport;
mod webhook;

pub use console::Sink;
pub use retry::RetryPolicy;
pub use settings::{Channel, Email, Encryption};

use crate::client::{Client, SetupError};
use async_trait::async_trait;
use haft_ops::messenger::{Message, Messenger, Sent};
use haft_ops::{Error, Result};
use std::collections::BTreeMap;
use transport::{Part, Transport};

/// Maximum number of parts per message. Longer content belongs in a file.
pub const MAX_PARTS: usize = 25;

/// The configured channels.
pub struct Channels {
    transports: BTreeMap<String, Box<dyn Transport>>,
    policy: RetryPolicy,
}

impl Channels {
    /// Creates the channels by name. Channels of kind `console` write to `console`.
    ///
    /// # Errors
    /// Fails if a channel's settings are not valid. The error contains the name of the channel,
    /// but not the value of the setting.
    pub fn new(
        channels: BTreeMap<String, Channel>,
        client: &Client,
        policy: RetryPolicy,
        console: &Sink,
    ) -> std::result::Result<Self, SetupError> {
        let transports = channels
            .into_iter()
            .map(|(name, channel)| {
                let transport = channel
                    .transport(client, console)
                    .map_err(|reason| SetupError(format!("channel {name}: {reason}")))?;
                Ok((name, transport))
            })
            .collect::<std::result::Result<_, SetupError>>()?;
        Ok(Self { transports, policy })
    }
}

#[async_trait]
impl Messenger for Channels {
    fn channels(&self) -> Vec<String> {
        self.transports.keys().cloned().collect()
    }

    fn host(&self, channel: &str) -> Option<String> {
        self.transports.get(channel)?.host()
    }

    async fn send(&self, message: &Message) -> Result<Sent> {
        let Message {
            channel,
            chat,
            content,
        } = message;
        let transport = self
            .transports
            .get(channel)
            .ok_or_else(|| Error::UnknownChannel {
                name: channel.clone(),
                known: self.channels(),
            })?;
        let texts = prepare(&**transport, chat, content).map_err(|reason| Error::NotSent {
            reason,
            delivered: 0,
            parts: 0,
            tries: 0,
            uncertain: false,
        })?;
        let parts = texts.len();
        let mut tries = 0;
        for (delivered, text) in texts.iter().enumerate() {
            let part = Part {
                channel,
                chat,
                text,
            };
            match retry::deliver(&**transport, part, &self.policy).await {
                Ok(needed) => tries += needed,
                Err((failure, tries)) => return Err(failure.into_error(delivered, parts, tries)),
            }
        }
        Ok(Sent { parts, tries })
    }
}

/// Splits the content into the texts to send. Reports everything that is known to be wrong before
/// anything is sent.
fn prepare<'a>(
    transport: &dyn Transport,
    chat: &str,
    content: &'a str,
) -> std::result::Result<Vec<&'a str>, String> {
    if content.trim().is_empty() {
        return Err("the content is empty".to_owned());
    }
    if chat.trim().is_empty() {
        return Err("the chat id is empty".to_owned());
    }
    // Refused even where the id would be encoded: no valid id contains one, and line breaks can
    // forge headers.
    if chat.contains(char::is_control) {
        return Err("the chat id contains a control character".to_owned());
    }
    transport.check(chat)?;
    let texts = transport.max_length().map_or_else(
        || vec![content],
        |max_length| split::split(content, max_length),
    );
    if texts.len() > MAX_PARTS {
        return Err(format!(
            "the content is too long: it needs {} messages, the limit is {MAX_PARTS}",
            texts.len()
        ));
    }
    Ok(texts)
}
