//! User names and passwords in URLs: `https://me:password@host`.

use super::unescaped::Unescaped;
use memchr::{memchr2, memchr3_iter, memmem};
use std::borrow::Cow;
use std::ops::Range;

/// Maximum number of bytes to search for the end of a password that contains delimiters, or
/// of a URL without two slashes.
const FAR: usize = 256;

/// Minimum length of a user name that counts as a token: `https://TOKEN@host`.
const TOKEN: usize = 8;

/// Maximum number of letters, and of digits behind them, in a word of a user name.
const LONGEST_WORD: (usize, usize) = (16, 4);

/// Words that people write in place of a password.
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

/// Replaces the part before the `@` of a URL by `mark` if it is a secret. Keeps
/// placeholders such as `user:password` and `$NAME`.
#[must_use]
pub fn without_userinfo<'a>(text: &'a str, mark: &str) -> Cow<'a, str> {
    let secrets = match Unescaped::new(text, b":/@") {
        Some(plain) => secrets(&plain.text)
            .into_iter()
            .map(|range| plain.original(&range))
            .collect(),
        None => secrets(text),
    };
    let mut cleaned = String::new();
    let mut from = 0;
    for Range { start, end } in secrets {
        cleaned.push_str(text.get(from..start).unwrap_or_default());
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

/// Returns the ranges of all secrets.
fn secrets(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found: Vec<Range<usize>> = Vec::new();
    if memchr2(b'@', b'%', bytes).is_none() {
        return found;
    }
    for at in memchr3_iter(b':', b'%', b'/', bytes) {
        if found.last().is_some_and(|last| at < last.end) {
            continue;
        }
        // Both ends are next to ASCII characters.
        let range = secret(bytes, at).filter(|range| text.get(range.clone()).is_some());
        found.extend(range);
    }
    found
}

/// Notation of a URL.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    /// `https://me:pw@host`, possibly with escaped slashes.
    Plain,
    /// `https%3A%2F%2Fme%3Apw%40host`, inside another URL.
    Encoded,
}

/// Returns the range of the secret in a URL whose scheme ends at `at`, or that has no
/// scheme and starts there with `//`.
fn secret(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let (before, rest) = (bytes.get(..at)?, bytes.get(at..)?);
    let (scheme, begin) = if rest.first() == Some(&b'/') {
        (&b""[..], relative(before, rest)?)
    } else {
        let scheme = scheme(before)?;
        (scheme, begin(scheme, rest)?)
    };
    let start = at + begin.length;
    let rest = bytes.get(start..)?;
    let rest = match begin.is_short {
        // Such a text has no delimiter before the next one starts.
        true => rest.get(..rest.len().min(FAR))?,
        false => rest,
    };
    let ways: &[Written] = match (begin.has_code, begin.has_slash) {
        (false, _) => &[Written::Plain],
        (true, true) => &[Written::Encoded, Written::Plain],
        (true, false) => &[Written::Encoded],
    };
    ways.iter().find_map(|written| {
        let length = length(rest, *written)?;
        let given = rest.get(..length)?;
        is_secret(scheme, given, *written).then_some(start..start + length)
    })
}

/// Returns the length of the part before the `@`.
fn length(rest: &[u8], written: Written) -> Option<usize> {
    let place = host_end(rest, written);
    let host = rest.get(..place)?;
    if let Some(at) = last_at(host, written) {
        return Some(at);
    }
    if written == Written::Encoded {
        return None;
    }
    // A slash or quote in the password ends the host too early. After the colon of a real
    // host comes a port number, followed by a delimiter.
    let far = rest.get(..rest.len().min(FAR))?;
    let is_end =
        |byte: &u8| byte.is_ascii_whitespace() || byte.is_ascii_control() || b"\">".contains(byte);
    let end = far.iter().position(is_end).unwrap_or(far.len());
    let (far, behind) = far.split_at(end);
    let far = match behind.first() {
        // An HTML tag follows, or a placeholder such as `<port>`.
        Some(b'>') => far.split(|byte| *byte == b'<').next()?,
        _ => far,
    };
    match after_colon(host)? {
        port if port.is_empty() || !port.iter().all(u8::is_ascii_digit) => last_at(far, written),
        _ if far.get(place).is_none_or(|next| b"/?#`".contains(next)) => None,
        // The next URL in a list is a separate one.
        _ => last_at(
            far.get(..memmem::find(far, b"//").unwrap_or(far.len()))?,
            written,
        ),
    }
}

/// The start of the host part of a URL.
struct Begin {
    length: usize,
    /// Whether a part of it is percent-encoded, and whether a slash is not.
    has_code: bool,
    has_slash: bool,
    /// Whether it has fewer than two slashes.
    is_short: bool,
}

