//! Finding the places that a text fits, apart from whitespace at the ends of its lines,
//! typography and Unicode form.
//!
//! The longest run of characters that cannot be spelled differently leads to the few lines
//! worth comparing. The work is limited by a counter: a text that is everywhere in the file
//! has no single place anyway.

use super::fold::{Folded, Line};
use super::indent::{Relation, relation};
use memchr::{memchr, memmem, memrchr};
use std::collections::VecDeque;
use std::ops::Range;

/// Maximum work, in units of about ten nanoseconds: a small part of the time that the hints
/// of a failed edit take in a large file.
const MAX_WORK: usize = 160_000;

/// Maximum length of the run of characters to search for.
const MAX_RUN: usize = 64;

/// The text to find, in lines.
pub(super) struct Wanted<'a> {
    pub(super) lines: Vec<Line<'a>>,
    folded: Vec<Folded<'a>>,
    /// Whether the last line has its newline.
    pub(super) finished: bool,
}

impl<'a> Wanted<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let finished = text.ends_with('\n');
        let lines: Vec<Line<'_>> = text
            .strip_suffix('\n')
            .unwrap_or(text)
            .split('\n')
            .map(|line| Line::of(line.as_bytes()))
            .collect();
        let folded = lines.iter().map(|line| Folded::of(line.body)).collect();
        Self {
            lines,
            folded,
            finished,
        }
    }

    /// Returns the longest run that is spelled the same everywhere, and its line.
    fn run(&self) -> Option<(usize, &[u8])> {
        let stable = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'-');
        let mut best: Option<(usize, &[u8])> = None;
        for (index, line) in self.lines.iter().enumerate() {
            let mut rest: &[u8] = line.body;
            while let Some(start) = rest.iter().position(stable) {
                rest = rest.get(start..).unwrap_or_default();
                let length = rest.iter().take_while(|byte| stable(byte)).count();
                let (run, after) = rest.split_at_checked(length).unwrap_or((rest, b""));
                // A mark that follows may be one character with the last letter.
                let whole = after.first().is_none_or(u8::is_ascii);
                let run = run
                    .get(..run.len() - usize::from(!whole))
                    .unwrap_or_default();
                let run = run.get(..MAX_RUN).unwrap_or(run);
                if !run.is_empty() && best.is_none_or(|(_, best)| run.len() > best.len()) {
                    best = Some((index, run));
                }
                rest = after;
            }
        }
        best
    }
}

/// A line of the file that corresponds to a line to find.
#[derive(Debug, Clone)]
pub(super) struct Row<'a> {
    /// Bytes of the line in the file, without its line ending.
    pub(super) span: Range<usize>,
    /// The bytes of `span`.
    pub(super) raw: &'a [u8],
    pub(super) line: Line<'a>,
    /// Part of the line's bytes that the text covers, without whitespace at the ends.
    pub(super) matched: Range<usize>,
    /// The line ending; empty at the end of the file.
    pub(super) ending: &'a [u8],
}

impl<'a> Row<'a> {
    /// Returns the line from a byte of its body on.
    pub(super) fn rest(&self, from: usize) -> Option<&'a [u8]> {
        self.raw.get(self.line.indent_bytes + from..)
    }

    /// Whether the text starts at the first letter of the line.
    pub(super) fn at_start(&self) -> bool {
        self.matched.start == self.span.start + self.line.indent_bytes
    }

    /// Whether the text ends at the last letter of the line.
    pub(super) fn at_end(&self) -> bool {
        self.matched.end == self.span.end - self.line.trail.len()
    }
}

/// A place that the text fits.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) rows: Vec<Row<'a>>,
    pub(super) relation: Relation,
    /// Whether the first line of the text left out its indentation.
    pub(super) bare_start: bool,
}

/// Finds the only place that a text fits; `None` if no place fits, if several do,
/// or if finding out takes too long.
pub(super) fn only<'a>(bytes: &'a [u8], wanted: &Wanted<'_>) -> Option<Place<'a>> {
    let (index, run) = wanted.run()?;
    let mut work = MAX_WORK;
    let mut only: Option<Place<'a>> = None;
    let finder = memmem::Finder::new(run);
    let mut at = 0;
    while let Some(hit) = finder.find(bytes.get(at..)?) {
        let hit = at + hit;
        let middle = line_at(bytes, hit);
        // Other hits in the same line lead to the same places.
        at = middle.end;
        for place in places(bytes, wanted, index, middle, &mut work)? {
            if only.is_some() {
                return None;
            }
            only = Some(place);
        }
    }
    only
}

/// Returns the line that contains an offset, without its newline.
fn line_at(bytes: &[u8], at: usize) -> Range<usize> {
    let start = memrchr(b'\n', bytes.get(..at).unwrap_or_default()).map_or(0, |at| at + 1);
    let end = memchr(b'\n', bytes.get(at..).unwrap_or_default()).map_or(bytes.len(), |n| at + n);
    start..end
}

