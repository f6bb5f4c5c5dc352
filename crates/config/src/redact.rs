//! Hides keys, tokens and passwords in output.

use super::node::Node;
use super::variables::{self, is_reference};
use crate::environment::Environment;

/// Replaces a hidden value.
pub(crate) const HIDDEN: &str = "(hidden)";

/// A key whose name contains one of these words holds a secret.
const SECRET: [&str; 7] = [
    "key",
    "token",
    "secret",
    "passw",
    "credential",
    "auth",
    "cookie",
];

/// Whether a key of this name holds a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    name.to_ascii_lowercase().contains("channels") || is_secret_word(name)
}

fn is_secret_word(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // `max_tokens` is a number of tokens, not a token.
    name != "max_tokens" && SECRET.iter().any(|word| name.contains(word))
}

/// Returns the secrets in the value of a key, with variables expanded.
pub(crate) fn secrets(name: &str, node: &Node, environment: &Environment) -> Vec<String> {
    let lookup = |name: &str| environment.text(name);
    let texts = node.texts(name).into_iter();
    texts
        .filter(|(name, _)| is_secret_word(name))
        .filter_map(|(_, text)| variables::expand(text, &lookup).ok())
        .collect()
}

/// Returns a text that may be shown. The name of a variable is not a secret.
pub fn text(name: &str, text: &str) -> String {
    if is_reference(text) {
        text.to_owned()
    } else if is_secret(name) {
        HIDDEN.to_owned()
    } else {
        url(text)
    }
}

/// Removes the user name, password and query from a URL.
fn url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let (place, query) = match rest.split_once(['?', '#']) {
        Some((place, _)) => (place, format!("?{HIDDEN}")),
        None => (rest, String::new()),
    };
    let (host, path) = match place.split_once('/') {
        Some((host, path)) => (host, format!("/{path}")),
        None => (place, String::new()),
    };
    // The last `@`, because a password may contain one.
    match (host.rsplit_once('@'), path.rsplit_once('@')) {
        (Some((_, host)), _) => format!("{scheme}://{HIDDEN}@{host}{path}{query}"),
        // A slash in the password makes the host appear to end early.
        (None, Some((_, rest))) => format!("{scheme}://{HIDDEN}@{rest}{query}"),
        (None, None) => format!("{scheme}://{host}{path}{query}"),
    }
}

/// Returns a line of a file as an error may show it, and whether something was hidden.
pub(crate) fn source_line(line: &str) -> (String, bool) {
    let shown: String = line.chars().take(120).collect();
    match shown.split_once([':', '=']) {
        Some((name, _)) if is_secret(name) => (format!("{name}: {HIDDEN}"), true),
        _ if is_secret(&shown) || (shown.contains("://") && shown.contains('@')) => {
            (HIDDEN.to_owned(), true)
        }
        _ => (shown, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden() {
        for (name, value, shown) in [
            ("api_key", "sk-1", "(hidden)"),
            ("api_key", "${ANTHROPIC_API_KEY}", "${ANTHROPIC_API_KEY}"),
            ("model", "sonnet", "sonnet"),
            (
                "base_url",
                "https://me:pw@host/v1",
                "https://(hidden)@host/v1",
            ),
            (
                "base_url",
                "https://me:p@w@host/v1",
                "https://(hidden)@host/v1",
            ),
            (
                "base_url",
                "https://me:p/w@host/v1",
                "https://(hidden)@host/v1",
            ),
            (
                "base_url",
                "https://host/v1?key=1",
                "https://host/v1?(hidden)",
            ),
            ("tools.channels", "x", "(hidden)"),
        ] {
            assert_eq!(text(name, value), shown);
        }
        assert_eq!(source_line("api_key: \"sk-1").0, "api_key: (hidden)");
        assert_eq!(source_line("  x: [sk-token").0, "(hidden)");
        assert_eq!(source_line("  preset: [").0, "  preset: [");
    }
}
