//! Reading lines so that whitespace at their ends, typography and Unicode's composed and
//! decomposed letters do not matter, with a way back to the bytes.

use crate::text::nearest::plain;
use icu_normalizer::ComposingNormalizerBorrowed;
use std::borrow::Cow;
use std::ops::Range;

/// A character with the marks that follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit<'a> {
    /// As it is written.
    pub(super) raw: &'a str,
    /// Composed, and without typography and invisible characters.
    pub(super) folded: String,
}

/// Splits a text into units.
pub(super) fn units(text: &str) -> Vec<Unit<'_>> {
    let mut starts: Vec<usize> = Vec::new();
    for (at, c) in text.char_indices() {
        if starts.is_empty() || !(is_mark(c) || is_invisible(c)) {
            starts.push(at);
        }
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts
        .iter()
        .zip(ends)
        .filter_map(|(start, end)| text.get(*start..end))
        .map(|raw| Unit {
            raw,
            folded: fold_unit(raw),
        })
        .collect()
}

fn fold_unit(raw: &str) -> String {
    if raw.is_ascii() {
        return raw.to_owned();
    }
    let seen: String = raw.chars().filter(|c| !is_invisible(*c)).collect();
    composed(&seen).chars().map(plain).collect()
}

/// Returns a text in composed form.
pub(super) fn composed(text: &str) -> String {
    ComposingNormalizerBorrowed::new_nfc()
        .normalize(text)
        .into_owned()
}

/// Whether a character has no width and no meaning in a source text.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{2060}' | '\u{feff}')
}

/// Whether a character is drawn on the one before it.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{3099}'..='\u{309a}')
}

/// A text folded, with the offsets of its units.
pub(super) struct Folded<'a> {
    pub(super) text: Cow<'a, [u8]>,
    /// Offsets in the folded text and in the raw one; none if they are the same.
    map: Vec<(usize, usize)>,
}

impl<'a> Folded<'a> {
    /// Bytes that are not UTF-8 stay as they are.
    pub(super) fn of(raw: &'a [u8]) -> Self {
        let text = match std::str::from_utf8(raw) {
            Ok(text) if !text.is_ascii() => text,
            _ => {
                return Self {
                    text: Cow::Borrowed(raw),
                    map: Vec::new(),
                };
            }
        };
        let (mut folded, mut map, mut at) = (String::new(), Vec::new(), 0);
        for unit in units(text) {
            map.push((folded.len(), at));
            folded.push_str(&unit.folded);
            at += unit.raw.len();
        }
        map.push((folded.len(), at));
        Self {
            text: Cow::Owned(folded.into_bytes()),
            map,
        }
    }

    /// Returns the raw range of a folded one; `None` if it splits a unit.
    pub(super) fn raw(&self, folded: Range<usize>) -> Option<Range<usize>> {
        if self.map.is_empty() {
            return Some(folded);
        }
        let find = |at: usize| {
            let index = self.map.partition_point(|(known, _)| *known < at);
            self.map
                .get(index)
                .filter(|(known, _)| *known == at)
                .map(|(_, raw)| *raw)
        };
        Some(find(folded.start)?..find(folded.end)?)
    }
}

/// A line in three parts.
#[derive(Debug, Clone)]
pub(super) struct Line<'a> {
    /// Leading whitespace, with every kind of space as a plain one.
    pub(super) indent: Cow<'a, str>,
    /// Number of bytes of the leading whitespace.
    pub(super) indent_bytes: usize,
    pub(super) body: &'a [u8],
    /// Trailing whitespace.
    pub(super) trail: &'a [u8],
}

impl<'a> Line<'a> {
    /// Splits a line, which has no line ending.
    pub(super) fn of(raw: &'a [u8]) -> Self {
        let (indent, indent_bytes) = match std::str::from_utf8(raw) {
            Ok(text) => {
                let rest = text.trim_start_matches(|c| c == '\t' || plain(c) == ' ');
                let indent = text.strip_suffix(rest).unwrap_or_default();
                let folded = if indent.is_ascii() {
                    Cow::Borrowed(indent)
                } else {
                    Cow::Owned(indent.chars().map(plain).collect())
                };
                (folded, indent.len())
            }
            Err(_) => {
                let length = raw
                    .iter()
                    .take_while(|byte| matches!(byte, b' ' | b'\t'))
                    .count();
                let indent = raw.get(..length).unwrap_or_default();
                (String::from_utf8_lossy(indent), length)
            }
        };
        let rest = raw.get(indent_bytes..).unwrap_or_default();
        let end = match std::str::from_utf8(rest) {
            Ok(text) => text
                .trim_end_matches(|c| c == '\t' || plain(c) == ' ')
                .len(),
            Err(_) => rest.trim_ascii_end().len(),
        };
        let (body, trail) = rest.split_at_checked(end).unwrap_or((rest, b""));
        Self {
            indent,
            indent_bytes,
            body,
            trail,
        }
    }

    pub(super) fn is_blank(&self) -> bool {
        self.body.is_empty()
    }
}
