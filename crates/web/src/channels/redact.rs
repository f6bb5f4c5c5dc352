//! Makes text from services safe to show.

use haft_ops::text::decode::is_deceptive;
use haft_ops::text::secrets::{Spelled, in_base64, without_userinfo};

/// Maximum length in characters.
const MAX_CHARS: usize = 300;

/// Replaces a secret.
const MARK: &str = "***";

/// Shorter secrets are only searched literally, not in other encodings.
const MIN_ENCODED: usize = 6;

/// Replaces a fixed set of secrets.
pub(super) struct Redactor(Vec<String>);

impl Redactor {
    /// Redacts these values wherever they appear.
    pub(super) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = secrets.into_iter().filter(|s| !s.is_empty()).collect();
        // Longest first, so that a shorter secret cannot leave part of a longer one visible.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self(secrets)
    }

    /// Returns the beginning of a text on one line, without secrets and without characters that
    /// control a terminal.
    pub(super) fn text(&self, text: &str) -> String {
        // First remove characters that could hide a secret from the search.
        let bare: String = text
            .chars()
            .map(|c| if c.is_whitespace() { ' ' } else { c })
            .filter(|c| !c.is_control() && !is_deceptive(*c))
            .collect();
        let mut text = bare.split_whitespace().collect::<Vec<_>>().join(" ");
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), MARK);
            }
            // A service may repeat the secret as it was encoded in the request.
            if secret.len() >= MIN_ENCODED {
                text = Spelled::new(secret).cut_from(&text, MARK).unwrap_or(text);
                for base64 in in_base64(secret) {
                    text = text.replace(&base64, MARK);
                }
            }
        }
        text = without_userinfo(&text, MARK).into_owned();
        match text.char_indices().nth(MAX_CHARS - 1) {
            Some((at, _)) if text.chars().count() > MAX_CHARS => {
                text.truncate(at);
                text.push('…');
                text
            }
            _ => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_CHARS, Redactor};

    #[test]
    fn redacts_secrets_and_control_characters_and_truncates() {
        let redactor = Redactor::new(["to".to_owned(), "token-1".to_owned(), String::new()]);
        assert_eq!(
            redactor.text("bad token-1\r\n\x1b[31mred"),
            "bad *** [31mred"
        );
        assert_eq!(redactor.text("tok\u{200b}en-1"), "***");
        assert_eq!(redactor.text(r"a \u0074oken-1"), "a ***");
        assert_eq!(redactor.text("a token%2D1"), "a ***");
        assert_eq!(redactor.text("http://a:b1c2@host"), "http://***@host");
        let long = redactor.text(&"é".repeat(1000));
        assert_eq!(long.chars().count(), MAX_CHARS);
        assert!(long.ends_with('…'));
        assert_eq!(
            redactor.text(&"é".repeat(MAX_CHARS)).chars().count(),
            MAX_CHARS
        );
    }
}
