//! `message`: sends a text over a channel that the user has set up.

use crate::prelude::*;
use haft_ops::messenger::Message as Text;
use std::time::Duration;

/// Send a message to a chat of a configured channel (a chat service, a webhook, mail or the
/// user's terminal).
#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// Name of the channel, as configured.
    #[serde(rename = "chanId")]
    channel: String,
    /// Who gets it there: the id of a chat, a mail address.
    #[serde(rename = "chatId")]
    chat: String,
    /// Text of the message.
    content: String,
}

pub(super) struct Message;

impl Tool for Message {
    const NAME: &'static str = "message";
    const EFFECT: Effect = Effect::Network;
    const SENDS_MESSAGES: bool = true;
    type Args = Args;

    fn resources(&self, args: &Args) -> Vec<Resource> {
        vec![Resource::Channel(args.channel.trim().to_owned())]
    }

    fn timeout(&self) -> Option<Duration> {
        // A long message is sent in parts, each with its own limit.
        Some(Duration::from_secs(300))
    }

    async fn call(&self, args: Args, cx: &Context) -> Result<Reply, Error> {
        let text = Text {
            channel: args.channel.trim().to_owned(),
            chat: args.chat.trim().to_owned(),
            content: args.content,
        };
        let sent = cx.messenger().send(&text).await?;
        let answer = json!({
            "success": true, "chanId": text.channel, "chatId": text.chat, "content": text.content,
        });
        Ok(Reply::json(answer)
            .detail("parts", sent.parts)
            .detail("tries", sent.tries))
    }
}
