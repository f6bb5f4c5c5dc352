//! Counting, iterating over and numbering lines.

use std::fmt::Write as _;

use memchr::{memchr_iter, memrchr};

/// Maximum number of characters in a row of [`number`]; longer lines continue on more rows.
pub const CHUNK_CHARS: usize = 5_000;

/// Counts the lines of a text.
#[must_use]
pub fn count(text: &str) -> usize {
    count_bytes(text.as_bytes())
}

/// Counts the lines of bytes that may not be text.
#[must_use]
pub fn count_bytes(bytes: &[u8]) -> usize {
    let newlines = memchr_iter(b'\n', bytes).count();
    let unfinished = bytes.last().is_some_and(|last| *last != b'\n');
    newlines + usize::from(unfinished)
}

/// Iterates over the lines without their `\n`.
///
/// Unlike [`str::lines`] this keeps a `\r`, because edits must see it.
pub fn split(text: &str) -> impl Iterator<Item = &str> {
    split_inclusive(text).map(|line| line.strip_suffix('\n').unwrap_or(line))
}

/// Iterates over the lines with their `\n`; joined, they are the original text.
pub fn split_inclusive(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n')
}

/// Whether every line has a number in front that is one more than the one before, as file
/// tools print them. At least two lines.
#[must_use]
pub fn are_numbered(text: &str) -> bool {
    let mut expected: Option<u64> = None;
    let mut count = 0;
    for line in split(text) {
        let rest = line.trim_start_matches(' ');
        let body = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = rest
            .strip_suffix(body)
            .and_then(|digits| digits.parse::<u64>().ok());
        let Some(number) = number.filter(|number| expected.is_none_or(|next| next == *number))
        else {
            return false;
        };
        let trimmed = body.is_empty() && count > 0;
        if !trimmed && !body.starts_with(['\t', '\u{2192}']) {
            return false;
        }
        expected = Some(number + 1);
        count += 1;
    }
    count > 1
}

/// Returns the part of a text that starts at line `first` (counted from 1; 0 is the same as
/// 1) and has at most `limit` lines, byte for byte.
///
/// `None` if the text has no such line.
#[must_use]
pub fn window(text: &str, first: usize, limit: usize) -> Option<&str> {
    let bytes = text.as_bytes();
    let start = match first.max(1) - 1 {
        0 => 0,
        skip => memchr_iter(b'\n', bytes).nth(skip - 1)? + 1,
    };
    let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
    let end = match limit {
        0 => 0,
        limit => memchr_iter(b'\n', rest.as_bytes())
            .nth(limit - 1)
            .map_or(rest.len(), |at| at + 1),
    };
    rest.get(..end)
}

/// Returns the number of the line that contains the byte at `offset`, counted from 1.
///
/// An offset past the end counts as the end of the text.
#[must_use]
pub fn line_of(text: &str, offset: usize) -> usize {
    let bytes = text.as_bytes();
    let before = bytes.get(..offset).unwrap_or(bytes);
    memchr_iter(b'\n', before).count() + 1
}

/// Returns the byte offset of the start of the line that contains `offset`.
#[must_use]
pub fn line_start(text: &str, offset: usize) -> usize {
    let bytes = text.as_bytes();
    let before = bytes.get(..offset).unwrap_or(bytes);
    memrchr(b'\n', before).map_or(0, |at| at + 1)
}

/// Numbers lines like `cat -n`: the number right-aligned in six columns, then a tab. Rows
/// are joined by `\n`; the first line has the number `first`.
///
/// A line of more than `chunk` characters continues on rows labelled `5.1`, `5.2`, so that
/// no row is endless and every row can be quoted by its label. A `chunk` of 0 is the same
/// as 1.
#[must_use]
pub fn number(first: usize, text: &str, chunk: usize) -> String {
    let mut rows = String::with_capacity(text.len() + text.len() / 4);
    for (index, line) in split(text).enumerate() {
        if index > 0 {
            rows.push('\n');
        }
        number_line(&mut rows, first.saturating_add(index), line, chunk);
    }
    rows
}

/// Appends the rows of one line, as [`number`] does, without a final `\n`.
pub fn number_line(rows: &mut String, number: usize, line: &str, chunk: usize) {
    // Writing to a String cannot fail, so the results are ignored.
    let mut rest = line;
    let mut part = 0usize;
    loop {
        let (piece, more) = split_chars(rest, chunk.max(1));
        if part == 0 {
            let _ = write!(rows, "{number:>6}\t{piece}");
        } else {
            let label = format!("{number}.{part}");
            let _ = write!(rows, "\n{label:>6}\t{piece}");
        }
        if more.is_empty() {
            return;
        }
        rest = more;
        part += 1;
    }
}

