//! Truncating text to a size that a model should read.
//!
//! The functions return how much was kept and how much there was. The toolset words the
//! note about it.

use std::borrow::Cow;

use memchr::{memchr, memrchr};

use super::decode::{prefix, suffix};
use super::lines;

/// Default maximum size of a reply in bytes: 50 KB.
pub const MAX_BYTES: usize = 51_200;

/// Default maximum number of lines in a reply.
pub const MAX_LINES: usize = 2_000;

/// The part of a text to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The start, as for a file.
    Head,
    /// The end, as for a command's output.
    Tail,
    /// The start and the end, each with half of the limit.
    Middle,
}

/// Maximum size of a text, and which part to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Maximum number of bytes.
    pub bytes: usize,
    /// Maximum number of lines.
    pub lines: usize,
    /// The part to keep.
    pub keep: Keep,
}

impl Limit {
    /// Truncates a text to this limit.
    #[must_use]
    pub fn cut<'a>(&self, text: &'a str) -> Cut<'a> {
        match self.keep {
            Keep::Head => truncate_head(text, self.bytes, self.lines),
            Keep::Tail => truncate_tail(text, self.bytes, self.lines),
            Keep::Middle => truncate_middle(text, self.bytes, self.lines),
        }
    }
}

/// The limit that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hit {
    /// The number of bytes.
    Bytes,
    /// The number of lines.
    Lines,
}

/// A truncated text, and its original size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut<'a> {
    /// The kept text; for [`Keep::Middle`] its start.
    pub kept: &'a str,
    /// For [`Keep::Middle`] the kept end, if something was cut before it.
    pub tail: &'a str,
    /// Number of lines that were kept, completely or in part.
    pub kept_lines: usize,
    /// Number of bytes kept.
    pub kept_bytes: usize,
    /// Number of lines in the original text.
    pub total_lines: usize,
    /// Number of bytes in the original text.
    pub total_bytes: usize,
    /// The limit that was exceeded first; `None` if all lines were kept.
    pub hit: Option<Hit>,
    /// Whether a single line exceeds the limit and was kept in part.
    pub partial: bool,
}

impl<'a> Cut<'a> {
    /// Whether anything was cut.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.hit.is_some()
    }

    /// Returns the number of lines that were dropped completely.
    #[must_use]
    pub fn omitted_lines(&self) -> usize {
        self.total_lines - self.kept_lines
    }

    /// Returns the number of bytes that were dropped.
    #[must_use]
    pub fn omitted_bytes(&self) -> usize {
        self.total_bytes - self.kept_bytes
    }

    fn new(text: &str, kept: &'a str, tail: &'a str, hit: Option<Hit>, partial: bool) -> Self {
        Self {
            kept,
            tail,
            kept_lines: lines::count(kept) + lines::count(tail),
            kept_bytes: kept.len() + tail.len(),
            total_lines: lines::count(text),
            total_bytes: text.len(),
            hit,
            partial,
        }
    }
}

/// Keeps complete lines from the start.
///
/// Keeps the newline after the last line if it fits. Dropping only that newline does not
/// count as a cut, because it makes no difference in a reply. If the first line exceeds the
/// limit by itself, a part of it is kept.
#[must_use]
pub fn truncate_head(text: &str, max_bytes: usize, max_lines: usize) -> Cut<'_> {
    let bytes = text.as_bytes();
    let mut end = 0;
    let mut kept_lines = 0;
    let mut hit = None;
    while end < bytes.len() {
        if kept_lines == max_lines {
            hit = Some(Hit::Lines);
            break;
        }
        let rest = bytes.get(end..).unwrap_or_default();
        let newline = memchr(b'\n', rest);
        let content_end = end + newline.unwrap_or(rest.len());
        // An empty line consists only of its newline, so that must fit.
        let needed = if content_end == end {
            end + 1
        } else {
            content_end
        };
        if needed > max_bytes {
            hit = Some(Hit::Bytes);
            break;
        }
        kept_lines += 1;
        end = content_end + usize::from(newline.is_some());
    }
    let partial = hit == Some(Hit::Bytes) && kept_lines == 0;
    // A line that fitted without its newline may have set `end` one too far.
    let end = if partial {
        max_bytes
    } else {
        end.min(max_bytes)
    };
    Cut::new(text, prefix(text, end), "", hit, partial)
}

/// Keeps complete lines from the end.
///
/// As in [`truncate_head`], dropping only the final newline does not count as a cut. If the
/// last line exceeds the limit by itself, its end is kept.
#[must_use]
pub fn truncate_tail(text: &str, max_bytes: usize, max_lines: usize) -> Cut<'_> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    // An empty last line consists only of its newline, so that must fit.
    let spare = if body.is_empty() || body.ends_with('\n') {
        0
    } else {
        text.len() - body.len()
    };
    let bytes = body.as_bytes();
    // Start of the kept lines, `None` while there are none.
    let mut start: Option<usize> = None;
    let mut kept_lines = 0;
    let mut hit = None;
    while !text.is_empty() && start != Some(0) {
        if kept_lines == max_lines {
            hit = Some(Hit::Lines);
            break;
        }
        let line_end = start.map_or(bytes.len(), |start| start - 1);
        let line_start =
            memrchr(b'\n', bytes.get(..line_end).unwrap_or_default()).map_or(0, |at| at + 1);
        if text.len() - line_start - spare > max_bytes {
            hit = Some(Hit::Bytes);
            break;
        }
        kept_lines += 1;
        start = Some(line_start);
    }
    let partial = hit == Some(Hit::Bytes) && start.is_none();
    let kept = match start {
        Some(start) if text.len() - start <= max_bytes => text.get(start..).unwrap_or_default(),
        Some(start) => body.get(start..).unwrap_or_default(),
        None if partial => suffix(body, max_bytes),
        None => "",
    };
    Cut::new(text, kept, "", hit, partial)
}

