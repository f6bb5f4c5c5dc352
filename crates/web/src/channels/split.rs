//! Long texts in parts.

/// The parts of a text, each at most `most` UTF-16 units long, in order.
///
/// Services count differently; UTF-16 is what most of them count, and never
/// less than characters. A part ends at the end of a line where there is one in
/// its second half, else at a space, else anywhere between two characters.
/// Parts of white space alone are left out: services refuse them as empty.
pub(super) fn split(text: &str, most: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(end(rest, most));
        parts.push(part);
        rest = after;
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Where the first part of a text ends.
fn end(text: &str, most: usize) -> usize {
    let mut units = 0;
    let (mut line, mut space, mut last) = (None, None, 0);
    for (at, c) in text.char_indices() {
        units += c.len_utf16();
        if units > most {
            // A limit below one character would never end.
            return line.or(space).unwrap_or(last).max(first(text));
        }
        last = at + c.len_utf8();
        if units * 2 >= most {
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
    fn lines_stay_whole_where_they_can() {
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
    fn a_pair_of_surrogates_is_one_character() {
        assert_eq!(split("😀😀😀", 3), ["😀", "😀", "😀"]);
        assert_eq!(split("a😀", 2), ["a", "😀"]);
        assert_eq!(split("😀", 1), ["😀"]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost(text in "[a-z😀é\n ]{0,200}", most in 2usize..40) {
            let parts = split(&text, most);
            for part in &parts {
                prop_assert!(part.encode_utf16().count() <= most);
                prop_assert!(!part.trim().is_empty());
            }
            let visible = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(visible(&parts.concat()), visible(&text));
        }
    }
}