/// Splits after `chars` characters.
fn split_chars(text: &str, chars: usize) -> (&str, &str) {
    // A text never has more characters than bytes, so most lines need no counting.
    if text.len() <= chars {
        return (text, "");
    }
    let at = text
        .char_indices()
        .nth(chars)
        .map_or(text.len(), |(at, _)| at);
    text.split_at_checked(at).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_final_newline_makes_no_line() {
        for (text, lines) in [
            ("", 0),
            ("\n", 1),
            ("a", 1),
            ("a\n", 1),
            ("a\nb", 2),
            ("a\n\n", 2),
            ("\r", 1),
            ("a\r\nb\r\n", 2),
        ] {
            assert_eq!(count(text), lines, "{text:?}");
            assert_eq!(split(text).count(), lines, "{text:?}");
        }
        assert_eq!(count_bytes(b"\xff\n\xfe"), 2);
    }

    #[test]
    fn carriage_returns_stay() {
        assert_eq!(split("a\r\nb\rc").collect::<Vec<_>>(), ["a\r", "b\rc"]);
    }

    #[test]
    fn windows() {
        let text = "a\nb\nc";
        assert_eq!(window(text, 1, 2), Some("a\nb\n"));
        assert_eq!(window(text, 0, 1), Some("a\n"));
        assert_eq!(window(text, 3, 9), Some("c"));
        assert_eq!(window(text, 3, 0), Some(""));
        assert_eq!(window(text, 4, 1), None);
        assert_eq!(window("a\n", 2, 1), None);
        assert_eq!(window("", 1, 1), None);
        assert_eq!(window(text, usize::MAX, usize::MAX), None);
    }

    #[test]
    fn positions() {
        let text = "ab\ncd\n";
        assert_eq!(
            (line_of(text, 0), line_of(text, 2), line_of(text, 3)),
            (1, 1, 2)
        );
        assert_eq!(
            (
                line_start(text, 2),
                line_start(text, 4),
                line_start(text, 99)
            ),
            (0, 3, 6)
        );
    }

    #[test]
    fn rows_like_cat() {
        assert_eq!(
            number(9, "a\n\nb\n", CHUNK_CHARS),
            "     9\ta\n    10\t\n    11\tb"
        );
        assert_eq!(number(1, "", CHUNK_CHARS), "");
        assert_eq!(number(1_234_567, "x", CHUNK_CHARS), "1234567\tx");
    }

    #[test]
    fn long_lines_continue() {
        assert_eq!(
            number(5, "aabbc\nd", 2),
            "     5\taa\n   5.1\tbb\n   5.2\tc\n     6\td"
        );
        // Exactly one row of characters does not need a second row, however many bytes it
        // has.
        let exact = "é".repeat(CHUNK_CHARS);
        assert_eq!(number(1, &exact, CHUNK_CHARS).lines().count(), 1);
        let over = number(1, &format!("{exact}!"), CHUNK_CHARS);
        assert!(over.ends_with("\n   1.1\t!"));
        assert_eq!(number(1, "ab", 0), "     1\ta\n   1.1\tb");
    }

    proptest! {
        #[test]
        fn numbering_can_be_undone(text in "[a-c\t é\n]{0,60}", first in 1usize..99_999, chunk in 1usize..9) {
            let mut back: Vec<String> = Vec::new();
            let rows = number(first, &text, chunk);
            if !text.is_empty() {
                for row in rows.split('\n') {
                    let (label, piece) = row.split_once('\t').unwrap();
                    prop_assert!(label.chars().count() >= 6);
                    prop_assert!(piece.chars().count() <= chunk);
                    match label.trim_start().split_once('.') {
                        None => {
                            let number: usize = label.trim_start().parse().unwrap();
                            prop_assert_eq!(number, first + back.len());
                            back.push(piece.to_owned());
                        }
                        Some(_) => back.last_mut().unwrap().push_str(piece),
                    }
                }
            }
            prop_assert_eq!(back, split(&text).map(str::to_owned).collect::<Vec<_>>());
        }

        #[test]
        fn windows_tile_the_text(text in "[ab\n]{0,40}", step in 1usize..5) {
            let mut whole = String::new();
            let mut first = 1;
            while let Some(part) = window(&text, first, step) {
                prop_assert!(count(part) <= step);
                whole.push_str(part);
                first += step;
            }
            prop_assert_eq!(whole, text);
        }
    }
}
