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
    is_secret_name(name) || holds_secret(value)
}

/// Whether a name says that its value is a secret: a variable (`PW`), a flag (`--api-key`), a
/// header (`X-Api-Key`) or a key of JSON (`apiKey`).
fn is_secret_name(name: &str) -> bool {
    let mut plain = String::new();
    let mut before = '_';
    for c in name.trim_start_matches('-').chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            plain.push('_');
        }
        plain.push(match c {
            '-' | '.' => '_',
            c => c.to_ascii_uppercase(),
        });
        before = c;
    }
    // `ENV` names a place for variables, as in `--env`, and is only withheld from commands.
    plain.split('_').any(|word| SHORT.contains(&word))
        || plain != "ENV"
            && haft::ops::exec::environment::is_withheld(OsStr::new(&plain), OsStr::new(""))
}

/// Short names of passwords and of what carries them.
const SHORT: [&str; 5] = ["PW", "PSW", "PSWD", "AUTHORIZATION", "DSN"];

/// Words before a key in a header.
pub(super) const SCHEMES: [&str; 4] = ["bearer", "basic", "token", "apikey"];

/// Whether some part of a text is a secret, by how it looks or by what stands before it:
/// `Server=x;Password=…`, `{"apiKey": "…"}`, `Bearer …`, `scheme://user:password@host`.
pub(super) fn holds_secret(text: &str) -> bool {
    let names_one = || {
        text.match_indices(['=', ':']).any(|(at, sign)| {
            let (before, after) = text.split_at(at);
            is_named_secret(before, sign, after.strip_prefix(sign).unwrap_or_default())
        })
    };
    let bears_one = || {
        let mut words = text.split_ascii_whitespace();
        words.any(|word| word.to_ascii_lowercase().ends_with("bearer")) && words.next().is_some()
    };
    looks_secret(text)
        || haft::ops::exec::environment::is_withheld(OsStr::new(""), OsStr::new(text))
        || bears_one()
        || names_one()
}

/// Whether what stands before a sign is the name of a secret, and what stands after it is one.
fn is_named_secret(before: &str, sign: &str, after: &str) -> bool {
    const AROUND: [char; 4] = ['"', '\'', '\\', ' '];
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let start = before.trim_end_matches(AROUND);
    let rest = start.trim_end_matches(is_name);
    let name = start.strip_prefix(rest).unwrap_or_default();
    // The tag of an image and the place of a volume are no secrets: `x/auth:latest`, `keys:/keys`.
    if sign == ":" && (rest.ends_with(['/', '@']) || after.starts_with('/')) {
        return false;
    }
    let mut words = after
        .split(|c: char| c.is_ascii_whitespace() || "\"'\\,;&{}[]()".contains(c))
        .filter(|word| !word.is_empty());
    let mut value = words.next();
    if value.is_some_and(|word| SCHEMES.contains(&word.to_ascii_lowercase().as_str())) {
        value = words.next();
    }
    value.is_some() && is_secret_name(name)
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
    !has_variable || holds_secret(&rest)
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
    if !holds_secret(text) {
        return text.to_owned();
    }
    let mut is_value = false;
    let words: Vec<&str> = text
        .split(' ')
        .map(|word| {
            let hides = is_value || holds_secret(word);
            // `Authorization: Bearer x`: what follows such a word is hidden.
            let is_scheme = SCHEMES.contains(&word.to_ascii_lowercase().as_str());
            let names_one = word
                .strip_suffix([':', '='])
                .is_some_and(|name| is_secret_name(name.trim_start_matches(['"', '\''])));
            is_value = is_scheme || names_one;
            match hides && !is_scheme {
                true => "(hidden)",
                false => word,
            }
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
        for secret in [
            "Server=x;Password=plainpw",
            "{\"apiKey\":\"plainpw\"}",
            "{'accessToken': 'plainpw'}",
            "Authorization: Bearer plainpw",
            "X-Api-Key:plainpw",
            "postgresql://admin:plainpw@db/prod",
            "https://h/?token=plainpw",
            "PW=plainpw",
        ] {
            assert!(holds_secret(secret), "{secret}");
            assert!(!redacted(secret).contains("plainpw"), "{secret}");
        }
        for harmless in [
            "--transport=stdio",
            "ghcr.io/acme/auth:latest",
            "/srv/keys:/keys:ro",
            "Authorization: Bearer",
            "--token=",
            "http://localhost:8080/mcp",
            "node:20",
        ] {
            assert!(!holds_secret(harmless), "{harmless}");
        }
        assert!(is_literal("https://me:plainpw@${HOST}/"));
        assert!(!is_literal("Authorization: Bearer ${TOKEN}"));
    }
}
