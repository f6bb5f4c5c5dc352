//! Environment variables that commands receive.

use std::ffi::{OsStr, OsString};

/// A variable is secret if a word of its name contains one of these.
const SECRET: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL"];

/// A variable is also secret if a word of its name equals one of these.
const SECRET_WORDS: [&str; 5] = ["AUTH", "BEARER", "COOKIE", "JWT", "PAT"];

/// Variables that make a program run other code first.
const HOOKS: [&str; 2] = ["BASH_ENV", "ENV"];

/// Variables that every program receives, in addition to those that start with `LC_`.
const USUAL: [&str; 8] = [
    "PATH", "HOME", "USER", "SHELL", "LANG", "TZ", "TERM", "TMPDIR",
];

/// Settings for commands without a user at the terminal, where a pager would wait for a
/// key, git for a password, and an editor forever.
const UNATTENDED: [(&str, &str); 7] = [
    ("EDITOR", "false"),
    (
        "GIT_EDITOR",
        "echo 'no editor here: give the text with -m, or keep it with --no-edit' >&2; false",
    ),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("MANPAGER", "cat"),
    ("PAGER", "cat"),
    ("VISUAL", "false"),
];

/// Returns the variables for commands: all except secrets and those that load code, plus
/// those that the user allowed by name.
pub fn for_commands(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    granted: &[String],
) -> Vec<(OsString, OsString)> {
    let mut passed: Vec<_> = variables
        .into_iter()
        .filter(|(name, value)| {
            granted.iter().any(|granted| name == granted.as_str()) || !is_withheld(name, value)
        })
        .collect();
    for (name, value) in UNATTENDED {
        set(&mut passed, name, OsStr::new(value));
    }
    passed
}

/// Returns the variables for programs that are tools or provide them: the usual ones, plus
/// those that the user allowed by name.
pub fn for_programs(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    granted: &[String],
) -> Vec<(OsString, OsString)> {
    let is_seen = |name: &str| {
        USUAL.contains(&name)
            || name.starts_with("LC_")
            || granted.iter().any(|granted| granted == name)
    };
    let variables = variables.into_iter();
    variables
        .filter(|(name, _)| name.to_str().is_some_and(is_seen))
        .collect()
}

/// Whether a variable is passed on only if the user allowed it by name: its name or value
/// marks it as a secret, or it makes programs load code.
pub fn is_withheld(name: &OsStr, value: &OsStr) -> bool {
    is_secret(name) || loads_code(name) || holds_password(value)
}

/// Returns the values of secret variables, which must not be recorded. Paths are not
/// secrets.
pub fn secrets(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<String> {
    let secret = |(name, value): (OsString, OsString)| {
        let value = value.into_string().ok()?;
        let is_one =
            holds_password(OsStr::new(&value)) || (is_secret(&name) && !value.starts_with('/'));
        is_one.then_some(value)
    };
    variables.into_iter().filter_map(secret).collect()
}

/// Sets a variable, replacing an existing one.
pub fn set(variables: &mut Vec<(OsString, OsString)>, name: &str, value: &OsStr) {
    variables.retain(|(known, _)| known != name);
    variables.push((name.into(), value.to_owned()));
}

/// Whether the name indicates a secret.
fn is_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_uppercase();
    name.split('_').any(|word| {
        SECRET_WORDS.contains(&word) || SECRET.iter().any(|part| word.contains(part))
    })
        // `PWD` and `OLDPWD` are folders, but `MYSQL_PWD` is a password.
        || name.ends_with("_PWD")
}

fn loads_code(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("LD_") || HOOKS.contains(&name.as_ref())
}

/// Minimum length of a user name in a web address that counts as a token:
/// `https://ghp_…@host`.
const TOKEN: usize = 20;

/// Whether a value contains an address with a password, `scheme://user:password@host`, or
/// with a token in its place.
fn holds_password(value: &OsStr) -> bool {
    let value = value.to_string_lossy();
    let mut parts = value.split("://");
    let mut before = parts.next().unwrap_or_default();
    parts.any(|rest| {
        let is_web = before.ends_with("http") || before.ends_with("https");
        before = rest;
        let authority = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        let in_query = rest
            .split(['?', '&'])
            .skip(1)
            .any(|part| part.to_lowercase().starts_with("pass"));
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        in_query
            || user.is_some_and(|user| match user.split_once(':') {
                Some((_, password)) if !password.is_empty() => true,
                Some((name, _)) => is_web && name.len() >= TOKEN,
                None => is_web && user.len() >= TOKEN,
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(name: &str, value: &str) -> bool {
        let passed = for_commands([(name.into(), value.into())], &["GRANTED_KEY".into()]);
        passed
            .iter()
            .any(|(known, passed)| known == name && passed == value)
    }

    #[test]
    fn secrets_are_withheld_and_other_variables_pass() {
        for name in [
            "OPENAI_API_KEY",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "my_token",
            "DB_PASSWORD",
            "PGPASSWORD",
            "MYSQL_PASSWD",
            "SSH_AUTH_SOCK",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "SECRETS",
            "MYSQL_PWD",
            "SSHPASS",
            "GPG_PASSPHRASE",
            "GH_PAT",
            "APIKEY",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "BASH_ENV",
            "ENV",
        ] {
            assert!(!passes(name, "x"), "{name}");
        }
        for name in [
            "PATH",
            "PWD",
            "OLDPWD",
            "HOME",
            "USER",
            "LANG",
            "LC_ALL",
            "TERM",
            "TMPDIR",
            "SHELL",
            "GIT_AUTHOR_NAME",
            "XAUTHORITY",
            "CARGO_HOME",
            "ENVIRONMENT",
            "GRANTED_KEY",
        ] {
            assert!(passes(name, "x"), "{name}");
        }
    }

    #[test]
    fn an_address_with_a_password_is_withheld() {
        for value in [
            "postgres://me:hunter2@db/x",
            "a,redis://:pw@host:1",
            "amqp://u:p%40@h",
            "postgres://u@h/db?sslmode=x&password=hunter2",
            "https://ghp_16C7e42F292c6912E7710c838347Ae178B4a@github.com/a/b",
            "a https://github_pat_11ABCDEFG0123456789:@github.com",
        ] {
            assert!(!passes("DATABASE_URL", value), "{value}");
        }
        for value in [
            "postgres://me@db/x",
            "postgres://a-user-with-a-long-name@db/x",
            "https://git@github.com/a/b",
            "https://host:443/a:b@c",
            "http://u:@h",
            "a:b@c",
        ] {
            assert!(passes("DATABASE_URL", value), "{value}");
        }
    }

    #[test]
    fn programs_do_not_prompt() {
        let passed = for_commands([("PAGER".into(), "less".into())], &[]);
        let pagers: Vec<_> = passed.iter().filter(|(name, _)| name == "PAGER").collect();
        assert_eq!(pagers, [&("PAGER".into(), "cat".into())]);
        assert!(passed.contains(&("GIT_TERMINAL_PROMPT".into(), "0".into())));
    }
}
