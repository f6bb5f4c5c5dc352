//! Characters that are escaped in JSON (`\u0041`) or in a program's text (`\x41`, `\u{41}`).

use super::spelled::{hexadecimal, run, unicode};
use memchr::memchr_iter;
use std::ops::Range;

/// A text in which some escaped characters are replaced by the characters themselves.
pub(super) struct Unescaped {
    pub(super) text: String,
    /// Offsets here and in the original from which both texts are the same, up to the next
    /// replaced character.
    starts: Vec<(usize, usize)>,
}

impl Unescaped {
    /// Replaces escapes of the given ASCII characters, with any number of backslashes.
    /// Returns `None` if the text has no such escape.
    pub(super) fn new(original: &str, wanted: &[u8]) -> Option<Self> {
        let bytes = original.as_bytes();
        let mut text = String::new();
        let mut starts = vec![(0, 0)];
        let (mut from, mut next) = (0, 0);
        for at in memchr_iter(b'\\', bytes) {
            if at < next {
                continue;
            }
            next = at + run(bytes, at);
            let Some((symbol, end)) = escape(bytes, at, next) else {
                continue;
            };
            if !wanted.contains(&symbol) {
                continue;
            }
            text.push_str(original.get(from..at)?);
            starts.push((text.len(), at));
            text.push(char::from(symbol));
            starts.push((text.len(), end));
            (from, next) = (end, end);
        }
        if from == 0 {
            return None;
        }
        text.push_str(original.get(from..)?);
        Some(Self { text, starts })
    }

    /// Returns the range in the original text.
    pub(super) fn original(&self, range: &Range<usize>) -> Range<usize> {
        self.offset(range.start)..self.offset(range.end)
    }

    fn offset(&self, at: usize) -> usize {
        let before = self.starts.partition_point(|(here, _)| *here <= at);
        let start = self.starts.get(before.saturating_sub(1));
        start.map_or(at, |(here, original)| original + (at - here))
    }
}

/// Decodes the escape whose backslashes are at `at` up to `after`. Returns the end of it.
fn escape(bytes: &[u8], at: usize, after: usize) -> Option<(u8, usize)> {
    if let Some(found) = hexadecimal(bytes, at) {
        return Some(found);
    }
    let (code, length) = unicode(bytes.get(after..)?)?;
    Some((u8::try_from(code).ok()?, after + length))
}
