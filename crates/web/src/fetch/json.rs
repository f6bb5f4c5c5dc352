//! JSON with a line for each value. The document is not read and written again:
//! numbers keep their digits, keys their order and repetitions.

use serde::de::IgnoredAny;

const INDENT: &str = "  ";

/// More does not come out: a short document that nests deeply has a lot of indentation.
const MOST_BYTES: usize = 8 << 20;

/// The document with line breaks and indentation; nothing if it is none, or one that
/// would grow too much.
pub(super) fn pretty(text: &str) -> Option<String> {
    let text = text.trim();
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0usize;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if out.len() > MOST_BYTES {
            return None;
        }
        match c {
            '"' => {
                out.push(c);
                let mut is_escaped = false;
                for c in chars.by_ref() {
                    out.push(c);
                    match c {
                        '"' if !is_escaped => break,
                        '\\' => is_escaped = !is_escaped,
                        _ => is_escaped = false,
                    }
                }
            }
            '{' | '[' => {
                out.push(c);
                while chars.next_if(|c| c.is_ascii_whitespace()).is_some() {}
                match chars.next_if(|c| matches!(c, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        line(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    Some(out)
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str(INDENT);
    }
}

#[cfg(test)]
mod tests {
    use super::pretty;

    #[test]
    fn values_stay_as_they_are_written() {
        let document = r#" {"b":12345678901234567890123,"a":[1.50,[],{ },"x\"]\\"],"b":null}"#;
        let wanted = "{\n  \"b\": 12345678901234567890123,\n  \"a\": [\n    1.50,\n    [],\n    {},\n    \"x\\\"]\\\\\"\n  ],\n  \"b\": null\n}";
        assert_eq!(pretty(document).as_deref(), Some(wanted));
        assert_eq!(pretty("\"a\"").as_deref(), Some("\"a\""));
        for wrong in ["", "{", "{\"a\":}", "{} {}", "nope"] {
            assert_eq!(pretty(wrong), None, "{wrong}");
        }
        // Deeper than the reader goes: it is passed on as it is.
        assert_eq!(pretty(&"[".repeat(100_000)), None);
        let wide = "[".repeat(100) + &"1,".repeat(100_000) + "1" + &"]".repeat(100);
        assert_eq!(pretty(&wide), None);
        let deep = "[".repeat(100) + &"]".repeat(100);
        assert!(pretty(&deep).is_some());
    }
}
