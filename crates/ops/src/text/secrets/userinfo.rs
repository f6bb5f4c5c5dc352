//! User names and passwords in addresses: `https://me:password@host`.

use memchr::{memchr2_iter, memmem};
use std::borrow::Cow;
use std::ops::Range;

/// How far is looked for the end of a password that has characters in it which end a host.
const FAR: usize = 256;

/// A name alone is a token from this length on: `https://TOKEN@host`.
const TOKEN: usize = 8;

/// What people write where a password would be.
const PLACEHOLDERS: [&str; 14] = [
    "password",
    "passwd",
    "passwort",
    "passphrase",
    "pass",
    "pwd",
    "pw",
    "secret",
    "token",
    "changeme",
    "example",
    "your_password",
    "your-password",
    "yourpassword",
];

/// A text with a mark in the place of what stands before the `@` of an address, where that is
/// a secret. Placeholders such as `user:password` and `$NAME` stay.
#[must_use]
pub fn without_userinfo<'a>(text: &'a str, mark: &str) -> Cow<'a, str> {
    let bytes = text.as_bytes();
    if memmem::find(bytes, b"//").is_none()
        && memmem::find(bytes, br"\/").is_none()
        && !bytes.contains(&b'%')
    {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::new();
    let mut from = 0;
    for colon in memchr2_iter(b':', b'%', bytes) {
        if colon < from {
            continue;
        }
        let Some(Range { start, end }) = secret(bytes, colon) else {
            continue;
        };
        // Both ends are beside ASCII.
        let (Some(before), Some(_)) = (text.get(from..start), text.get(start..end)) else {
            continue;
        };
        cleaned.push_str(before);
        cleaned.push_str(mark);
        from = end;
    }
    match from {
        0 => Cow::Borrowed(text),
        _ => {
            cleaned.push_str(text.get(from..).unwrap_or_default());
            Cow::Owned(cleaned)
        }
    }
}

/// How an address is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    /// `https://me:pw@host`, and with slashes that are escaped.
    Plain,
    /// `https%3A%2F%2Fme%3Apw%40host`, within another.
    Encoded,
}

/// Where the secret is in an address whose scheme ends at `colon`.
fn secret(bytes: &[u8], colon: usize) -> Option<Range<usize>> {
    let scheme = scheme(bytes.get(..colon)?)?;
    let rest = bytes.get(colon..)?;
    let (length, written) = match (slashes(rest), encoded(rest)) {
        (Some(length), _) => (length, Written::Plain),
        (None, Some(length)) => (length, Written::Encoded),
        (None, None) => return None,
    };
    let start = colon + length;
    let rest = bytes.get(start..)?;
    let place = host_end(rest, written);
    let length = match last_at(rest.get(..place)?, written) {
        Some(at) => at,
        // A password with a slash or a quote in it ends the host too early. What stands
        // behind the colon of a host is a number.
        None if written == Written::Plain && has_no_port(rest.get(..place)?) => {
            let far = rest.get(..rest.len().min(FAR))?;
            let end = far.iter().position(|byte| {
                byte.is_ascii_whitespace() || byte.is_ascii_control() || b"\"<>".contains(byte)
            });
            last_at(far.get(..end.unwrap_or(far.len()))?, written)?
        }
        None => return None,
    };
    is_secret(scheme, rest.get(..length)?, written).then_some(start..start + length)
}

/// The scheme at the end of a text.
fn scheme(before: &[u8]) -> Option<&[u8]> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let begins = before.iter().rposition(|byte| !is_part(byte));
    let scheme = before.get(begins.map_or(0, |at| at + 1)..)?;
    (!scheme.is_empty()).then_some(scheme)
}

/// How long `://` is here, with slashes that may be escaped any number of times.
fn slashes(rest: &[u8]) -> Option<usize> {
    let mut at = 1;
    (rest.first() == Some(&b':')).then_some(())?;
    for _ in 0..2 {
        let escapes = rest.get(at..)?.iter().take_while(|byte| **byte == b'\\');
        at += escapes.count();
        (rest.get(at) == Some(&b'/')).then_some(())?;
        at += 1;
    }
    Some(at)
}

/// How long `%3A%2F%2F` is here, which may be encoded once more.
fn encoded(rest: &[u8]) -> Option<usize> {
    let begins = |long: &str| {
        let given = rest.get(..long.len())?;
        given
            .eq_ignore_ascii_case(long.as_bytes())
            .then_some(long.len())
    };
    begins("%3A%2F%2F").or_else(|| begins("%253A%252F%252F"))
}

