//! Finding and splicing text in bytes.

use crate::{Error, Result};
use memchr::memmem;
use std::borrow::Cow;
use std::ops::Range;

/// A span of the file and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replacement {
    /// Bytes to remove: the match without the start and the end that old and new text
    /// share.
    pub(super) span: Range<usize>,
    /// Bytes to insert.
    pub(super) new: Vec<u8>,
}

/// All matches of a text, including overlapping ones: a text whose occurrences overlap is
/// ambiguous too.
#[derive(Debug, Clone)]
pub(super) struct Matches {
    pub(super) spans: Vec<Range<usize>>,
    /// The text to find, with LF line endings.
    pub(super) plain: String,
}

/// Finds all matches.
pub(super) fn find(bytes: &[u8], old: &str) -> Matches {
    let plain = old.replace("\r\n", "\n");
    if old.contains('\r') {
        // Line endings that the caller spelled out are matched exactly first.
        let found = overlapping(bytes, old.as_bytes());
        if !found.is_empty() {
            let spans = found
                .into_iter()
                .map(|start| start..start + old.len())
                .collect();
            return Matches { spans, plain };
        }
    }
    let view = View::of(bytes);
    let found = overlapping(&view.bytes, plain.as_bytes());
    let spans = found
        .into_iter()
        .map(|start| view.raw(start)..view.raw(start + plain.len()))
        .collect();
    Matches { spans, plain }
}

impl Matches {
    /// Keeps only the first match.
    pub(super) fn first(mut self) -> Self {
        self.spans.truncate(1);
        self
    }

    /// Keeps only the matches that do not overlap an earlier one.
    pub(super) fn without_overlaps(mut self) -> Self {
        let mut end = 0;
        self.spans.retain(|span| {
            let apart = span.start >= end;
            if apart {
                end = span.end;
            }
            apart
        });
        self
    }

    /// Returns replacements with the new text as it is, if it differs from the old one only
    /// in line endings and the matches have exactly the bytes of the old one.
    pub(super) fn verbatim(&self, bytes: &[u8], old: &str, new: &str) -> Option<Vec<Replacement>> {
        let applies = old != new
            && new.replace("\r\n", "\n") == self.plain
            && self
                .spans
                .iter()
                .all(|span| bytes.get(span.clone()) == Some(old.as_bytes()));
        applies.then(|| {
            let spans = self.spans.iter();
            spans
                .map(|span| Replacement {
                    span: span.clone(),
                    new: new.as_bytes().to_vec(),
                })
                .collect()
        })
    }

    /// Returns the replacement of each match. The new text takes over the line endings
    /// around it.
    pub(super) fn replacements(self, bytes: &[u8], new: &str) -> Vec<Replacement> {
        let new = new.replace("\r\n", "\n");
        let mut endings = Endings::of(bytes);
        self.spans
            .into_iter()
            .map(|span| replacement(bytes, span, &self.plain, &new, &mut endings))
            .collect()
    }
}

/// Returns a replacement without the bytes at both ends that stay the same.
pub(super) fn narrowed(bytes: &[u8], span: Range<usize>, mut new: Vec<u8>) -> Replacement {
    let old = bytes.get(span.clone()).unwrap_or_default();
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev());
    let tail = tail.take(most).take_while(|(a, b)| a == b).count();
    new.truncate(new.len() - tail);
    Replacement {
        span: span.start + head..span.end - tail,
        new: new.split_off(head),
    }
}

/// Splices the new bytes in. The bytes around the spans are copied and then compared with
/// the original again, because this module promises not to change them.
pub(super) fn apply(bytes: &[u8], replacements: &[Replacement]) -> Result<Vec<u8>> {
    let outside = |error: &str| Error::Fault(format!("{error}; the file was not written"));
    let mut after = Vec::with_capacity(
        bytes.len()
            + replacements
                .iter()
                .map(|replacement| replacement.new.len())
                .sum::<usize>(),
    );
    let mut at = 0;
    for replacement in replacements {
        let unchanged = bytes
            .get(at..replacement.span.start)
            .ok_or_else(|| outside("the spans of an edit overlap"))?;
        after.extend_from_slice(unchanged);
        after.extend_from_slice(&replacement.new);
        at = replacement.span.end;
    }
    after.extend_from_slice(
        bytes
            .get(at..)
            .ok_or_else(|| outside("an edit ends outside the file"))?,
    );

    let (mut before, mut now) = (0, 0);
    for replacement in replacements {
        let length = replacement.span.start - before;
        if bytes.get(before..replacement.span.start) != after.get(now..now + length) {
            return Err(outside("bytes outside the edit would have changed"));
        }
        before = replacement.span.end;
        now += length + replacement.new.len();
    }
    if bytes.get(before..) == after.get(now..) {
        Ok(after)
    } else {
        Err(outside("bytes after the edit would have changed"))
    }
}