/// Returns the places where the line to find with this index is at this line of the file.
/// `None` if it takes too long.
fn places<'a>(
    bytes: &'a [u8],
    wanted: &Wanted<'_>,
    index: usize,
    middle: Range<usize>,
    work: &mut usize,
) -> Option<Vec<Place<'a>>> {
    let none = Some(Vec::new());
    // The line that led here is compared first: most of the time it is enough to know.
    let mut rows: VecDeque<Vec<Row<'a>>> = VecDeque::new();
    let found = row(bytes, wanted, index, middle.clone(), work)?;
    if found.is_empty() {
        return none;
    }
    rows.push_back(found);
    let mut start = middle.start;
    for before in (0..index).rev() {
        let Some(end) = start.checked_sub(1) else {
            return none;
        };
        let line = line_at(bytes, end);
        start = line.start;
        let found = row(bytes, wanted, before, line, work)?;
        if found.is_empty() {
            return none;
        }
        rows.push_front(found);
    }
    let mut end = middle.end;
    for after in index + 1..wanted.lines.len() {
        if end >= bytes.len() {
            return none;
        }
        let line = line_at(bytes, end + 1);
        end = line.end;
        let found = row(bytes, wanted, after, line, work)?;
        if found.is_empty() {
            return none;
        }
        rows.push_back(found);
    }
    // Only a text of one line can be in a line several times.
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let each = (0..count).map(|choice| {
        let rows: Vec<Row<'a>> = rows
            .iter()
            .filter_map(|row| row.get(choice.min(row.len() - 1)).cloned())
            .collect();
        related(wanted, rows)
    });
    Some(each.flatten().collect())
}

/// Compares a line to find with a line of the file. Returns the parts of it that fit:
/// several only if the text is a part of one line.
fn row<'a>(
    bytes: &'a [u8],
    wanted: &Wanted<'_>,
    index: usize,
    span: Range<usize>,
    work: &mut usize,
) -> Option<Vec<Row<'a>>> {
    let raw = bytes.get(span.clone())?;
    // Folding letters is much slower than comparing bytes.
    let share = if raw.is_ascii() { 32 } else { 1 };
    *work = work.checked_sub(raw.len() / share + 16)?;
    let newline = bytes.get(span.end..span.end + 1).unwrap_or_default();
    let (raw, ending) = match raw.strip_suffix(b"\r") {
        Some(raw) if !newline.is_empty() => (raw, bytes.get(span.end - 1..span.end + 1)?),
        _ => (raw, newline),
    };
    // The byte-order mark is not part of the first line.
    let mark = if span.start == 0 && raw.starts_with(b"\xEF\xBB\xBF") {
        3
    } else {
        0
    };
    let raw = raw.get(mark..)?;
    let span = span.start + mark..span.start + mark + raw.len();
    let line = Line::of(raw);
    let (text, text_folded) = (wanted.lines.get(index)?, wanted.folded.get(index)?);
    let last = index + 1 == wanted.lines.len();
    let open_start = index == 0 && text.indent.is_empty();
    let open_end = last && !wanted.finished && text.trail.is_empty();
    if !open_start && !open_end && line.body.len() > 4 * text.body.len() + 64 {
        return Some(Vec::new());
    }
    let folded = Folded::of(line.body);
    let (whole, part) = (folded.text.as_ref(), text_folded.text.as_ref());
    let mut parts: Vec<Range<usize>> = Vec::new();
    if whole == part {
        parts.push(0..whole.len());
    } else if open_start && open_end {
        let mut finder = memmem::find_iter(whole, part);
        // A third one changes nothing: two are too many.
        parts.extend(finder.by_ref().take(2).map(|at| at..at + part.len()));
    } else if open_start && whole.ends_with(part) {
        parts.push(whole.len() - part.len()..whole.len());
    } else if open_end && whole.starts_with(part) {
        parts.push(0..part.len());
    }
    // A few letters inside a word are a coincidence.
    parts.retain(|part| !cuts_word(whole, part.start) && !cuts_word(whole, part.end));
    let body_at = span.start + line.indent_bytes;
    let rows = parts.into_iter().filter_map(|part| {
        let part = folded.raw(part)?;
        Some(Row {
            span: span.clone(),
            raw,
            line: line.clone(),
            matched: body_at + part.start..body_at + part.end,
            ending,
        })
    });
    Some(rows.collect())
}

/// Whether an offset is inside a word.
pub(super) fn cuts_word(text: &[u8], at: usize) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    let sides = [before, text.get(at)];
    sides
        .into_iter()
        .all(|byte| byte.copied().is_some_and(is_word))
}

/// Checks that one rule explains the indentation of all lines.
fn related<'a>(wanted: &Wanted<'_>, rows: Vec<Row<'a>>) -> Option<Place<'a>> {
    let pairs = |skip: usize| {
        let pairs = wanted.lines.iter().zip(&rows).skip(skip);
        pairs
            .filter(|(text, row)| !text.is_blank() && !row.line.is_blank())
            .map(|(text, row)| (text.indent.as_ref(), row.line.indent.as_ref()))
            .collect::<Vec<_>>()
    };
    let bare = wanted
        .lines
        .first()
        .is_some_and(|line| line.indent.is_empty() && !line.is_blank());
    let at_start = rows.first().is_some_and(Row::at_start);
    let several = !pairs(1).is_empty();
    let (relation, bare_start) = match relation(&pairs(0)) {
        // One line alone does not prove a shift: its text starts within the line.
        Some(found) if at_start && (several || !bare) => (found, false),
        _ if bare => (relation(&pairs(1))?, true),
        // The first line left out its indentation before all lines were shifted.
        None if at_start && several => match (relation(&pairs(1))?, wanted.lines.first()) {
            (Relation::Shallower(more), Some(first)) if first.indent.as_ref() == more => {
                (Relation::Shallower(more), true)
            }
            _ => return None,
        },
        _ => return None,
    };
    Some(Place {
        rows,
        relation,
        bare_start,
    })
}