/// Matches the start of a URL without a scheme: `//host`.
fn relative(before: &[u8], rest: &[u8]) -> Option<Begin> {
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || b":/\\.-_+%@~".contains(byte);
    let is_leading = !before.last().is_some_and(is_inside);
    (is_leading && rest.starts_with(b"//")).then_some(Begin {
        length: 2,
        has_code: false,
        has_slash: true,
        is_short: false,
    })
}

/// Returns the length of `://`, where each character may be plain or percent-encoded once
/// or twice, and slashes may be escaped any number of times. For web URLs the slashes may
/// be missing or be backslashes, because browsers accept that.
fn begin(scheme: &[u8], rest: &[u8]) -> Option<Begin> {
    let (mut at, mut has_code) = symbol(rest, b':', b"3A")?;
    let (mut slashes, mut has_slash) = (0, false);
    loop {
        let next = rest.get(at..).unwrap_or_default();
        let (length, is_code) = if let Some(found) = symbol(next, b'/', b"2F") {
            slashes += 1;
            has_slash |= !found.1;
            found
        } else if let Some(found) = symbol(next, b'\\', b"5C") {
            found
        } else {
            break;
        };
        at += length;
        has_code |= is_code;
        if slashes == 2 {
            break;
        }
    }
    let lower = scheme.to_ascii_lowercase();
    let is_web = lower.ends_with(b"http") || lower.ends_with(b"https");
    (is_web || slashes == 2).then_some(Begin {
        length: at,
        has_code,
        has_slash,
        is_short: slashes < 2,
    })
}

/// Returns the length of a character at the start of a text, and whether it is
/// percent-encoded.
fn symbol(text: &[u8], plain: u8, code: &[u8; 2]) -> Option<(usize, bool)> {
    if text.first() == Some(&plain) {
        return Some((1, false));
    }
    let rest = text.strip_prefix(b"%")?;
    let (rest, length) = match rest.strip_prefix(b"25") {
        Some(rest) => (rest, 5),
        None => (rest, 3),
    };
    let given = rest.get(..2)?;
    given.eq_ignore_ascii_case(code).then_some((length, true))
}

/// Returns the scheme at the end of a text.
fn scheme(before: &[u8]) -> Option<&[u8]> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let begins = before.iter().rposition(|byte| !is_part(byte));
    let scheme = before.get(begins.map_or(0, |at| at + 1)..)?;
    (!scheme.is_empty()).then_some(scheme)
}

/// Returns the end of the host, including the part before its `@`.
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

/// Returns the text after the first colon.
fn after_colon(host: &[u8]) -> Option<&[u8]> {
    host.get(memchr::memchr(b':', host)? + 1..)
}

/// Whether the part before the `@` must be redacted.
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
    let is_password = !password.is_empty() && name != password && !is_placeholder(password);
    is_password || name.len() >= TOKEN && !is_placeholder(name) && !is_words(name)
}

