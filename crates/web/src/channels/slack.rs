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
    /// which is what it asks for. The marks that are escaped below become five
    /// characters at most, which still fits in what it really takes.
    fn most(&self) -> Option<usize> {
        Some(4000)
    }

    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn post(&self, part: Part<'_>) -> Result<Post, &'static str> {
        Ok(Post {
            url: below(&self.base, &["api", "chat.postMessage"])?,
            credential: Some(Header::Credential(
                "authorization",
                Secret::new(format!("Bearer {}", self.token.expose())),
            )),
            body: json!({ "channel": part.chat, "text": escaped(part.text) }),
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

/// Escapes the three characters that Slack reads as markup, so that a text arrives as it
/// was written and `<!channel>` does not notify everybody. Only the mention of one person,
/// `<@U012AB3CD>`, stays a mention.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let (mark, becomes) = match (mention(from), from.chars().next()) {
            (Some(mention), _) => (mention, mention),
            (None, Some('<')) => ("<", "&lt;"),
            (None, Some('>')) => (">", "&gt;"),
            (None, _) => ("&", "&amp;"),
        };
        out.push_str(becomes);
        rest = from.strip_prefix(mark).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Returns the mention of a person that a text starts with.
fn mention(text: &str) -> Option<&str> {
    let (id, _) = text.strip_prefix("<@")?.split_once('>')?;
    let is_id = id.starts_with(['U', 'W'])
        && id
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    is_id.then(|| text.get(..id.len() + 3)).flatten()
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
