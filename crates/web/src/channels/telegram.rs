//! Telegram's Bot API: `sendMessage`.

use super::http::{DecidedBy, Post, Service, ServiceResponse, Verdict, below};
use super::transport::Part;
use crate::Secret;
use crate::client::Url;
use serde_json::{Value, json};

pub(super) struct Telegram {
    pub(super) token: Secret,
    pub(super) base: Url,
}

impl Service for Telegram {
    fn name(&self) -> &'static str {
        "telegram"
    }

    fn base(&self) -> &Url {
        &self.base
    }

    fn max_length(&self) -> Option<usize> {
        Some(4096)
    }

    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn post(&self, part: Part<'_>) -> Result<Post, &'static str> {
        let bot = format!("bot{}", self.token.expose());
        Ok(Post {
            url: below(&self.base, &[&bot, "sendMessage"])?,
            credential: None,
            body: json!({ "chat_id": part.chat, "text": part.text }),
        })
    }

    fn judge(&self, response: &ServiceResponse) -> Verdict {
        let ok = response.json.as_ref().and_then(|json| json.get("ok"));
        match ok.and_then(Value::as_bool) {
            Some(true) if response.is_success() => return Verdict::Accepted,
            None if response.is_success() => return Verdict::Unreadable,
            _ => {}
        }
        let wait = response.seconds("/parameters/retry_after");
        if wait.is_some() {
            return Verdict::Limited(wait);
        }
        let mut explanation = response.string("description");
        let moved = response
            .json
            .as_ref()
            .and_then(|json| json.pointer("/parameters/migrate_to_chat_id"));
        if let (Some(explanation), Some(id)) = (&mut explanation, moved) {
            explanation.push_str(&format!("; its id is now {id}"));
        }
        match explanation {
            Some(explanation) if response.is_success() => Verdict::ErrorCode(explanation),
            // Telegram's response to an invalid token.
            Some(explanation) if response.status == 404 && explanation == "Not Found" => {
                Verdict::Status(Some("the token was refused".to_owned()))
            }
            explanation => Verdict::Status(explanation),
        }
    }

    fn decided_by(&self) -> DecidedBy {
        DecidedBy::Body
    }

    fn secrets(&self) -> Vec<String> {
        let encoded = below(&self.base, &[self.token.expose()])
            .ok()
            .and_then(|url| url.path_segments()?.next_back().map(str::to_owned));
        std::iter::once(self.token.expose().to_owned())
            .chain(encoded)
            .collect()
    }
}