/// Where a host ends, with what stands before its `@`.
fn host_end(rest: &[u8], written: Written) -> usize {
    let is_end = |at: usize, byte: u8| match written {
        Written::Plain => {
            byte.is_ascii_whitespace()
                || byte.is_ascii_control()
                || b"/?#\\\"'<>`{}|^,;()[]".contains(&byte)
        }
        Written::Encoded => {
            let ahead = rest.get(at + 1..).unwrap_or_default();
            let ahead = ahead.strip_prefix(b"25").unwrap_or(ahead);
            let is = |code: &[u8; 2]| ahead.get(..2).is_some_and(|x| x.eq_ignore_ascii_case(code));
            byte.is_ascii_whitespace()
                || b"&/?#\\\"'<>".contains(&byte)
                || (byte == b'%' && (is(b"2F") || is(b"3F") || is(b"23") || is(b"20")))
        }
    };
    let mut bytes = rest.iter().enumerate();
    bytes
        .find(|(at, byte)| is_end(*at, **byte))
        .map_or(rest.len(), |(at, _)| at)
}

fn last_at(place: &[u8], written: Written) -> Option<usize> {
    match written {
        Written::Plain => memchr::memrchr(b'@', place),
        Written::Encoded => {
            let codes: [&[u8]; 3] = [b"%40", b"%2540", b"@"];
            codes
                .into_iter()
                .filter_map(|code| memmem::rfind(place, code))
                .max()
        }
    }
}

fn has_no_port(place: &[u8]) -> bool {
    match memchr::memchr(b':', place) {
        Some(colon) => {
            let port = place.get(colon + 1..).unwrap_or_default();
            port.is_empty() || port.iter().any(|byte| !byte.is_ascii_digit())
        }
        None => false,
    }
}

/// Whether what stands before the `@` is worth hiding.
fn is_secret(scheme: &[u8], given: &[u8], written: Written) -> bool {
    let split = match written {
        Written::Plain => memchr::memchr(b':', given).map(|at| (at, 1)),
        Written::Encoded => [(&b"%3A"[..], 3), (b"%3a", 3), (b"%253A", 5), (b":", 1)]
            .into_iter()
            .filter_map(|(code, length)| Some((memmem::find(given, code)?, length)))
            .min(),
    };
    let (name, password) = match split {
        Some((at, length)) => (given.get(..at), given.get(at + length..)),
        None => {
            let is_web = scheme
                .to_ascii_lowercase()
                .windows(4)
                .any(|part| part == b"http");
            return is_web && given.len() >= TOKEN && !is_placeholder(given);
        }
    };
    let (name, password) = (name.unwrap_or_default(), password.unwrap_or_default());
    !password.is_empty() && name != password && !is_placeholder(password)
}

