//! Splits long texts into parts.

/// Splits a text into parts of at most `max` UTF-16 units.
///
/// Services count differently. Most count UTF-16 units, and that is never fewer than the number
/// of characters. A part ends after the last line break in its second half, otherwise after the
/// last space, otherwise between any two characters. Drops parts of only whitespace, because
/// services reject them as empty.
pub(super) fn split(text: &str, max_length: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(end(rest, max_length));
        parts.push(part);
        rest = after;
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Returns where the first part of a text ends.
fn end(text: &str, max_length: usize) -> usize {
    let mut units = 0;
    let (mut line, mut space, mut last) = (None, None, 0);
    for (at, c) in text.char_indices() {
        units += c.len_utf16();
        if units > max_length {
            // Always takes at least one character, or the loop would never end.
            return line.or(space).unwrap_or(last).max(first(text));
        }
        last = at + c.len_utf8();
        if units * 2 >= max_length {
            match c {
                '\n' => line = Some(last),
                ' ' | '\t' => space = Some(last),
                _ => {}
            }
        }
    }
    text.len()
}

fn first(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::split;
    use proptest::prelude::*;

    #[test]
    fn text_is_split_at_line_breaks_if_possible() {
        assert_eq!(split("", 10), Vec::<&str>::new());
        assert_eq!(split("short", 10), ["short"]);
        assert_eq!(split("0123456789", 10), ["0123456789"]);
        assert_eq!(split("one\ntwo three", 10), ["one\ntwo ", "three"]);
        assert_eq!(split("12345\n789 abc", 10), ["12345\n", "789 abc"]);
        assert_eq!(split("0123456789ab", 10), ["0123456789", "ab"]);
        assert_eq!(split("a\nbcdefghijkl", 10), ["a\nbcdefghi", "jkl"]);
        assert_eq!(split("0123456789          ", 10), ["0123456789"]);
    }

    #[test]
    fn surrogate_pairs_are_not_split() {
        assert_eq!(split("😀😀😀", 3), ["😀", "😀", "😀"]);
        assert_eq!(split("a😀", 2), ["a", "😀"]);
        assert_eq!(split("😀", 1), ["😀"]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost(text in "[a-z😀é\n ]{0,200}", max_length in 2usize..40) {
            let parts = split(&text, max_length);
            for part in &parts {
                prop_assert!(part.encode_utf16().count() <= max_length);
                prop_assert!(!part.trim().is_empty());
            }
            let visible = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(visible(&parts.concat()), visible(&text));
        }
    }
}
