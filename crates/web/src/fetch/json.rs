//! Formats JSON with one value per line. Works on the text without parsing it into values, so
//! that numbers keep their digits and keys their order and duplicates.

use serde::de::IgnoredAny;

const INDENT: &str = "  ";

/// Maximum output size: in a deeply nested document, indentation can outgrow the content.
const MAX_BYTES: usize = 8 << 20;

/// Returns the document with line breaks and indentation, or `None` if it is not valid JSON or
/// the result would be too large.
pub(super) fn pretty(text: &str) -> Option<String> {
    let text = text.trim();
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let mut out = String::with_capacity(text.len() * 2);
    let mut depth = 0usize;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if out.len() > MAX_BYTES {
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
    fn values_keep_their_spelling() {
        let document = r#" {"b":12345678901234567890123,"a":[1.50,[],{ },"x\"]\\"],"b":null}"#;
        let expected = "{\n  \"b\": 12345678901234567890123,\n  \"a\": [\n    1.50,\n    [],\n    {},\n    \"x\\\"]\\\\\"\n  ],\n  \"b\": null\n}";
        assert_eq!(pretty(document).as_deref(), Some(expected));
        assert_eq!(pretty("\"a\"").as_deref(), Some("\"a\""));
        for wrong in ["", "{", "{\"a\":}", "{} {}", "nope"] {
            assert_eq!(pretty(wrong), None, "{wrong}");
        }
        // Nested deeper than serde_json's limit: passed on unformatted.
        assert_eq!(pretty(&"[".repeat(100_000)), None);
        let wide = "[".repeat(100) + &"1,".repeat(100_000) + "1" + &"]".repeat(100);
        assert_eq!(pretty(&wide), None);
        let deep = "[".repeat(100) + &"]".repeat(100);
        assert!(pretty(&deep).is_some());
    }
}
