//! Secrets stay out of what is recorded.

use haft_ops::text::secrets::{Spelled, in_base64, without_userinfo};
use memchr::memmem::Finder;
use std::borrow::Cow;

/// Stands where a secret was.
pub const REDACTED: &str = "[redacted]";

/// Shorter values are left: they are too likely to be something else.
const SHORTEST: usize = 8;

/// Known secrets, in every spelling a record could have them in.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The longest first, so that none is left in part.
    secrets: Vec<Finder<'static>>,
    /// What Base64 makes of them.
    encoded: Vec<Finder<'static>>,
    /// The same for those whose characters are escaped in other ways.
    spelled: Vec<Spelled>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Redactor(***)")
    }
}

impl Redactor {
    /// Knows these values. Those of fewer than 8 characters are left: they are too likely
    /// to be something else.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut redactor = Self::default();
        redactor.add(secrets);
        redactor
    }

    /// Knows these values too.
    pub fn add(&mut self, secrets: impl IntoIterator<Item = String>) {
        let known = std::mem::take(&mut self.secrets).into_iter();
        let known = known.filter_map(|known| String::from_utf8(known.needle().to_vec()).ok());
        let mut spellings: Vec<String> = known.collect();
        for secret in secrets {
            let secret = secret.trim();
            if secret.chars().count() < SHORTEST {
                continue;
            }
            // Inside JSON, and inside JSON that is a text in JSON.
            let once = quoted(secret);
            spellings.extend([quoted(&once), once, secret.to_owned()]);
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

    /// Whether there is nothing to look for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Where the end of a text begins that may become one of them when more comes.
    #[must_use]
    pub fn begun(&self, text: &str) -> usize {
        let begins = |at: &usize| {
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
            .find(begins)
            .unwrap_or(text.len())
    }

    /// A text without them.
    #[must_use]
    pub fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for secret in self.secrets.iter().chain(&self.encoded) {
            if let Some(cleaned) = without(&text, secret) {
                text = Cow::Owned(cleaned);
            }
        }
        let may_escape = memchr::memchr2(b'\\', b'%', text.as_bytes()).is_some();
        for secret in &self.spelled {
            if (may_escape || secret.has_space())
                && let Some(cleaned) = secret.cut_from(&text, REDACTED)
            {
                text = Cow::Owned(cleaned);
            }
        }
        text
    }

    /// The same for what is written down: without user names and passwords in addresses
    /// too, which nobody had to name.
    #[must_use]
    pub fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.clean(text) {
            Cow::Borrowed(text) => without_userinfo(text, REDACTED),
            Cow::Owned(cleaned) => match without_userinfo(&cleaned, REDACTED) {
                Cow::Borrowed(_) => Cow::Owned(cleaned),
                Cow::Owned(cleaned) => Cow::Owned(cleaned),
            },
        }
    }

    /// The same, in place.
    pub(super) fn wash(&self, text: &mut String) {
        if let Cow::Owned(cleaned) = self.scrub(text) {
            *text = cleaned;
        }
    }
}

fn finder(secret: String) -> Finder<'static> {
    Finder::new(secret.as_bytes()).into_owned()
}

fn without(text: &str, secret: &Finder<'_>) -> Option<String> {
    let mut places = secret.find_iter(text.as_bytes()).peekable();
    places.peek()?;
    let mut cleaned = String::with_capacity(text.len());
    let mut from = 0;
    for at in places {
        // A secret is whole characters, so both ends are between characters.
        cleaned.push_str(text.get(from..at).unwrap_or_default());
        cleaned.push_str(REDACTED);
        from = at + secret.needle().len();
    }
    cleaned.push_str(text.get(from..).unwrap_or_default());
    Some(cleaned)
}

/// As it stands between the quotes of a JSON text.
fn quoted(text: &str) -> String {
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
    fn secrets_go_in_every_spelling_and_nothing_else_does() {
        let secrets = [
            "sk-\"quoted\\é",
            "sk-canary-1",
            "sk-canary-1-longer",
            "short",
        ];
        let redactor = Redactor::new(secrets.map(str::to_owned));
        let inner = json!({ "key": secrets[0], "of": secrets[2] }).to_string();
        let body = json!({ "text": format!("a {} b", secrets[1]), "inner": inner }).to_string();
        let cleaned = redactor.clean(&body);
        assert!(
            !cleaned.contains("sk-") && !cleaned.contains("longer"),
            "{cleaned}"
        );
        let parsed: serde_json::Value = serde_json::from_str(&cleaned).unwrap();
        assert_eq!(parsed["text"], "a [redacted] b");
        assert!(matches!(
            redactor.clean("short é"),
            Cow::Borrowed("short é")
        ));
        assert_eq!(redactor.clean("ésk-canary-1é"), "é[redacted]é");
    }

    #[test]
    fn addresses_are_cleaned_where_something_is_written_down() {
        let redactor = Redactor::new(["sk-canary-1".to_owned()]);
        let text = "sk-canary-1 https://me:hunter2@host";
        assert_eq!(redactor.clean(text), "[redacted] https://me:hunter2@host");
        let cleaned = "[redacted] https://[redacted]@host";
        assert_eq!(redactor.scrub(text), cleaned);
        assert_eq!(Redactor::default().scrub("x://a:b1@c"), "x://[redacted]@c");
        assert!(matches!(redactor.scrub("plain"), Cow::Borrowed("plain")));
    }
}