/// Byte-order mark at the start of UTF-8 files written on some systems.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Returns the replacement for a range of lines.
pub(super) fn lines(bytes: &[u8], first: usize, last: usize, new: &str) -> Result<Replacement> {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(memchr::memchr_iter(b'\n', bytes).map(|at| at + 1))
        .filter(|start| *start < bytes.len())
        .collect();
    let out_of_bounds = Error::LineRange {
        lines: starts.len(),
    };
    if first == 0 || last < first {
        return Err(out_of_bounds);
    }
    let (Some(&start), Some(_)) = (starts.get(first - 1), starts.get(last - 1)) else {
        return Err(out_of_bounds);
    };
    let end = starts.get(last).copied().unwrap_or(bytes.len());
    // The byte-order mark is not part of the first line, because the model does not see it.
    let start = match bytes.get(start..).unwrap_or_default() {
        line if start == 0 && line.starts_with(BYTE_ORDER_MARK) => BYTE_ORDER_MARK.len(),
        _ => start,
    };
    let ending = Endings::of(bytes).at(start..end);
    let mut content = with_ending(&new.replace("\r\n", "\n"), ending)
        .into_owned()
        .into_bytes();
    let ends_with_newline = bytes
        .get(start..end)
        .is_some_and(|line| line.ends_with(b"\n"));
    if !content.is_empty() {
        if ends_with_newline && !content.ends_with(b"\n") {
            content.extend_from_slice(ending.as_bytes());
        } else if !ends_with_newline && content.ends_with(b"\n") {
            content.truncate(content.len() - if content.ends_with(b"\r\n") { 2 } else { 1 });
        }
    }
    Ok(Replacement {
        span: start..end,
        new: content,
    })
}

/// Returns the lines where replacements start, without duplicates.
pub(super) fn lines_of(bytes: &[u8], replacements: &[Replacement], most: usize) -> Vec<usize> {
    let (mut line, mut at) = (1, 0);
    let mut lines = Vec::new();
    for replacement in replacements.iter().take(most) {
        let between = bytes.get(at..replacement.span.start).unwrap_or_default();
        line += memchr::memchr_iter(b'\n', between).count();
        at = replacement.span.start;
        lines.push(line);
    }
    lines.dedup();
    lines
}

/// Returns the line that contains a byte.
pub(super) fn line_text(bytes: &[u8], at: usize) -> String {
    let start = memchr::memrchr(b'\n', bytes.get(..at).unwrap_or_default()).map_or(0, |at| at + 1);
    let rest = bytes.get(start..).unwrap_or_default();
    let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    String::from_utf8_lossy(rest.get(..end).unwrap_or_default())
        .trim_end_matches('\r')
        .to_owned()
}

/// Returns the line number of a byte, counted from 1.
pub(super) fn line_of(bytes: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', bytes.get(..at).unwrap_or_default()).count() + 1
}

/// Turns a match into a replacement. Leaves out what old and new text share at both ends,
/// so that context lines keep their bytes. Both texts have LF line endings.
pub(super) fn replacement(
    bytes: &[u8],
    span: Range<usize>,
    old: &str,
    new: &str,
    endings: &mut Endings<'_>,
) -> Replacement {
    let head = common_head(old, new);
    let (old_rest, new_rest) = (
        old.get(head..).unwrap_or_default(),
        new.get(head..).unwrap_or_default(),
    );
    let tail = common_tail(old_rest, new_rest);
    let matched = bytes.get(span.clone()).unwrap_or_default();
    let begin = span.start + raw_length(matched, head);
    let end = span.end - raw_length_back(matched, tail);
    let middle = new_rest.get(..new_rest.len() - tail).unwrap_or_default();
    let middle = with_ending(middle, endings.at(begin..end));
    Replacement {
        span: begin..end,
        new: middle.into_owned().into_bytes(),
    }
}

/// Returns the length of the common prefix in bytes, in complete characters and with LF
/// line endings.
fn common_head(a: &str, b: &str) -> usize {
    a.char_indices()
        .zip(b.chars())
        .take_while(|((_, a), b)| a == b)
        .last()
        .map_or(0, |((at, a), _)| at + a.len_utf8())
}

fn common_tail(a: &str, b: &str) -> usize {
    a.chars()
        .rev()
        .zip(b.chars().rev())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum()
}

/// Returns the number of raw bytes for the first `count` bytes of the LF view.
fn raw_length(raw: &[u8], count: usize) -> usize {
    let mut at = 0;
    for _ in 0..count {
        at += if raw.get(at..at + 2) == Some(b"\r\n") {
            2
        } else {
            1
        };
    }
    at
}

/// Like `raw_length`, counted from the end.
fn raw_length_back(raw: &[u8], count: usize) -> usize {
    let mut at = raw.len();
    for _ in 0..count {
        at -= if at >= 2 && raw.get(at - 2..at) == Some(b"\r\n") {
            2
        } else {
            1
        };
    }
    raw.len() - at
}

