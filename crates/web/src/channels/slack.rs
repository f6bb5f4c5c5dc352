//! Slack's Web API: `chat.postMessage`.

use super::carrier::Part;
use super::http::{Answer, Post, Service, Told, Verdict, below};
use crate::Secret;
use crate::client::{Header, Url};
use serde_json::{Value, json};

pub(super) struct Slack {
    pub(super) token: Secret,
    pub(super) base: Url,
}

impl Service for Slack {
    fn name(&self) -> &'static str {
        "slack"
    }

    fn base(&self) -> &Url {
        &self.base
    }

    /// Slack cuts at 40,000 and breaks a text apart as it likes beyond 4,000,
    /// which is what it asks for. Three more units for each mark below fit in
    /// what it really takes.
    fn most(&self) -> Option<usize> {
        Some(4000)
    }

    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn post(&self, part: Part<'_>) -> Result<Post, &'static str> {
        // A person may be mentioned; `<!channel>` and its like, which call
        // everybody, stay text.
        let text = part.text.replace("<!", "&lt;!");
        Ok(Post {
            url: below(&self.base, &["api", "chat.postMessage"])?,
            credential: Some(Header::Credential(
                "authorization",
                Secret::new(format!("Bearer {}", self.token.expose())),
            )),
            body: json!({ "channel": part.chat, "text": text }),
        })
    }

    fn judge(&self, answer: &Answer) -> Verdict {
        let ok = answer.json.as_ref().and_then(|json| json.get("ok"));
        match ok.and_then(Value::as_bool) {
            Some(true) if answer.is_success() => return Verdict::Accepted,
            None if answer.is_success() => return Verdict::Unreadable,
            _ => {}
        }
        match answer.word("error") {
            Some(word) if word == "ratelimited" => Verdict::Limited(None),
            Some(word) if answer.is_success() => Verdict::Word(match meaning(&word) {
                Some(meaning) => format!("{word}: {meaning}"),
                None => word,
            }),
            word => Verdict::Status(word),
        }
    }

    fn verdict(&self) -> Told {
        Told::ByBody
    }

    fn secrets(&self) -> Vec<String> {
        vec![self.token.expose().to_owned()]
    }
}

fn meaning(word: &str) -> Option<&'static str> {
    Some(match word {
        "invalid_auth" | "not_authed" | "account_inactive" | "token_revoked" | "token_expired" => {
            "the token was refused"
        }
        "channel_not_found" => "no such chat, or none the bot can see",
        "not_in_channel" => "the bot is not a member of this chat",
        "is_archived" => "the chat is archived",
        "missing_scope" => "the token may not send messages",
        _ => return None,
    })
}
