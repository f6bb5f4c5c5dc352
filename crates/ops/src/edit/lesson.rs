//! Hints for a replacement whose old text is not in the file.

use super::{MAX_LESSON, splice};
use crate::error::Lesson;
use crate::text::nearest::Haystack;
use crate::text::{decode, nearest, size};

/// Returns hints about a file, also given as its text is seen.
pub(super) fn lesson(bytes: &[u8], seen: &Haystack<'_>, old: &str, new: &str) -> Lesson {
    if bytes.len() > MAX_LESSON {
        return Lesson {
            nearest: None,
            text: format!(
                "the file is too large to find similar text ({}, at most {}): search it for a part of the text, read the lines around it, and copy the text exactly",
                size::size(bytes.len() as u64),
                size::size(MAX_LESSON as u64),
            ),
            already: lines_with_new_text(bytes, old, new, None),
        };
    }
    let old = decode::lf(old);
    let nearest = seen.nearest(&old);
    let already = lines_with_new_text(bytes, &old, new, nearest.as_ref());
    let mut words = nearest
        .as_ref()
        .map(|nearest| nearest::lesson(nearest, seen.text(), &old))
        .or_else(|| seen.one_line(&old))
        .unwrap_or_default();
    for reason in invisible_differences(bytes, &old) {
        if !words.is_empty() {
            words.push('\n');
        }
        words.push_str(reason);
    }
    Lesson {
        nearest,
        text: words,
        already,
    }
}

/// Minimum length of a text that is not somewhere by chance.
const NOT_BY_CHANCE: usize = 16;

/// Maximum length of texts to compare letter by letter.
const MAX_COMPARED: usize = 2_000;

/// Returns the line where the new text already is, if that is where the old one was
/// expected: at the most similar place, or at the only one, if the new text is more like
/// the old one than that place.
fn lines_with_new_text(
    bytes: &[u8],
    old: &str,
    new: &str,
    nearest: Option<&nearest::Nearest>,
) -> Vec<usize> {
    let length = new.trim().chars().count();
    if length < 4 {
        return Vec::new();
    }
    let found = splice::find(bytes, new).spans;
    let lines: Vec<usize> = found
        .iter()
        .take(20)
        .map(|span| splice::line_of(bytes, span.start))
        .collect();
    let only = || match lines.as_slice() {
        [line] if length >= NOT_BY_CHANCE => vec![*line],
        _ => Vec::new(),
    };
    let Some(near) = nearest else {
        return only();
    };
    let rows = 1 + new.trim_end().matches('\n').count();
    let there = |line: &&usize| **line <= near.last_line && **line + rows > near.first_line;
    if let Some(line) = lines.iter().find(there) {
        return vec![*line];
    }
    if lines.is_empty() || old.len().max(new.len()) > MAX_COMPARED {
        return Vec::new();
    }
    let similarity = strsim::normalized_damerau_levenshtein(old.trim(), new.trim());
    if similarity > f64::from(near.similarity) {
        only()
    } else {
        Vec::new()
    }
}

/// Explains differences between the file and the text as the model has seen it.
fn invisible_differences(bytes: &[u8], old: &str) -> Vec<&'static str> {
    let mut reasons = Vec::new();
    if old.contains('\u{fffd}') && std::str::from_utf8(bytes).is_err() {
        reasons.push(
            "U+FFFD stands for bytes that are not UTF-8 and cannot be matched: use only text before or after them",
        );
    }
    if let Some(open) = old.strip_suffix('\n')
        && !bytes.ends_with(b"\n")
        && splice::find(bytes, open)
            .spans
            .last()
            .is_some_and(|span| span.end == bytes.len())
    {
        reasons.push("the file has no newline at its end: omit the last one");
    }
    let lone_cr = memchr::memchr_iter(b'\r', bytes).any(|at| bytes.get(at + 1) != Some(&b'\n'));
    if lone_cr && old.contains('\n') {
        reasons.push(
            "the file has carriage returns (CR) in the middle of lines: match each line by itself",
        );
    }
    reasons
}
