//! What others say, before it is repeated.

use haft_ops::text::decode::is_deceptive;
use haft_ops::text::secrets::{Spelled, in_base64, without_userinfo};

/// How much of an answer is repeated.
const MOST: usize = 300;

/// Stands where a secret was.
const MARK: &str = "***";

/// Shorter ones are looked for as they are, and in no other spelling.
const SHORTEST: usize = 6;

/// Knows what must not be repeated.
pub(super) struct Scrub(Vec<String>);

impl Scrub {
    /// Hides these values wherever they appear.
    pub(super) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = secrets.into_iter().filter(|s| !s.is_empty()).collect();
        // The longest first, or a part of it would be hidden and the rest not.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self(secrets)
    }

    /// The beginning of a text on one line: no secret, nothing that acts on a
    /// terminal.
    pub(super) fn text(&self, text: &str) -> String {
        // First of all characters that could hide a secret from the search.
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
            // A service may say it as it stood in what was sent.
            if secret.len() >= SHORTEST {
                text = Spelled::new(secret).cut_from(&text, MARK).unwrap_or(text);
                for base64 in in_base64(secret) {
                    text = text.replace(&base64, MARK);
                }
            }
        }
        text = without_userinfo(&text, MARK).into_owned();
        match text.char_indices().nth(MOST - 1) {
            Some((at, _)) if text.chars().count() > MOST => {
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
    use super::{MOST, Scrub};

    #[test]
    fn secrets_controls_and_length() {
        let scrub = Scrub::new(["to".to_owned(), "token-1".to_owned(), String::new()]);
        assert_eq!(scrub.text("bad token-1\r\n\x1b[31mred"), "bad *** [31mred");
        assert_eq!(scrub.text("tok\u{200b}en-1"), "***");
        assert_eq!(scrub.text(r"a \u0074oken-1"), "a ***");
        assert_eq!(scrub.text("a token%2D1"), "a ***");
        assert_eq!(scrub.text("http://a:b1c2@host"), "http://***@host");
        let long = scrub.text(&"é".repeat(1000));
        assert_eq!(long.chars().count(), MOST);
        assert!(long.ends_with('…'));
        assert_eq!(scrub.text(&"é".repeat(MOST)).chars().count(), MOST);
    }
}
