//! Discord's API: posts a message to a channel.

use super::http::{DecidedBy, Post, Service, ServiceResponse, Verdict, below, check_segment};
use super::transport::Part;
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

    fn max_length(&self) -> Option<usize> {
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
            // Users can be mentioned; `@everyone` and roles stay plain text.
            body: json!({ "content": part.text, "allowed_mentions": { "parse": ["users"] } }),
        })
    }

    fn judge(&self, response: &ServiceResponse) -> Verdict {
        if response.is_success() {
            return Verdict::Accepted;
        }
        match response.seconds("/retry_after") {
            Some(wait) => Verdict::Limited(Some(wait)),
            None => Verdict::Status(response.string("message")),
        }
    }

    fn decided_by(&self) -> DecidedBy {
        DecidedBy::Status
    }

    fn secrets(&self) -> Vec<String> {
        vec![self.token.expose().to_owned()]
    }
}
