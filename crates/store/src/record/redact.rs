//! Keeps secrets out of records.

use haft_ops::text::secrets::{Spelled, in_base64, without_userinfo};
use memchr::memmem::Finder;
use std::borrow::Cow;

/// Replaces a secret.
pub const REDACTED: &str = "[redacted]";

/// Minimum length of a secret in characters; shorter values are too likely to occur as
/// ordinary text.
const MIN_LENGTH: usize = 8;

/// Known secrets, in every encoding in which a record could contain them.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that no secret is redacted only in part.
    secrets: Vec<Finder<'static>>,
    /// Their Base64 encodings.
    encoded: Vec<Finder<'static>>,
    /// Secrets whose characters may be escaped in other ways.
    spelled: Vec<Spelled>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Redactor(***)")
    }
}

impl Redactor {
    /// Creates a redactor for these values. Values of fewer than 8 characters are ignored:
    /// they are too likely to occur as ordinary text.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut redactor = Self::default();
        redactor.add(secrets);
        redactor
    }

    /// Adds these values.
    pub fn add(&mut self, secrets: impl IntoIterator<Item = String>) {
        let known = std::mem::take(&mut self.secrets).into_iter();
        let known = known.filter_map(|known| String::from_utf8(known.needle().to_vec()).ok());
        let mut spellings: Vec<String> = known.collect();
        for secret in secrets {
            let secret = secret.trim();
            if secret.chars().count() < MIN_LENGTH {
                continue;
            }
            // As in JSON, and as in JSON inside a JSON string.
            let once = json_escaped(secret);
            spellings.extend([json_escaped(&once), once, secret.to_owned()]);
            let encoded = in_base64(secret).into_iter();
            self.encoded.extend(encoded.map(finder));
            self.spelled.push(Spelled::new(secret));
        }
        spellings.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        spellings.dedup();
        self.secrets = spellings.into_iter().map(finder).collect();
        self.spelled.sort_by(|a, b| b.cmp(a));
        self.spelled.dedup();
    }

    /// Whether there are no secrets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Returns the start of the part at the end of a text that may be the beginning of a
    /// secret.
    #[must_use]
    pub fn incomplete_from(&self, text: &str) -> usize {
        let may_be_start = |at: &usize| {
            let end = text.as_bytes().get(*at..).unwrap_or_default();
            let secrets = self.secrets.iter();
            secrets
                .map(Finder::needle)
                .any(|secret| secret.starts_with(end))
        };
        let longest = self.secrets.first().map_or(0, |one| one.needle().len());
        let first = text.len().saturating_sub(longest.saturating_sub(1));
        (first..text.len())
            .filter(|at| text.is_char_boundary(*at))
            .find(may_be_start)
            .unwrap_or(text.len())
    }

    /// Replaces all secrets in a text.
    #[must_use]
    pub fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in self.secrets.iter().chain(&self.encoded) {
            if let Some(redacted) = without(&text, secret) {
                text = Cow::Owned(redacted);
            }
        }
        let may_escape = memchr::memchr2(b'\\', b'%', text.as_bytes()).is_some();
        for secret in &self.spelled {
            if (may_escape || secret.has_space())
                && let Some(redacted) = secret.cut_from(&text, REDACTED)
            {
                text = Cow::Owned(redacted);
            }
        }
        text
    }

    /// Redacts secrets, and also user names and passwords in URLs, which need not be known.
    #[must_use]
    pub fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.clean(text) {
            Cow::Borrowed(text) => without_userinfo(text, REDACTED),
            Cow::Owned(redacted) => match without_userinfo(&redacted, REDACTED) {
                Cow::Borrowed(_) => Cow::Owned(redacted),
                Cow::Owned(redacted) => Cow::Owned(redacted),
            },
        }
    }

    /// Redacts in place, like [`Redactor::scrub`].
    pub(crate) fn redact_in_place(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.scrub(text) {
            *text = redacted;
        }
    }
}

fn finder(secret: String) -> Finder<'static> {
    Finder::new(secret.as_bytes()).into_owned()
}

fn without(text: &str, secret: &Finder<'_>) -> Option<String> {
    let mut places = secret.find_iter(text.as_bytes()).peekable();
    places.peek()?;
    let mut redacted = String::with_capacity(text.len());
    let mut from = 0;
    for at in places {
        // A secret consists of whole characters, so both ends are character boundaries.
        redacted.push_str(text.get(from..at).unwrap_or_default());
        redacted.push_str(REDACTED);
        from = at + secret.needle().len();
    }
    redacted.push_str(text.get(from..).unwrap_or_default());
    Some(redacted)
}

/// Returns a text as it is written between the quotes of JSON.
fn json_escaped(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    let inner = json
        .strip_prefix('"')
        .and_then(|json| json.strip_suffix('"'));
    inner.unwrap_or(&json).to_owned()
}

#[cfg(test)]
mod spellings;
#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_redacted_in_every_encoding_and_nothing_else_is() {
        let secrets = [
            "sk-\"quoted\\é",
            "sk-canary-1",
            "sk-canary-1-longer",
            "short",
        ];
        let redactor = Redactor::new(secrets.map(str::to_owned));
        let inner = json!({ "key": secrets[0], "of": secrets[2] }).to_string();
        let body = json!({ "text": format!("a {} b", secrets[1]), "inner": inner }).to_string();
        let redacted = redactor.clean(&body);
        assert!(
            !redacted.contains("sk-") && !redacted.contains("longer"),
            "{redacted}"
        );
        let parsed: serde_json::Value = serde_json::from_str(&redacted).unwrap();
        assert_eq!(parsed["text"], "a [redacted] b");
        assert!(matches!(
            redactor.clean("short é"),
            Cow::Borrowed("short é")
        ));
        assert_eq!(redactor.clean("ésk-canary-1é"), "é[redacted]é");
    }

    #[test]
    fn scrub_also_redacts_credentials_in_urls() {
        let redactor = Redactor::new(["sk-canary-1".to_owned()]);
        let text = "sk-canary-1 https://me:hunter2@host";
        assert_eq!(redactor.clean(text), "[redacted] https://me:hunter2@host");
        let redacted = "[redacted] https://[redacted]@host";
        assert_eq!(redactor.scrub(text), redacted);
        assert_eq!(Redactor::default().scrub("x://a:b1@c"), "x://[redacted]@c");
        assert!(matches!(redactor.scrub("plain"), Cow::Borrowed("plain")));
    }
}
