//! Decoding bytes to text, and finding safe positions to cut it.

use std::borrow::Cow;
use std::fmt::Write as _;

use encoding_rs::{UTF_16BE, UTF_16LE};

use super::sniff::{Encoding, encoding};

/// Decodes UTF-8; invalid bytes become replacement characters.
///
/// Keeps a byte-order mark. [`decode`] removes it.
#[must_use]
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Decodes bytes according to their byte-order mark, which is removed: UTF-16 if it says
/// so, otherwise like [`lossy`].
#[must_use]
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match encoding(bytes) {
        Encoding::Utf8 | Encoding::Other => lossy(bytes),
        Encoding::Utf8Bom => lossy(bytes.get(3..).unwrap_or_default()),
        Encoding::Utf16Le => {
            UTF_16LE
                .decode_without_bom_handling(bytes.get(2..).unwrap_or_default())
                .0
        }
        Encoding::Utf16Be => {
            UTF_16BE
                .decode_without_bom_handling(bytes.get(2..).unwrap_or_default())
                .0
        }
    }
}

/// Replaces CRLF by LF; keeps a lone CR.
#[must_use]
pub fn lf(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns the longest prefix of at most `bytes` bytes that does not split a character.
#[must_use]
pub fn prefix(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes))
        .unwrap_or_default()
}

/// Returns the longest suffix of at most `bytes` bytes that does not split a character.
#[must_use]
pub fn suffix(text: &str, bytes: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(bytes));
    text.get(start..).unwrap_or_default()
}

/// Returns the number of bytes (0 to 3) at the end that start a UTF-8 character but do not
/// complete it.
///
/// For output that arrives in chunks: these bytes must wait for the next one.
#[must_use]
pub fn unfinished(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let Some(byte) = bytes.get(bytes.len() - back) else {
            return 0;
        };
        let length = match byte {
            0x80..=0xBF => continue,
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => return 0,
        };
        return if length > back { back } else { 0 };
    }
    0
}

/// Decodes both ends of a byte sequence with `gap` missing bytes between them. Characters
/// cut by the gap are added to it.
#[must_use]
pub fn ends<'a>(head: &'a [u8], gap: u64, tail: &'a [u8]) -> (Cow<'a, str>, u64, Cow<'a, str>) {
    let cut = unfinished(head);
    let head = head.get(..head.len() - cut).unwrap_or_default();
    let rest = tail
        .iter()
        .take(3)
        .take_while(|byte| (0x80..=0xBF).contains(*byte))
        .count();
    let tail = tail.get(rest..).unwrap_or_default();
    (lossy(head), gap + (cut + rest) as u64, lossy(tail))
}