/// Keeps the start and the end, each with half of both limits; an odd line goes to the end.
/// May cut within a line, but never within a character.
fn truncate_middle(text: &str, max_bytes: usize, max_lines: usize) -> Cut<'_> {
    let total_lines = lines::count(text);
    let over_bytes = text.len() > max_bytes;
    if !over_bytes && total_lines <= max_lines {
        return Cut::new(text, text, "", None, false);
    }
    let (head, tail) = if over_bytes {
        (prefix(text, max_bytes / 2), suffix(text, max_bytes / 2))
    } else {
        (text, text)
    };
    let head_lines = max_lines / 2;
    let (head, tail) = if total_lines > max_lines {
        (
            first_lines(head, head_lines),
            last_lines(tail, max_lines - head_lines),
        )
    } else {
        (head, tail)
    };
    let hit = if over_bytes { Hit::Bytes } else { Hit::Lines };
    let mut cut = Cut::new(text, head, tail, Some(hit), false);
    // Both parts may belong to the same line, which then counts once.
    let gap = text
        .get(head.len()..text.len() - tail.len())
        .unwrap_or_default();
    if !head.is_empty() && !tail.is_empty() && !head.ends_with('\n') && !gap.contains('\n') {
        cut.kept_lines -= 1;
        cut.partial = true;
    }
    cut
}

/// Returns the first `count` lines with their newlines.
fn first_lines(text: &str, count: usize) -> &str {
    lines::window(text, 1, count).unwrap_or_default()
}

/// Returns the last `count` lines, including a final newline.
fn last_lines(text: &str, count: usize) -> &str {
    let skip = lines::count(text).saturating_sub(count);
    lines::window(text, skip + 1, usize::MAX).unwrap_or_default()
}

/// Cuts the middle out of a text and inserts a note.
///
/// First by bytes: if there are more than `max_bytes`, half of them stay on each side of
/// `[output truncated: N bytes removed from middle]`. Then by lines, including those of the
/// first note: if there are more than `max_lines`, half of them stay around `[...K lines
/// omitted...]`, with an odd one at the end. If the second step would drop the first note,
/// the note is kept next to the second one, because the numbers would not add up without
/// it; K then counts only lines of the text.
#[must_use]
pub fn middle(text: &str, max_bytes: usize, max_lines: Option<usize>) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return match max_lines {
            Some(max_lines) if lines::count(text) > max_lines => {
                let rows: Vec<&str> = lines::split_inclusive(text).collect();
                Cow::Owned(omit(&rows, max_lines, None))
            }
            _ => Cow::Borrowed(text),
        };
    }
    let head = prefix(text, max_bytes / 2);
    let tail = suffix(text, max_bytes / 2);
    let removed = text.len() - head.len() - tail.len();
    Cow::Owned(around(head, removed as u64, tail, max_lines))
}

/// Like [`middle`], for a text of which only the two ends are in memory, with `missing`
/// bytes between them.
#[must_use]
pub fn middle_of(
    head: &str,
    missing: u64,
    tail: &str,
    max_bytes: usize,
    max_lines: Option<usize>,
) -> String {
    let first = prefix(head, max_bytes / 2);
    let last = suffix(tail, max_bytes / 2);
    let more = head.len() - first.len() + tail.len() - last.len();
    around(first, missing + more as u64, last, max_lines)
}

/// Joins two ends with the note about removed bytes, and limits the number of lines.
fn around(head: &str, removed: u64, tail: &str, max_lines: Option<usize>) -> String {
    let note = format!("[output truncated: {removed} bytes removed from middle]");
    let cut = format!("{head}\n\n{note}\n\n{tail}");
    let Some(max_lines) = max_lines else {
        return cut;
    };
    let rows: Vec<&str> = lines::split_inclusive(&cut).collect();
    if rows.len() <= max_lines {
        return cut;
    }
    let marker = Marker {
        note: &note,
        from: lines::count(head),
        to: rows.len() - lines::count(tail),
    };
    omit(&rows, max_lines, Some(&marker))
}

/// The rows of the note about removed bytes.
struct Marker<'a> {
    note: &'a str,
    from: usize,
    to: usize,
}

/// Drops the rows between the first and the last half of `max_lines`.
fn omit(rows: &[&str], max_lines: usize, marker: Option<&Marker<'_>>) -> String {
    let head = max_lines / 2;
    let tail = rows.len() - (max_lines - head);
    let of_marker = marker.map_or(0, |marker| {
        marker.to.min(tail).saturating_sub(marker.from.max(head))
    });
    let count = tail - head - of_marker;
    if count == 0 {
        return rows.concat();
    }
    let mut kept = rows.get(..head).unwrap_or_default().concat();
    // The newline of the last row is the first newline of the note.
    if kept.ends_with('\n') {
        kept.pop();
    }
    kept.push_str(&format!("\n[...{count} lines omitted...]\n"));
    let lost = marker.filter(|marker| {
        let block = rows.get(marker.from..marker.to).unwrap_or_default();
        let at = block
            .iter()
            .position(|row| row.trim_end_matches('\n') == marker.note);
        at.is_some_and(|at| (head..tail).contains(&(marker.from + at)))
    });
    if let Some(marker) = lost {
        kept.push_str(&format!("\n{}\n\n", marker.note));
    }
    kept.push_str(&rows.get(tail..).unwrap_or_default().concat());
    kept
}

#[cfg(test)]
mod tests;
