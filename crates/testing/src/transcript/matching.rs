//! Whether a text is what a page says, with its placeholders.

/// Whether `text` is what `wanted` describes.
pub(super) fn matches(wanted: &str, text: &str) -> bool {
    let wanted: Vec<&str> = wanted.lines().collect();
    let text: Vec<&str> = text.lines().collect();
    lines_match(&wanted, &text)
}

/// `[...]` alone on a line stands for any lines.
fn lines_match(wanted: &[&str], text: &[&str]) -> bool {
    match (wanted, text) {
        ([], []) => true,
        (["[...]", wanted @ ..], text) => {
            (0..=text.len()).any(|skipped| lines_match(wanted, text.get(skipped..).unwrap_or(&[])))
        }
        ([first, wanted @ ..], [line, text @ ..]) => {
            line_matches(first, line) && lines_match(wanted, text)
        }
        _ => false,
    }
}

fn line_matches(wanted: &str, text: &str) -> bool {
    let pieces: Vec<&str> = wanted.split("[..]").collect();
    let [first, middle @ .., last] = pieces.as_slice() else {
        return wanted == text;
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