/// Makes text safe to print on a terminal.
///
/// Escapes control characters other than newline and tab, and characters that are invisible
/// or change the writing direction: `\x1b`, `\u{202e}`.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        // Writing to a String cannot fail.
        if matches!(c, '\n' | '\t') {
            shown.push(c);
        } else if c.is_ascii_control() {
            let _ = write!(shown, "\\x{:02x}", u32::from(c));
        } else if is_deceptive(c) {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Whether a character controls a terminal or is invisible: C1 controls, bidirectional
/// controls, zero-width characters, line separators and tags.
#[must_use]
pub fn is_deceptive(c: char) -> bool {
    matches!(
        c,
        '\u{80}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_byte_order_mark() {
        assert_eq!(decode(b"\xEF\xBB\xBFhi"), "hi");
        assert_eq!(lossy(b"\xEF\xBB\xBFhi"), "\u{feff}hi");
        assert_eq!(decode(b"\xFF\xFEh\0i\0"), "hi");
        assert_eq!(decode(b"\xFE\xFF\0h\0i"), "hi");
        assert_eq!(decode(b"\xFF\xFE\x3d\xd8\x00\xdeA"), "\u{1f600}\u{fffd}");
        assert_eq!(decode(b"a\xffb"), "a\u{fffd}b");
        assert_eq!(decode(b""), "");
        assert!(matches!(decode("é".as_bytes()), Cow::Borrowed("é")));
    }

    #[test]
    fn only_crlf_becomes_lf() {
        assert_eq!(lf("a\r\nb\rc\n\r\r\n"), "a\nb\rc\n\r\n");
        assert!(matches!(lf("a\rb\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn escapes_are_shown() {
        assert_eq!(
            visible("a\x1b[31mb\0\x7f\r\n\tc"),
            "a\\x1b[31mb\\x00\\x7f\\x0d\n\tc"
        );
        assert_eq!(
            visible("x\u{202e}y\u{200b}\u{9b}\u{feff}"),
            "x\\u{202e}y\\u{200b}\\u{9b}\\u{feff}"
        );
        assert_eq!(visible("naïve 日本 ✓"), "naïve 日本 ✓");
    }

    #[test]
    fn chunks_wait_for_the_rest_of_a_character() {
        let euro = "€".as_bytes();
        assert_eq!(unfinished(b"a"), 0);
        assert_eq!(unfinished(b""), 0);
        assert_eq!(
            (
                unfinished(&euro[..1]),
                unfinished(&euro[..2]),
                unfinished(euro)
            ),
            (1, 2, 0)
        );
        assert_eq!(unfinished(b"\x80\x80\x80\x80"), 0);
        assert_eq!(unfinished(b"\xff"), 0);
        assert_eq!(unfinished(&"😀".as_bytes()[..3]), 3);
    }

    #[test]
    fn ends_on_characters() {
        assert_eq!(
            (
                prefix("aé", 2),
                prefix("aé", 3),
                prefix("é", 1),
                prefix("a", 9)
            ),
            ("a", "aé", "", "a")
        );
        assert_eq!(
            (
                suffix("éa", 2),
                suffix("éa", 3),
                suffix("é", 1),
                suffix("a", 9)
            ),
            ("a", "éa", "", "a")
        );
    }

    proptest! {
        #[test]
        fn ends_lose_nothing(text in "[aé€𝄞]{0,20}", cuts in (0usize..40, 0usize..40)) {
            let bytes = text.as_bytes();
            let first = cuts.0.min(bytes.len());
            let last = first + cuts.1.min(bytes.len() - first);
            let (head, gap, tail) = ends(&bytes[..first], (last - first) as u64, &bytes[last..]);
            prop_assert!(text.starts_with(head.as_ref()) && text.ends_with(tail.as_ref()));
            if first < last {
                prop_assert_eq!(head.len() + tail.len() + usize::try_from(gap).unwrap(), text.len());
            }
        }

        #[test]
        fn lossy_keeps_utf8(text in any::<String>()) {
            prop_assert!(matches!(lossy(text.as_bytes()), Cow::Borrowed(t) if t == text));
        }

        #[test]
        fn lossy_is_stable(bytes in any::<Vec<u8>>()) {
            let once = lossy(&bytes).into_owned();
            prop_assert_eq!(lossy(once.as_bytes()), once.as_str());
        }

        #[test]
        fn lf_leaves_no_crlf_that_was_there(text in "[a\r\n]{0,30}") {
            let done = lf(&text);
            let removed = text.matches("\r\n").count();
            prop_assert_eq!(done.len() + removed, text.len());
            prop_assert_eq!(done.matches('\n').count(), text.matches('\n').count());
        }

        #[test]
        fn utf16_comes_back(text in any::<String>()) {
            let mut le = vec![0xFF, 0xFE];
            let mut be = vec![0xFE, 0xFF];
            for unit in text.encode_utf16() {
                le.extend(unit.to_le_bytes());
                be.extend(unit.to_be_bytes());
            }
            // FF FE 00 00 is the mark of UTF-32, so it is not decoded as UTF-16.
            if !text.starts_with('\0') {
                prop_assert_eq!(decode(&le), text.as_str());
            }
            prop_assert_eq!(decode(&be), text.as_str());
        }

        #[test]
        fn prefix_and_suffix_are_as_long_as_can_be(text in "[aé€😀]{0,12}", bytes in 0usize..50) {
            let (head, tail) = (prefix(&text, bytes), suffix(&text, bytes));
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            for part in [head, tail] {
                prop_assert!(part.len() <= bytes);
                prop_assert!(part.len() == text.len() || part.len() + 3 >= bytes);
            }
        }

        #[test]
        fn pieces_decode_like_the_whole(text in "[aé€😀]{0,12}", at in 0usize..40) {
            let bytes = text.as_bytes();
            let at = at.min(bytes.len());
            let cut = at - unfinished(&bytes[..at]);
            prop_assert_eq!(format!("{}{}", lossy(&bytes[..cut]), lossy(&bytes[cut..])), text);
        }

        #[test]
        fn nothing_deceptive_is_left(text in any::<String>()) {
            let left = visible(&text).chars().any(|c| is_deceptive(c) || (c.is_control() && c != '\n' && c != '\t'));
            prop_assert!(!left);
        }
    }
}
