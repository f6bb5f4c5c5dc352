//! Discord's API: a message in a channel.

use super::carrier::Part;
use super::http::{Answer, Post, Service, Told, Verdict, below, check_segment};
use crate::Secret;
use crate::client::{Header, Url};
use serde_json::json;

pub(super) struct Discord {
    pub(super) token: Secret,
    pub(super) base: Url,
}

impl Service for Discord {
    fn name(&self) -> &'static str {
        "discord"
    }

    fn base(&self) -> &Url {
        &self.base
    }

    fn most(&self) -> Option<usize> {
        Some(2000)
    }

    fn check(&self, chat: &str) -> Result<(), String> {
        check_segment(chat)
    }

    fn post(&self, part: Part<'_>) -> Result<Post, &'static str> {
        Ok(Post {
            url: below(
                &self.base,
                &["api", "v10", "channels", part.chat, "messages"],
            )?,
            credential: Some(Header::Credential(
                "authorization",
                Secret::new(format!("Bot {}", self.token.expose())),
            )),
            // A person may be mentioned; `@everyone` and roles stay text.
            body: json!({ "content": part.text, "allowed_mentions": { "parse": ["users"] } }),
        })
    }

    fn judge(&self, answer: &Answer) -> Verdict {
        if answer.is_success() {
            return Verdict::Accepted;
        }
        match answer.seconds("/retry_after") {
            Some(wait) => Verdict::Limited(Some(wait)),
            None => Verdict::Status(answer.word("message")),
        }
    }

    fn verdict(&self) -> Told {
        Told::ByStatus
    }

    fn secrets(&self) -> Vec<String> {
        vec![self.token.expose().to_owned()]
    }
}
