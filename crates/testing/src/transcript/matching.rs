//! Compares a text with a page's expectation, which may contain placeholders.

/// Whether `text` matches `expected`.
pub(super) fn matches(expected: &str, text: &str) -> bool {
    let expected: Vec<&str> = expected.lines().collect();
    let text: Vec<&str> = text.lines().collect();
    lines_match(&expected, &text)
}

/// `[...]` alone on a line matches any lines.
fn lines_match(expected: &[&str], text: &[&str]) -> bool {
    match (expected, text) {
        ([], []) => true,
        (["[...]", expected @ ..], text) => (0..=text.len())
            .any(|skipped| lines_match(expected, text.get(skipped..).unwrap_or(&[]))),
        ([first, expected @ ..], [line, text @ ..]) => {
            line_matches(first, line) && lines_match(expected, text)
        }
        _ => false,
    }
}

fn line_matches(expected: &str, text: &str) -> bool {
    let pieces: Vec<&str> = expected.split("[..]").collect();
    let [first, middle @ .., last] = pieces.as_slice() else {
        return expected == text;
    };
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    for piece in middle {
        let Some((_, after)) = rest.split_once(piece) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}
