//! Repairing invalid characters in the JSON strings of a message, where only one meaning is
//! possible.

use super::lines::LONGEST;

/// Returns the text with invalid UTF-8 replaced, control characters in strings escaped, and
/// escapes of lone surrogates replaced. `None` if there is nothing to replace, or if the
/// result would be too long for a message.
pub(super) fn sanitized(text: &[u8]) -> Option<String> {
    let mut mender = Sanitizer {
        out: String::with_capacity(text.len()),
        room: LONGEST.checked_sub(text.len()),
        ..Sanitizer::default()
    };
    for chunk in text.utf8_chunks() {
        mender.read(chunk.valid());
        if !chunk.invalid().is_empty() {
            mender.out.push(char::REPLACEMENT_CHARACTER);
            mender.is_changed = true;
            mender.is_escaped = false;
            mender.grow(2);
        }
        mender.room?;
    }
    mender.is_changed.then_some(mender.out)
}

#[derive(Default)]
struct Sanitizer {
    out: String,
    in_string: bool,
    is_escaped: bool,
    is_changed: bool,
    /// Number of bytes that the text may still grow; `None` once it is too long.
    room: Option<usize>,
}

impl Sanitizer {
    fn grow(&mut self, more: usize) {
        self.room = self.room.and_then(|room| room.checked_sub(more));
    }

    fn read(&mut self, text: &str) {
        let mut rest = text;
        while let Some(c) = rest.chars().next()
            && self.room.is_some()
        {
            if self.in_string
                && !self.is_escaped
                && c == '\\'
                && let Some(after) = self.escape(rest)
            {
                rest = after;
                continue;
            }
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            if self.in_string && u32::from(c) < 0x20 {
                self.out.push_str(&format!("\\u{:04x}", u32::from(c)));
                self.is_changed = true;
                self.is_escaped = false;
                self.grow(5);
                continue;
            }
            if c == '"' && !self.is_escaped {
                self.in_string = !self.in_string;
            }
            self.is_escaped = self.in_string && c == '\\' && !self.is_escaped;
            self.out.push(c);
        }
    }

    /// Handles a `
    /// u` escape: a lone surrogate is replaced. Returns the text after it.
    fn escape<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        let (unit, after) = unit(text)?;
        let other = unit_of_pair(unit, after);
        let after = match (unit, other) {
            (0xd800..=0xdbff, Some(after)) => after,
            (0xd800..=0xdfff, _) => {
                self.out.push_str("\\ufffd");
                self.is_changed = true;
                return Some(after);
            }
            _ => after,
        };
        let taken = text.len() - after.len();
        self.out.push_str(text.get(..taken)?);
        Some(after)
    }
}

/// Returns the text after the second half of a surrogate pair.
fn unit_of_pair(first: u16, text: &str) -> Option<&str> {
    let (second, after) = unit(text)?;
    let is_pair = (0xd800..=0xdbff).contains(&first) && (0xdc00..=0xdfff).contains(&second);
    is_pair.then_some(after)
}

/// Returns the number of a `
/// u` escape, and the text after it.
fn unit(text: &str) -> Option<(u16, &str)> {
    let (digits, after) = text.strip_prefix("\\u")?.split_at_checked(4)?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let unit = u16::from_str_radix(digits, 16).ok().filter(|_| is_plain)?;
    Some((unit, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_surrogate_is_replaced_and_a_pair_is_kept() {
        for (text, expected) in [
            (r#"{"a":"\ud800"}"#, Some(r#"{"a":"\ufffd"}"#)),
            (r#"{"a":"\uDC00x"}"#, Some(r#"{"a":"\ufffdx"}"#)),
            (
                r#"{"a":"\ud800\ud83d\ude42"}"#,
                Some(r#"{"a":"\ufffd\ud83d\ude42"}"#),
            ),
            (r#"{"a":"\ud83d\ude42"}"#, None),
            (r#"{"a":"\\ud800"}"#, None),
            (r#"{"a":"\u00e9 \" \n"}"#, None),
            (r#"{"\ud8":1}"#, None),
        ] {
            assert_eq!(sanitized(text.as_bytes()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_repaired_message_stays_within_the_limit() {
        let text = format!("{{\"a\":\"{}\"}}", "\u{1}".repeat(LONGEST / 4));
        assert_eq!(sanitized(text.as_bytes()), None);
    }
}
