//! Detects secrets, so that none is copied into a file.

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

/// Minimum length of mixed letters and digits that counts as a key.
const MIN_MIXED: usize = 16;

/// Whether a text looks like a key or a token, regardless of its name.
pub(crate) fn looks_secret(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/".contains(c);
    text.split(|c: char| !is_part(c)).any(is_token)
        || text.split(|c: char| !is_base64(c)).any(is_aws_key)
}

/// Whether a text looks like the secret key of AWS: forty characters of base64, with too many
/// capitals for a path.
fn is_aws_key(text: &str) -> bool {
    let count = |is: fn(char) -> bool| text.chars().filter(|c| is(*c)).count();
    text.len() == 40
        && count(|c| c == '/') <= 3
        && count(|c| c.is_ascii_uppercase()) >= 8
        && count(|c| c.is_ascii_lowercase()) >= 8
        && count(|c| c.is_ascii_digit()) >= 1
}

/// Short flags that are often followed by a password; it counts if it looks like one.
pub(crate) const OFTEN: [&str; 4] = ["-k", "-P", "-a", "-w"];

/// Whether a short flag's value looks like a password: letters and digits, but not a name
/// with a number (`worker1`), a path, an address or a setting.
pub(crate) fn is_like_password(value: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-+!#%^&*".contains(c);
    let name = value.trim_end_matches(|c: char| c.is_ascii_digit());
    value.len() >= 6
        && value.chars().all(is_part)
        && value.starts_with(|c: char| c.is_ascii_alphabetic())
        && value.contains(|c: char| c.is_ascii_digit())
        && name.contains(|c: char| !c.is_ascii_lowercase() && c != '-')
}

fn is_token(word: &str) -> bool {
    let is_known = PREFIXES
        .iter()
        .any(|prefix| word.len() >= prefix.len() + 8 && word.starts_with(prefix));
    let is_mixed = |run: &str| {
        run.len() >= MIN_MIXED
            && run.contains(|c: char| c.is_ascii_digit())
            && run.contains(|c: char| c.is_ascii_alphabetic())
    };
    is_known || word.split(['-', '_', '.']).any(is_mixed)
}

/// Whether the value of something with this name is a secret.
pub(crate) fn is_secret(name: &str, value: &str) -> bool {
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

/// Short names of passwords and of things that contain them.
const SHORT: [&str; 10] = [
    "PW",
    "PSW",
    "PSWD",
    "AUTHORIZATION",
    "DSN",
    "CRED",
    "CREDS",
    "PASSPHRASE",
    "CREDENTIALS",
    "AUTH",
];

/// Authentication schemes, which precede a key in a header.
pub(crate) const SCHEMES: [&str; 4] = ["bearer", "basic", "token", "apikey"];

/// Whether a text contains a secret, judged by its form or by the name before it:
/// `Server=x;Password=…`, `{"apiKey": "…"}`, `Bearer …`, `scheme://user:password@host`.
pub(crate) fn holds_secret(text: &str) -> bool {
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
        || around_password(text).is_some()
}

/// Programs that accept a password right after a short flag, and the flag.
const TAKERS: [(&str, &str); 14] = [
    ("mysql", "-p"),
    ("mysqldump", "-p"),
    ("mysqladmin", "-p"),
    ("mariadb", "-p"),
    ("mongo", "-p"),
    ("mongosh", "-p"),
    ("sshpass", "-p"),
    ("7z", "-p"),
    ("zip", "-P"),
    ("unzip", "-P"),
    ("mosquitto_pub", "-P"),
    ("mosquitto_sub", "-P"),
    ("redis", "-a"),
    ("ldapsearch", "-w"),
];

/// Returns the flags that are followed by a password in a command line, based on the
/// programs it names: `mysql`, or `@acme/mysql-mcp`.
pub(crate) fn password_flags<T: AsRef<str>>(words: &[T]) -> Vec<&'static str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_named = |taker: &str| {
        let mut plain = words.iter().map(AsRef::as_ref);
        plain.any(|word| {
            !word.starts_with('-') && word.split(|c| !is_part(c)).any(|part| part == taker)
        })
    };
    TAKERS
        .iter()
        .filter(|(taker, _)| is_named(taker))
        .map(|(_, flag)| *flag)
        .collect()
}

/// Splits a word with a password attached to a short flag into the part before and the
/// password: `-p` and `SECRET`, `-ume:` and `SECRET`. `takes` lists flags known to take
/// one; for others the value must look like a password, since `-port` and `-pluginDir`
/// are flags.
pub(crate) fn glued<'a>(word: &'a str, takes: &[&str]) -> Option<(&'a str, &'a str)> {
    let (flag, value) = word.split_at_checked(2)?;
    let is_number = {
        let plain = value.trim_end_matches("/tcp").trim_end_matches("/udp");
        let is_digit = |c: char| c.is_ascii_digit() || ":.-".contains(c);
        plain.chars().all(is_digit)
    };
    if value.is_empty() || value.contains("${") || !flag.starts_with('-') || is_number {
        return None;
    }
    let is_flag = value.starts_with(|c: char| c.is_ascii_lowercase())
        && value.chars().all(|c| c.is_ascii_alphabetic() || c == '-');
    let at = match flag {
        flag if takes.contains(&flag) => 2,
        "-p" if is_flag || value.contains('=') || value.starts_with([':', '/', '.', '~', '@']) => {
            return None;
        }
        "-p" => 2,
        flag if OFTEN.contains(&flag) && is_like_password(value) => 2,
        "-u" => {
            let (user, password) = value.split_once(':')?;
            let is_password = !password.is_empty() && !password.starts_with('/');
            2 + Some(user.len() + 1).filter(|_| is_password && !user.is_empty())?
        }
        _ => return None,
    };
    word.split_at_checked(at)
}