/// The line endings around spans that come in order. Searches for each newline only once,
/// however many spans precede it, because a file may be a single line of megabytes.
pub(super) struct Endings<'a> {
    bytes: &'a [u8],
    /// The first newline at or after the last span, once searched.
    after: Option<Option<usize>>,
    /// The last newline of the file; searched only if no newline follows a span.
    before: Option<Option<usize>>,
}

impl<'a> Endings<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            after: None,
            before: None,
        }
    }

    /// Returns the line ending of the first newline in the span, otherwise of the line
    /// where the span ends, otherwise of the line before.
    pub(super) fn at(&mut self, span: Range<usize>) -> &'static str {
        let bytes = self.bytes;
        let inside = memchr::memchr(b'\n', bytes.get(span.clone()).unwrap_or_default())
            .map(|at| span.start + at);
        let newline = inside.or_else(|| self.after(span.end)).or_else(|| {
            *self.before.get_or_insert_with(|| {
                memchr::memrchr(b'\n', bytes.get(..span.start).unwrap_or_default())
            })
        });
        match newline {
            Some(newline) if newline > 0 && bytes.get(newline - 1) == Some(&b'\r') => "\r\n",
            _ => "\n",
        }
    }

    fn after(&mut self, end: usize) -> Option<usize> {
        match self.after {
            Some(None) => None,
            Some(Some(newline)) if newline >= end => Some(newline),
            _ => {
                let found = memchr::memchr(b'\n', self.bytes.get(end..).unwrap_or_default())
                    .map(|at| end + at);
                self.after = Some(found);
                found
            }
        }
    }
}

fn with_ending<'a>(text: &'a str, ending: &str) -> Cow<'a, str> {
    if ending == "\n" {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.replace('\n', ending))
    }
}

/// Finds every occurrence, also those that overlap, in linear time: `memmem` finds the
/// first one of a chain, and the Knuth–Morris–Pratt automaton follows the chain.
fn overlapping(bytes: &[u8], needle: &[u8]) -> Vec<usize> {
    let finder = memmem::Finder::new(needle);
    let mut found = Vec::new();
    let mut borders = Vec::new();
    let mut at = 0;
    while let Some(next) = bytes.get(at..).and_then(|rest| finder.find(rest)) {
        found.push(at + next);
        if borders.is_empty() {
            borders = border_lengths(needle);
        }
        // Bytes of the needle that end before `at`.
        let mut matched = borders.last().copied().unwrap_or(0);
        at += next + needle.len();
        while matched > 0 {
            let Some(byte) = bytes.get(at) else {
                return found;
            };
            if needle.get(matched) == Some(byte) {
                matched += 1;
                at += 1;
                if matched == needle.len() {
                    found.push(at - needle.len());
                    matched = borders.last().copied().unwrap_or(0);
                }
            } else {
                matched = borders.get(matched - 1).copied().unwrap_or(0);
            }
        }
    }
    found
}

/// Returns, for each prefix of the needle, the length of the longest proper prefix that it
/// also ends with.
fn border_lengths(needle: &[u8]) -> Vec<usize> {
    let mut borders: Vec<usize> = Vec::with_capacity(needle.len());
    let mut matched = 0;
    for (at, byte) in needle.iter().enumerate() {
        while matched > 0 && needle.get(matched) != Some(byte) {
            matched = borders.get(matched - 1).copied().unwrap_or(0);
        }
        if at > 0 && needle.get(matched) == Some(byte) {
            matched += 1;
        }
        borders.push(matched);
    }
    borders
}

/// The file with LF line endings, and a mapping back to its bytes.
struct View<'a> {
    bytes: Cow<'a, [u8]>,
    /// Offsets in the view of newlines whose CR was dropped.
    dropped: Vec<usize>,
}

impl<'a> View<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        let mut crlf = memmem::find_iter(bytes, b"\r\n").peekable();
        if crlf.peek().is_none() {
            return Self {
                bytes: Cow::Borrowed(bytes),
                dropped: Vec::new(),
            };
        }
        let mut view = Vec::with_capacity(bytes.len());
        let mut dropped = Vec::new();
        let mut at = 0;
        for cr in crlf {
            view.extend_from_slice(bytes.get(at..cr).unwrap_or_default());
            dropped.push(view.len());
            at = cr + 1;
        }
        view.extend_from_slice(bytes.get(at..).unwrap_or_default());
        Self {
            bytes: Cow::Owned(view),
            dropped,
        }
    }

    /// Maps an offset in the view to the raw offset; for a newline, that of its CR.
    fn raw(&self, at: usize) -> usize {
        at + self.dropped.partition_point(|dropped| *dropped < at)
    }
}
