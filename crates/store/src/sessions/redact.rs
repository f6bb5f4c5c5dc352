//! Secrets stay out of what is recorded.

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
        }
        spellings.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        spellings.dedup();
        let finder = |secret: String| Finder::new(secret.as_bytes()).into_owned();
        self.secrets = spellings.into_iter().map(finder).collect();
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
        for secret in &self.secrets {
            if let Some(cleaned) = without(&text, secret) {
                text = Cow::Owned(cleaned);
            }
        }
        text
    }

    /// The same, in place.
    pub(super) fn wash(&self, text: &mut String) {
        if let Cow::Owned(cleaned) = self.clean(text) {
            *text = cleaned;
        }
    }
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
}
