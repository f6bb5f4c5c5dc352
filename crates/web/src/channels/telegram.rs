//! Telegram's Bot API: `sendMessage`.

use super::carrier::Part;
use super::http::{Answer, Post, Service, Told, Verdict, below};
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

    fn most(&self) -> Option<usize> {
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

    fn judge(&self, answer: &Answer) -> Verdict {
        let ok = answer.json.as_ref().and_then(|json| json.get("ok"));
        match ok.and_then(Value::as_bool) {
            Some(true) if answer.is_success() => return Verdict::Accepted,
            None if answer.is_success() => return Verdict::Unreadable,
            _ => {}
        }
        let wait = answer.seconds("/parameters/retry_after");
        if wait.is_some() {
            return Verdict::Limited(wait);
        }
        let mut said = answer.word("description");
        let moved = answer
            .json
            .as_ref()
            .and_then(|json| json.pointer("/parameters/migrate_to_chat_id"));
        if let (Some(said), Some(id)) = (&mut said, moved) {
            said.push_str(&format!("; its id is now {id}"));
        }
        match said {
            Some(said) if answer.is_success() => Verdict::Word(said),
            // That is what a token gets which is none.
            Some(said) if answer.status == 404 && said == "Not Found" => {
                Verdict::Status(Some("the token was refused".to_owned()))
            }
            said => Verdict::Status(said),
        }
    }

    fn verdict(&self) -> Told {
        Told::ByBody
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
