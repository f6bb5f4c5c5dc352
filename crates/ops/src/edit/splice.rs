//! Finding and splicing, on bytes alone.

use crate::{Error, Result};
use memchr::memmem;
use std::borrow::Cow;
use std::ops::Range;

/// A span of the file and what goes there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The bytes that go, within the match: what old and new share stays.
    pub(super) span: Range<usize>,
    /// The bytes that come.
    pub(super) new: Vec<u8>,
}

/// Where a text is, overlapping ones too: a text that occurs twice in an
/// overlapping way is as ambiguous as any other.
pub(super) struct Matches {
    pub(super) spans: Vec<Range<usize>>,
    /// The text that was looked for, with plain newlines.
    plain: String,
}

/// Finds every match.
pub(super) fn find(bytes: &[u8], old: &str) -> Matches {
    let plain = old.replace("\r\n", "\n");
    if old.contains('\r') {
        // Endings that the caller wrote out are looked for as they are.
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
    /// Only the first.
    pub(super) fn first(mut self) -> Self {
        self.spans.truncate(1);
        self
    }

    /// Only those that do not overlap an earlier one.
    pub(super) fn apart(mut self) -> Self {
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

    /// What goes where. The new text takes the endings of each place.
    pub(super) fn places(self, bytes: &[u8], new: &str) -> Vec<Place> {
        let new = new.replace("\r\n", "\n");
        let mut endings = Endings::of(bytes);
        self.spans
            .into_iter()
            .map(|span| place(bytes, span, &self.plain, &new, &mut endings))
            .collect()
    }
}

/// Puts the new bytes in. What lies between and around the spans is copied, and
/// compared with the original once more: the promise of this module.
pub(super) fn apply(bytes: &[u8], places: &[Place]) -> Result<Vec<u8>> {
    let outside = |error: &str| Error::Fault(format!("{error}; the file was not written"));
    let mut after =
        Vec::with_capacity(bytes.len() + places.iter().map(|place| place.new.len()).sum::<usize>());
    let mut at = 0;
    for place in places {
        let kept = bytes
            .get(at..place.span.start)
            .ok_or_else(|| outside("the spans of an edit overlap"))?;
        after.extend_from_slice(kept);
        after.extend_from_slice(&place.new);
        at = place.span.end;
    }
    after.extend_from_slice(
        bytes
            .get(at..)
            .ok_or_else(|| outside("an edit ends outside the file"))?,
    );

    let (mut before, mut now) = (0, 0);
    for place in places {
        let length = place.span.start - before;
        if bytes.get(before..place.span.start) != after.get(now..now + length) {
            return Err(outside("bytes outside the edit would have changed"));
        }
        before = place.span.end;
        now += length + place.new.len();
    }
    if bytes.get(before..) == after.get(now..) {
        Ok(after)
    } else {
        Err(outside("bytes after the edit would have changed"))
    }
}

/// What UTF-8 files of some systems begin with.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The place of a range of lines.
pub(super) fn lines(bytes: &[u8], first: usize, last: usize, new: &str) -> Result<Place> {
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
    // The mark of a file is no part of its first line: nobody sees it there.
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
    Ok(Place {
        span: start..end,
        new: content,
    })
}

/// The line a byte is on, counted from 1.
pub(super) fn line_of(bytes: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', bytes.get(..at).unwrap_or_default()).count() + 1
}

/// A match as a place: what old and new have in common at both ends is left
/// alone, so that lines that only give context keep their own bytes. Both come
/// with plain newlines.
fn place(
    bytes: &[u8],
    whole: Range<usize>,
    old: &str,
    new: &str,
    endings: &mut Endings<'_>,
) -> Place {
    let head = common_head(old, new);
    let (old_rest, new_rest) = (
        old.get(head..).unwrap_or_default(),
        new.get(head..).unwrap_or_default(),
    );
    let tail = common_tail(old_rest, new_rest);
    let matched = bytes.get(whole.clone()).unwrap_or_default();
    let begin = whole.start + raw_length(matched, head);
    let end = whole.end - raw_length_back(matched, tail);
    let middle = new_rest.get(..new_rest.len() - tail).unwrap_or_default();
    let middle = with_ending(middle, endings.at(begin..end));
    Place {
        span: begin..end,
        new: middle.into_owned().into_bytes(),
    }
}

/// How many bytes both begin with, whole characters, counted with LF endings.
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

/// How many raw bytes the first `count` bytes of the LF view are.
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

/// The same, counted from the end.
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

/// The line endings around spans that come in order. Each newline is looked for
/// once, however many spans lie before it: a file may be one line of megabytes.
struct Endings<'a> {
    bytes: &'a [u8],
    /// The first newline at or after the last span, once it is known.
    after: Option<Option<usize>>,
    /// The last newline of all, once there is none after a span.
    before: Option<Option<usize>>,
}

impl<'a> Endings<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            after: None,
            before: None,
        }
    }

    /// That of the span's own first newline, else that of the line it ends in,
    /// else that of the line before.
    fn at(&mut self, span: Range<usize>) -> &'static str {
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

fn overlapping(bytes: &[u8], needle: &[u8]) -> Vec<usize> {
    let finder = memmem::Finder::new(needle);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = bytes.get(at..).and_then(|rest| finder.find(rest)) {
        found.push(at + next);
        at += next + 1;
    }
    found
}

/// The file with LF endings, and the way back to its bytes.
struct View<'a> {
    bytes: Cow<'a, [u8]>,
    /// Offsets, in the view, of newlines whose CR was left out.
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

    /// The raw offset of a view offset; for a newline, that of its CR.
    fn raw(&self, at: usize) -> usize {
        at + self.dropped.partition_point(|dropped| *dropped < at)
    }
}
