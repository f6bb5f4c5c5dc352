//! Telling secrets from other values, so that none is copied into a file.

use std::ffi::OsStr;

/// Prefixes of keys and tokens of well-known services.
const PREFIXES: [&str; 22] = [
    "sk-",
    "sk_",
    "pk_live",
    "rk_live",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
    "hf_",
    "npm_",
];

/// Shortest run of mixed letters and digits that is taken for a key.
const LONG: usize = 16;

/// Whether a text looks like a key or a token, whatever it is called.
pub(super) fn looks_secret(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.split(|c: char| !is_part(c)).any(is_token)
}

fn is_token(word: &str) -> bool {
    let is_known = PREFIXES
        .iter()
        .any(|prefix| word.len() >= prefix.len() + 8 && word.starts_with(prefix));
    let is_mixed = |run: &str| {
        run.len() >= LONG
            && run.contains(|c: char| c.is_ascii_digit())
            && run.contains(|c: char| c.is_ascii_alphabetic())
    };
    is_known || word.split(['-', '_', '.']).any(is_mixed)
}

/// Whether the value of something with this name is a secret.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    // Names of variables, of flags (`--api-key`) and of headers (`X-Api-Key`).
    let name = name.trim_start_matches('-').replace('-', "_");
    haft::ops::exec::environment::is_withheld(OsStr::new(&name), OsStr::new(value))
        || looks_secret(value)
}

/// Whether a text is written out, without a variable in it, or with a secret beside one.
pub(super) fn is_literal(text: &str) -> bool {
    let mut rest = String::new();
    let mut has_variable = false;
    for (at, piece) in text.split("${").enumerate() {
        match piece.split_once('}') {
            Some((_, after)) if at > 0 => {
                has_variable = true;
                rest.push_str(after);
            }
            _ => rest.push_str(piece),
        }
    }
    !has_variable || looks_secret(&rest)
}

/// The name of a variable made from several words: `GITHUB_AUTHORIZATION`.
pub(super) fn variable(words: &[&str]) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_uppercase(),
        false => '_',
    };
    let name: String = words.join("_").chars().map(plain).collect();
    let parts: Vec<&str> = name.split('_').filter(|part| !part.is_empty()).collect();
    let name = parts.join("_");
    match name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
        true => format!("MCP_{name}"),
        false => name,
    }
}

/// A text that may be shown: words that look like secrets are hidden.
pub(super) fn redacted(text: &str) -> String {
    if !looks_secret(text) {
        return text.to_owned();
    }
    let words: Vec<&str> = text
        .split(' ')
        .map(|word| match looks_secret(word) {
            true => "(hidden)",
            false => word,
        })
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_from_names() {
        for secret in [
            "sk-ant-REDACTED",
            "Bearer eyJhbGciOiJIUzI1NiJ9.e30.x",
            "ghp_0123456789abcdefghij",
            "https://mcp.example.com/s/a1b2c3d4e5f6a7b8c9/mcp",
        ] {
            assert!(looks_secret(secret), "{secret}");
        }
        for name in [
            "@modelcontextprotocol/server-github",
            "claude-sonnet-4-5-20250929",
            "https://api.example.com/v1",
            "/home/someone/projects/2024",
            "--transport=stdio",
        ] {
            assert!(!looks_secret(name), "{name}");
        }
        assert!(is_literal("Bearer x") && !is_literal("Bearer ${TOKEN}"));
        assert!(is_literal("ghp_0123456789abcdefghij${X}"));
        assert_eq!(variable(&["git-hub", "--token"]), "GIT_HUB_TOKEN");
        assert!(is_secret("--api-key", "x"));
        assert!(is_secret("X-Auth", "x"));
        assert!(is_secret("DATABASE_URL", "postgres://me:pw@host/db"));
        assert!(!is_secret("HEIMDALL_WORKSPACE", "/workspace"));
    }
}
