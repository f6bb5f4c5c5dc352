//! Slack's Web API: `chat.postMessage`.

use super::http::{DecidedBy, Post, Service, ServiceResponse, Verdict, below};
use super::transport::Part;
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

    /// Slack recommends at most 4,000 characters: beyond that it may split the text, and it
    /// truncates at 40,000. Escaping makes a character at most five times as long, which stays
    /// below that.
    fn max_length(&self) -> Option<usize> {
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
            body: json!({ "channel": part.chat, "text": escape_markup(part.text) }),
        })
    }

    fn judge(&self, response: &ServiceResponse) -> Verdict {
        let ok = response.json.as_ref().and_then(|json| json.get("ok"));
        match ok.and_then(Value::as_bool) {
            Some(true) if response.is_success() => return Verdict::Accepted,
            None if response.is_success() => return Verdict::Unreadable,
            _ => {}
        }
        match response.string("error") {
            Some(error_code) if error_code == "ratelimited" => Verdict::Limited(None),
            Some(error_code) if response.is_success() => {
                Verdict::ErrorCode(match meaning(&error_code) {
                    Some(meaning) => format!("{error_code}: {meaning}"),
                    None => error_code,
                })
            }
            error_code => Verdict::Status(error_code),
        }
    }

    fn decided_by(&self) -> DecidedBy {
        DecidedBy::Body
    }

    fn secrets(&self) -> Vec<String> {
        vec![self.token.expose().to_owned()]
    }
}

/// Escapes the three characters that Slack reads as markup, so that a text arrives as it
/// was written and `<!channel>` does not notify the whole channel. Only the mention of one person,
/// `<@U012AB3CD>`, stays a mention.
fn escape_markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let (mark, replacement) = match (mention(from), from.chars().next()) {
            (Some(mention), _) => (mention, mention),
            (None, Some('<')) => ("<", "&lt;"),
            (None, Some('>')) => (">", "&gt;"),
            (None, _) => ("&", "&amp;"),
        };
        out.push_str(replacement);
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

fn meaning(error_code: &str) -> Option<&'static str> {
    Some(match error_code {
        "invalid_auth" | "not_authed" | "account_inactive" | "token_revoked" | "token_expired" => {
            "the token was refused"
        }
        "channel_not_found" => "chat not found, or not visible to the bot",
        "not_in_channel" => "the bot is not a member of this chat",
        "is_archived" => "the chat is archived",
        "missing_scope" => "the token may not send messages",
        _ => return None,
    })
}
