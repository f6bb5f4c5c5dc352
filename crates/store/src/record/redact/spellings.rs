//! Secrets in the encodings that occur in records and logs.

use super::Redactor;
use proptest::prelude::*;
use serde_json::Value;

/// Returns the encodings of a text.
fn spellings(text: &str) -> Vec<String> {
    let json = |text: &str| Value::from(text).to_string();
    let each = |write: &dyn Fn(char) -> String| text.chars().map(write).collect::<String>();
    let halves = |c: char| {
        let mut buffer = [0; 2];
        let all = c.encode_utf16(&mut buffer).iter();
        all.map(|half| format!("\\u{half:04x}")).collect::<String>()
    };
    let bytes = |c: char, begin: &str| {
        let mut buffer = [0; 4];
        let all = c.encode_utf8(&mut buffer).bytes();
        all.map(|byte| format!("{begin}{byte:02X}"))
            .collect::<String>()
    };
    let plain = |c: char| c.is_ascii_alphanumeric();
    let ascii = |c: char| match c.is_ascii() {
        true => json(&c.to_string()).trim_matches('"').to_owned(),
        false => halves(c),
    };
    let quoted = |c: char| match c {
        '"' => "\\\"".to_owned(),
        c => json(&c.to_string()).trim_matches('"').to_owned(),
    };
    let percent = each(&|c| {
        if plain(c) {
            c.to_string()
        } else {
            bytes(c, "%")
        }
    });
    vec![
        json(text),
        json(&json(text)),
        json(&json(&json(text))),
        format!("{text:?}"),
        format!("{:?}", json(text)),
        json(&format!("{text:?}")),
        json(text).replace('/', "\\/"),
        json(&json(text).replace('/', "\\/")),
        each(&|c| if c == '"' { quoted(c) } else { ascii(c) }),
        each(&halves),
        json(&each(&halves)),
        each(&|c| format!("\\u{{{:x}}}", u32::from(c))),
        each(&|c| bytes(c, "\\x")),
        each(&|c| bytes(c, "%")),
        each(&|c| bytes(c, "%").to_lowercase()),
        percent.replace('%', "%25"),
        json(&percent),
        percent,
    ]
}

#[test]
fn a_secret_is_redacted_in_every_encoding() {
    for secret in [
        "sk-canary-1",
        "p\"a\\ss/wo'rd",
        "line one\nline\ttwo",
        "\\\\server\\share",
        "ends with \\",
        "üñïçödé-😀-key",
        "a%20b+c=d&e",
        "//slash//es",
        "\"quoted\"!",
    ] {
        let redactor = Redactor::new([secret.to_owned()]);
        for written in spellings(secret) {
            let text = format!("before {written} after");
            let cleaned = redactor.clean(&text);
            let left = cleaned.replace(['"', '\\'], "");
            assert_eq!(left, "before [redacted] after", "{secret:?} as {written}");
        }
    }
}

#[test]
fn all_white_space_is_equivalent() {
    let key = "-----BEGIN KEY-----\nMIIEcanary\n  second\tline\r\n-----END KEY-----\n";
    let redactor = Redactor::new([key.to_owned()]);
    let key = key.trim();
    let one_line = key.split_whitespace().collect::<Vec<_>>().join(" ");
    for written in [
        key.to_owned(),
        one_line.clone(),
        one_line.replace(' ', "\n"),
        one_line.replace(' ', "+"),
        one_line.replace(' ', "%0A"),
        one_line.replace(' ', "\\n"),
        key.replace('\r', ""),
        Value::from(key).to_string(),
    ] {
        let cleaned = redactor.clean(&written);
        let left = cleaned.replace('"', "");
        assert_eq!(left, "[redacted]", "{written}");
    }
}

#[test]
fn a_secret_is_redacted_in_base64_at_every_offset() {
    let secret = "hunter2-canary";
    let redactor = Redactor::new([secret.to_owned()]);
    for (text, base64) in [
        ("hunter2-canary", "aHVudGVyMi1jYW5hcnk="),
        ("u:hunter2-canary", "dTpodW50ZXIyLWNhbmFyeQ=="),
        ("me:hunter2-canary", "bWU6aHVudGVyMi1jYW5hcnk="),
        ("abc:hunter2-canary!", "YWJjOmh1bnRlcjItY2FuYXJ5IQ=="),
    ] {
        let cleaned = redactor.clean(base64);
        assert!(cleaned.contains("[redacted]"), "{text}: {cleaned}");
        let left = cleaned.replace("[redacted]", "");
        assert!(left.len() <= 10, "{text}: {cleaned}");
    }
}

#[test]
fn other_text_is_not_redacted() {
    let redactor = Redactor::new(["sk-canary-1".to_owned(), "p\\\\assword".to_owned()]);
    for text in [
        r"C:\sk\canary",
        r"\u0073\u006b-canar",
        "100% sk-canary",
        r#"{"a":"\n\u0073k-canary-2"}"#,
        r"p\assword",
        "%73%6b",
        "\\",
        "%",
        "\\u",
        "\\u{",
        "%7",
    ] {
        assert_eq!(redactor.clean(text), text);
    }
    assert_eq!(redactor.clean(r"C:\sk-canary-1"), r"C:\[redacted]");
}

proptest! {
    #[test]
    fn every_encoding_of_every_secret_is_redacted(secret in r#"[a-zA-Z"'\\/\n\t%&+= é😀-]{8,20}"#) {
        let secret = format!("k{secret}k");
        let redactor = Redactor::new([secret.clone()]);
        for written in spellings(&secret) {
            let cleaned = redactor.clean(&written).into_owned();
            let left = cleaned.replace(['"', '\\'], "");
            prop_assert_eq!(left, "[redacted]", "{} as {}", &secret, &written);
        }
    }

    #[test]
    fn any_text_is_accepted(text in r#"[a-z"'\\/%{}0-9éu]{0,60}"#) {
        let redactor = Redactor::new(["aaaaaaaa\\\"/b".to_owned()]);
        let _ = redactor.clean(&text);
    }
}

proptest! {
    #[test]
    fn no_password_of_a_url_remains_in_json(
        password in r#"[a-zA-Z?#/][a-zA-Z0-9!$&*+=~._'/#?\\-]{6,30}Q1"#,
        before in "[a-z \"]{0,5}",
        after in "[/? ]?[a-z]{0,5}",
    ) {
        let text = format!("{before}https://me:{password}@host{after}");
        for written in [Value::from(text.clone()), Value::from(Value::from(text).to_string())] {
            let cleaned = Redactor::default().scrub(&written.to_string()).into_owned();
            let plain = cleaned.replace('\\', "");
            prop_assert!(!plain.contains(&password.replace('\\', "")), "{}", cleaned);
            prop_assert!(serde_json::from_str::<Value>(&cleaned).is_ok(), "{}", cleaned);
        }
    }
}