fn is_placeholder(given: &[u8]) -> bool {
    let is_word = PLACEHOLDERS
        .iter()
        .any(|word| word.as_bytes().eq_ignore_ascii_case(given));
    let is_name = |name: &[u8]| {
        !name.is_empty()
            && name
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            && !name.first().is_some_and(u8::is_ascii_digit)
    };
    let braced = given
        .strip_prefix(b"${")
        .or_else(|| given.strip_prefix(b"{"))
        .and_then(|name| name.strip_suffix(b"}"));
    // A dollar may be the first character of a password; names of variables are in capitals.
    let is_variable = braced.is_some_and(is_name)
        || given
            .strip_prefix(b"$")
            .is_some_and(|name| is_name(name) && !name.iter().any(u8::is_ascii_lowercase));
    let is_mask = |byte: &u8| b"*xX.".contains(byte);
    is_word || is_variable || given.iter().all(is_mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> Cow<'_, str> {
        without_userinfo(text, "[redacted]")
    }

    #[test]
    fn what_stands_before_the_at_is_left_out() {
        for (text, cleaned) in [
            ("https://me:hunter2@host/x", "https://[redacted]@host/x"),
            (
                "a https://me:hunter2@host, b",
                "a https://[redacted]@host, b",
            ),
            ("HTTPS://me:hunter2@host", "HTTPS://[redacted]@host"),
            ("https://:hunter2@host", "https://[redacted]@host"),
            ("https://me:hun@ter2@host", "https://[redacted]@host"),
            ("https://me:hun/ter2@host/x", "https://[redacted]@host/x"),
            ("https://me:hun#ter2@host/x", "https://[redacted]@host/x"),
            ("https://me:hun?ter2@host/x", "https://[redacted]@host/x"),
            ("https://me:hun'ter2@host/x", "https://[redacted]@host/x"),
            ("https://me:hun,ter2@host/x", "https://[redacted]@host/x"),
            (r"https://me:hun\ter2@host/x", "https://[redacted]@host/x"),
            ("https://me:/hunter2@host/x", "https://[redacted]@host/x"),
            ("https://me:hün@host", "https://[redacted]@host"),
            ("https://me:%68unter2@host", "https://[redacted]@host"),
            (
                "https://me:hunter2@[::1]:80/",
                "https://[redacted]@[::1]:80/",
            ),
            (
                "https://ghp_0123456789@github.com/a",
                "https://[redacted]@github.com/a",
            ),
            (
                "git+https://gitlab-ci:tok@h/a.git",
                "git+https://[redacted]@h/a.git",
            ),
            (
                "postgres://app:hunter2@db:5432/app",
                "postgres://[redacted]@db:5432/app",
            ),
            (
                "mongodb+srv://app:hunter2@db",
                "mongodb+srv://[redacted]@db",
            ),
            ("redis://:hunter2@db", "redis://[redacted]@db"),
            ("ssh://me:hunter2@host", "ssh://[redacted]@host"),
            (
                r#"{"url":"https://me:hunter2@host"}"#,
                r#"{"url":"https://[redacted]@host"}"#,
            ),
            (
                r#"{"a":"{\"url\":\"https:\\/\\/me:hunter2@host\"}"}"#,
                r#"{"a":"{\"url\":\"https:\\/\\/[redacted]@host\"}"}"#,
            ),
            (
                r"https:\/\/me:hunter2@host\/x",
                r"https:\/\/[redacted]@host\/x",
            ),
            (
                "https://a.example/?u=https%3A%2F%2Fme%3Ahunter2%40host%2Fx",
                "https://a.example/?u=https%3A%2F%2F[redacted]%40host%2Fx",
            ),
            (
                "?u=https%3a%2f%2fme:hunter2@host&b=c",
                "?u=https%3a%2f%2f[redacted]@host&b=c",
            ),
            (
                "https://a:one1@x https://b:two2@y",
                "https://[redacted]@x https://[redacted]@y",
            ),
            ("https://me:$ecret@host", "https://[redacted]@host"),
            (
                "proxy=http://me:hunter2@proxy:3128",
                "proxy=http://[redacted]@proxy:3128",
            ),
        ] {
            assert_eq!(clean(text), cleaned, "{text}");
            assert_eq!(clean(cleaned), cleaned, "twice: {text}");
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "https://host/x",
            "https://host:8080/@scope/package",
            "https://host/?mail=me@host",
            "https://host:8080?mail=me@host",
            "https://[::1]:80/me@host",
            "ssh://git@github.com/a/b",
            "https://me@host/x",
            "git@github.com:a/b.git",
            "mail me@host: see https://host",
            "https://user:password@host",
            "postgres://postgres:postgres@localhost/app",
            "https://user:${PASSWORD}@host",
            "https://user:$TOKEN@host",
            "https://me:***@host",
            "https://me:xxxx@host",
            "https://[redacted]@host",
            "https://(hidden)@host",
            "a://",
            "://me:pw@host",
            "100%",
            "%3A%2F%2F",
            "",
        ] {
            assert!(
                matches!(clean(text), Cow::Borrowed(_)),
                "{text}: {}",
                clean(text)
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_else_is_touched(text in r#"[a-z:/@%\\"' é.\n{}0-9]{0,60}"#) {
            let once = clean(&text).into_owned();
            proptest::prop_assert_eq!(clean(&once).into_owned(), once.clone());
        }

        #[test]
        fn no_password_is_left(password in r"[a-zA-Z0-9!$&*+=~._-]{6,30}Q1", before in "[a-z \"]{0,5}", after in "[/? ]?[a-z]{0,5}") {
            let text = format!("{before}https://me:{password}@host{after}");
            let cleaned = clean(&text);
            proptest::prop_assert!(!cleaned.contains(&password), "{}", cleaned);
        }
    }
}