/// Whether a user name consists of words: `jane.doe42`, `API_KEY`, `Administrator`.
fn is_words(name: &[u8]) -> bool {
    name.split(|byte| b"-_.+@".contains(byte)).all(|word| {
        let letters = word.iter().take_while(|byte| byte.is_ascii_alphabetic());
        let (letters, digits) = word.split_at(letters.count());
        let rest = letters.get(1..).unwrap_or_default();
        letters.len() <= LONGEST_WORD.0
            && digits.len() <= LONGEST_WORD.1
            && digits.iter().all(u8::is_ascii_digit)
            && (rest.iter().all(u8::is_ascii_lowercase)
                || letters.iter().all(u8::is_ascii_uppercase))
    })
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
    // A dollar may be the first character of a password; variable names are in capitals.
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
    fn secrets_before_the_at_are_redacted() {
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
            ("https://u:12;S@h", "https://[redacted]@h"),
            ("https://u:2024(S@h/x", "https://[redacted]@h/x"),
            ("https://u:1'S@h", "https://[redacted]@h"),
            ("https://u:1,S@h", "https://[redacted]@h"),
            ("https://u:1)S@h", "https://[redacted]@h"),
            ("https://u:1;S/x@h", "https://[redacted]@h"),
            (r"https://u:1\S@h", "https://[redacted]@h"),
            ("https://u:1{S}@h", "https://[redacted]@h"),
            ("https://u:1<S@h", "https://[redacted]@h"),
            ("https://me:hun<ter2@h <b>", "https://[redacted]@h <b>"),
            ("https:/me:hunter2@h", "https:/[redacted]@h"),
            ("https:me:hunter2@h", "https:[redacted]@h"),
            ("HTTP:me:hunter2@h", "HTTP:[redacted]@h"),
            (r"https:\\me:hunter2@h", r"https:\\[redacted]@h"),
            (r"https:\me:hunter2@h", r"https:\[redacted]@h"),
            (r"https:/\me:hunter2@h", r"https:/\[redacted]@h"),
            ("//me:hunter2@h/x", "//[redacted]@h/x"),
            ("src='//me:hunter2@h/x'", "src='//[redacted]@h/x'"),
            ("https%3A//u:hunter2@h", "https%3A//[redacted]@h"),
            ("https%3A//u:hun'ter2@h", "https%3A//[redacted]@h"),
            ("https:%2F%2Fu:hunter2@h", "https:%2F%2F[redacted]@h"),
            ("https:/%2fu%3Ahunter2%40h", "https:/%2f[redacted]%40h"),
            ("https%253A//u:hunter2@h", "https%253A//[redacted]@h"),
            ("https:%5C%5Cu:hunter2@h", "https:%5C%5C[redacted]@h"),
            ("https%3Au%3Ahunter2%40h", "https%3A[redacted]%40h"),
            (
                "proxy=http://me:hunter2@proxy:3128",
                "proxy=http://[redacted]@proxy:3128",
            ),
        ] {
            assert_eq!(clean(text), cleaned, "{text}");
            assert_eq!(clean(cleaned), cleaned, "twice: {text}");
        }
    }

    /// Some services take an API key as the user name, with any password or none.
    #[test]
    fn a_key_as_the_user_name_is_redacted() {
        for key in [
            "sk_test_4eC39HqLyjWDarjtT1zdp7dc",
            "9f86d081884c7d659a2feaa0c55ad015",
            "AKIAIOSFODNN7EXAMPLE",
            "kZxQwPrT",
            "qhdkzmwxyrtplvbnesga",
            "key-3ax6xnjp29jd6fds4gc373sgvjxteol0",
        ] {
            for password in ["", "X", "x", "pass", "password", "***", "$PASSWORD", key] {
                for scheme in ["https", "git+https", "redis"] {
                    let text = format!("{scheme}://{key}:{password}@host/x");
                    assert_eq!(clean(&text), format!("{scheme}://[redacted]@host/x"));
                }
                let text = format!("?u=https%3A%2F%2F{key}%3A{password}%40host");
                assert_eq!(clean(&text), "?u=https%3A%2F%2F[redacted]%40host");
            }
        }
    }

    #[test]
    fn escaped_separators_are_recognised() {
        for (text, cleaned) in [
            (
                r"https:\u002f\u002fme:hunter2@host",
                r"https:\u002f\u002f[redacted]@host",
            ),
            (
                r"a https\x3a//me:hunter2@host b",
                r"a https\x3a//[redacted]@host b",
            ),
            (
                r"https\u{3a}\u{2F}\u{2f}me\u{3a}hunter2\u{40}host",
                r"https\u{3a}\u{2F}\u{2f}[redacted]\u{40}host",
            ),
            (
                r#"{"a":"https:\\\u002F\\\u002Fme:hünter2\\\u0040höst"}"#,
                r#"{"a":"https:\\\u002F\\\u002F[redacted]\\\u0040höst"}"#,
            ),
            (
                r"https:\x2f\x2fa:one1\x40x https:\x2f\x2fb:two2@y",
                r"https:\x2f\x2f[redacted]\x40x https:\x2f\x2f[redacted]@y",
            ),
        ] {
            assert_eq!(clean(text), cleaned, "{text}");
            assert_eq!(clean(cleaned), cleaned, "twice: {text}");
        }
    }

    #[test]
    fn text_without_secrets_is_unchanged() {
        for text in [
            "https://username:password@host",
            "https://deploy-bot:@host",
            "https://jane.doe42:pass@host",
            "https://YOUR_API_KEY:@host",
            "https://Administrator:Administrator@host",
            "https://$API_KEY_1:@host",
            "https://${api_key_1}:x@host",
            "https://xxxxxxxxxxxx:@host",
            r"https:\u002f\u002fuser:password\u0040host",
            r"C:\x40\u0040\u{40}\x3a",
            "<a href=https://host:port>me@host</a>",
            "https://host:port<br>me@host",
            "https://host:80<br>me@host",
            "https://host:<port>/me@host",
            "https://host/x",
            "https://host:8080/@scope/package",
            "https://host/?mail=me@host",
            "https://host:8080?mail=me@host",
            "https://[::1]:80/me@host",
            "https://host:80, me@host",
            "'https://host:80' me@host",
            "`https://host:80`,me@host",
            "\"https://host:80\",me@host",
            "https://host:80,https://host/@scope",
            "https:",
            "https: me:pw@host",
            "a//me:pw@host",
            "// me:pw@host",
            "//git@host/x",
            "mailto:me:pw@host",
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

    #[test]
    fn long_texts_are_read_once() {
        for piece in [
            "http:",
            "http:/",
            "//",
            "//a:",
            "http%3A",
            "http:a",
            "http://a:1,",
            r"\",
            r"\u",
            r"http\x3a\u002f",
        ] {
            let text = format!("{}@", piece.repeat(20_000));
            let begun = std::time::Instant::now();
            let _ = clean(&text);
            assert!(begun.elapsed().as_secs() < 20, "{piece}");
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
