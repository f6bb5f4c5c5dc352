//! The channels that messages go to: what each kind of service wants, and one
//! way of trying for all of them.

mod carrier;
mod console;
mod deliver;
mod discord;
mod email;
mod http;
mod scrub;
mod setting;
mod slack;
mod split;
mod telegram;
mod webhook;

pub use console::Sink;
pub use deliver::Pace;
pub use setting::{Channel, Email, Encryption};

use crate::client::{Client, SetupError};
use async_trait::async_trait;
use carrier::{Carrier, Part};
use haft_ops::messenger::{Message, Messenger, Sent};
use haft_ops::{Error, Result};
use std::collections::BTreeMap;

/// In how many parts a message goes at most. More is a file, not a message.
pub const MAX_PARTS: usize = 25;

/// The channels of a configuration.
pub struct Channels {
    carriers: BTreeMap<String, Box<dyn Carrier>>,
    pace: Pace,
}

impl Channels {
    /// The channels by name. `console` is where channels of that kind write.
    ///
    /// # Errors
    /// When a channel's settings cannot work: the error names the channel, not
    /// the setting's value.
    pub fn new(
        channels: BTreeMap<String, Channel>,
        client: &Client,
        pace: Pace,
        console: &Sink,
    ) -> std::result::Result<Self, SetupError> {
        let carriers = channels
            .into_iter()
            .map(|(name, channel)| {
                let carrier = channel
                    .carrier(client, console)
                    .map_err(|reason| SetupError(format!("channel {name}: {reason}")))?;
                Ok((name, carrier))
            })
            .collect::<std::result::Result<_, SetupError>>()?;
        Ok(Self { carriers, pace })
    }
}

#[async_trait]
impl Messenger for Channels {
    fn channels(&self) -> Vec<String> {
        self.carriers.keys().cloned().collect()
    }

    fn host(&self, channel: &str) -> Option<String> {
        self.carriers.get(channel)?.host()
    }

    async fn send(&self, message: &Message) -> Result<Sent> {
        let Message {
            channel,
            chat,
            content,
        } = message;
        let carrier = self
            .carriers
            .get(channel)
            .ok_or_else(|| Error::UnknownChannel {
                name: channel.clone(),
                known: self.channels(),
            })?;
        let texts = prepare(&**carrier, chat, content).map_err(|reason| Error::NotSent {
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
            match deliver::deliver(&**carrier, part, &self.pace).await {
                Ok(needed) => tries += needed,
                Err((failure, tries)) => return Err(failure.told(delivered, parts, tries)),
            }
        }
        Ok(Sent { parts, tries })
    }
}

/// The texts that go out, one after the other. All that can be known to be
/// wrong is found here, before anything leaves.
fn prepare<'a>(
    carrier: &dyn Carrier,
    chat: &str,
    content: &'a str,
) -> std::result::Result<Vec<&'a str>, String> {
    if content.trim().is_empty() {
        return Err("the content is empty".to_owned());
    }
    if chat.trim().is_empty() {
        return Err("the chat id is empty".to_owned());
    }
    // Not even where it would be encoded: no id has one, and a line break is
    // how headers are forged.
    if chat.contains(char::is_control) {
        return Err("the chat id has a control character in it".to_owned());
    }
    carrier.check(chat)?;
    let texts = carrier
        .most()
        .map_or_else(|| vec![content], |most| split::split(content, most));
    if texts.len() > MAX_PARTS {
        return Err(format!(
            "the content is too long: it would be {} messages, at most {MAX_PARTS} are sent",
            texts.len()
        ));
    }
    Ok(texts)
}