/// Returns the text before and after the password in `me:SECRET@host`, where no scheme
/// marks it as a URL.
pub(crate) fn around_password(text: &str) -> Option<(&str, &str)> {
    const SCHEMES: [&str; 9] = [
        "npm",
        "jsr",
        "github",
        "gitlab",
        "mailto",
        "workspace",
        "sip",
        "acct",
        "node",
    ];
    if text.contains("://") {
        return None;
    }
    let (user, rest) = text.split_once(':')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.%".contains(c);
    let (password, host) = rest.rsplit_once('@')?;
    let is_user = !user.is_empty() && user.chars().all(is_plain) && !SCHEMES.contains(&user);
    let is_host = host.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[')
        && !host.starts_with("sha256:")
        && !host.starts_with("sha512:");
    let is_password = !password.is_empty()
        && !password.contains("${")
        && !password.contains(|c: char| c == '/' || c.is_whitespace());
    if !is_user || !is_host || !is_password {
        return None;
    }
    let before = text.get(..=user.len())?;
    Some((before, text.get(user.len() + 1 + password.len()..)?))
}

/// Whether the text before a separator names a secret and the text after it is one.
fn is_named_secret(before: &str, sign: &str, after: &str) -> bool {
    const AROUND: [char; 4] = ['"', '\'', '\\', ' '];
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let start = before.trim_end_matches(AROUND);
    let rest = start.trim_end_matches(is_name);
    let name = start.strip_prefix(rest).unwrap_or_default();
    // Image tags and volumes are not secrets: `x/auth:latest`, `keys:/keys`.
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

/// Whether a text contains no variable, or a literal secret beside one.
pub(crate) fn is_literal(text: &str) -> bool {
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

/// Builds a variable name from words: `GITHUB_AUTHORIZATION`.
pub(crate) fn variable(words: &[&str]) -> String {
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

/// Returns a text that may be shown, with secrets hidden.
pub(crate) fn redacted(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let takes = password_flags(&words);
    let is_glued = |word: &str| glued(word.trim_end_matches([')', '*', ':']), &takes).is_some();
    if !holds_secret(text) && !words.iter().any(|word| is_glued(word)) {
        return text.to_owned();
    }
    let mut is_value = false;
    let words: Vec<&str> = words
        .into_iter()
        .map(|word| {
            let hides = is_value || holds_secret(word) || is_glued(word);
            // In `Authorization: Bearer x`, the word after the scheme is hidden.
            let is_scheme = SCHEMES.contains(&word.to_ascii_lowercase().as_str());
            let names_one = word
                .strip_suffix([':', '='])
                .is_some_and(|name| is_secret_name(name.trim_start_matches(['"', '\''])));
            is_value = is_scheme || names_one || takes.contains(&word);
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
    fn secrets_are_distinguished_from_other_values() {
        for secret in [
            "sk-ant-REDACTED",
            "Bearer eyJhbGciOiJIUzI1NiJ9.e30.x",
            "ghp_0123456789abcdefghij",
            "https://mcp.example.com/s/a1b2c3d4e5f6a7b8c9/mcp",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        ] {
            assert!(looks_secret(secret), "{secret}");
        }
        for name in [
            "@modelcontextprotocol/server-github",
            "claude-sonnet-4-5-20250929",
            "https://api.example.com/v1",
            "/home/someone/projects/2024",
            "/Users/Someone/Dev2024/MyApp/Sources/Main",
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
        for (word, takes, flag) in [
            ("-pSecret1", &[][..], Some("-p")),
            ("-p4ssword", &[], Some("-p")),
            ("-psecret", &["-p"], Some("-p")),
            ("-aplain", &["-a"], Some("-a")),
            ("-ume:plain", &[], Some("-ume:")),
            ("-psecret", &[], None),
            ("-port", &[], None),
            ("-pluginDir", &[], None),
            ("-p8080:80/tcp", &[], None),
            ("-p127.0.0.1:80:80", &["-p"], None),
            ("-p:Configuration=Release", &[], None),
            ("-p${NAME}", &["-p"], None),
            ("-PPlain21", &[], Some("-P")),
            ("-kPlain21", &[], Some("-k")),
            ("-aworker12", &[], None),
            ("-Pport8080", &[], None),
            ("-w1920x1080", &[], None),
            ("-all", &[], None),
            ("-u1000:1000", &[], None),
            ("-p", &["-p"], None),
            ("--password", &["-p"], None),
        ] {
            let found = glued(word, takes).map(|(before, _)| before);
            assert_eq!(found, flag, "{word}");
        }
        assert_eq!(password_flags(&["npx", "-y", "@acme/mysql-mcp"]), ["-p"]);
        assert_eq!(
            around_password("root:pl@in@tcp(db:3306)/x"),
            Some(("root:", "@tcp(db:3306)/x"))
        );
        for harmless in [
            "git@github.com:a/b",
            "npm:left-pad@1.0.0",
            "ghcr.io/acme/x:1@sha256:00",
            "x:tag@sha256:00",
            "me:${PASSWORD}@db",
            "@scope/name@1.2.3",
            "a:/b@c",
        ] {
            assert_eq!(around_password(harmless), None, "{harmless}");
        }
        assert_eq!(
            redacted("allow Bash(mysql -psecret db:*)"),
            "allow Bash(mysql (hidden) db:*)"
        );
        assert!(!is_literal("Authorization: Bearer ${TOKEN}"));
    }
}
