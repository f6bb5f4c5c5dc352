//! Text and numbers as an editor shows them.

const ESCAPE: char = '\x1b';

/// Removes the colours and cursor movements of a terminal.
pub(crate) fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != ESCAPE {
            plain.push(c);
            continue;
        }
        match chars.next() {
            // Ends with a letter, or another character of this range.
            Some('[') => {
                chars.find(|c| ('@'..='~').contains(c));
            }
            // Ends with a bell, or with an escape and a backslash.
            Some(']') => {
                let end = chars.find(|c| matches!(*c, '\x07' | ESCAPE));
                if end == Some(ESCAPE) {
                    chars.next();
                }
            }
            // Selects a set of characters, which the next one names.
            Some('(' | ')') => {
                chars.next();
            }
            _ => {}
        }
    }
    plain
}

/// Writes a number with a comma between groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_removed() {
        for (text, plain) in [
            ("\x1b[1;31merror\x1b[0m: x", "error: x"),
            ("\x1b]0;title\x07a\x1b]8;;u\x1b\\b", "ab"),
            ("a\x1b(Bb\x1b=c", "abc"),
            ("cut \x1b[3", "cut "),
            ("漢字", "漢字"),
        ] {
            assert_eq!(without_colours(text), plain, "{text:?}");
        }
    }

    #[test]
    fn long_numbers_have_commas() {
        for (number, text) in [
            (0, "0"),
            (112, "112"),
            (3194, "3,194"),
            (1_000_000, "1,000,000"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
