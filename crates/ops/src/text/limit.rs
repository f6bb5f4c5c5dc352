//! Cutting text to what a model should read.
//!
//! The functions here tell how much was kept and how much there was. What is
//! said about it in a reply belongs to the toolset.

use std::borrow::Cow;

use memchr::{memchr, memrchr};

use super::decode::{prefix, suffix};
use super::lines;

/// The usual most bytes of a reply: 50 KB.
pub const MAX_BYTES: usize = 51_200;

/// The usual most lines of a reply.
pub const MAX_LINES: usize = 2_000;

/// Which part of a text matters most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The beginning, as of a file.
    Head,
    /// The end, as of a command's output.
    Tail,
    /// The beginning and the end, one half of the limit each.
    Middle,
}

/// How much of a text is kept, and which part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The most bytes.
    pub bytes: usize,
    /// The most lines.
    pub lines: usize,
    /// The part to keep.
    pub keep: Keep,
}

impl Limit {
    /// Cuts a text to this limit.
    #[must_use]
    pub fn cut<'a>(&self, text: &'a str) -> Cut<'a> {
        match self.keep {
            Keep::Head => truncate_head(text, self.bytes, self.lines),
            Keep::Tail => truncate_tail(text, self.bytes, self.lines),
            Keep::Middle => truncate_middle(text, self.bytes, self.lines),
        }
    }
}

/// The limit that was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hit {
    /// The limit of bytes.
    Bytes,
    /// The limit of lines.
    Lines,
}

/// What was kept of a text, and how much there was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut<'a> {
    /// The kept text; for [`Keep::Middle`] its beginning.
    pub kept: &'a str,
    /// For [`Keep::Middle`] the kept end, when something between was cut.
    pub tail: &'a str,
    /// Lines of which at least a part was kept.
    pub kept_lines: usize,
    /// Bytes that were kept.
    pub kept_bytes: usize,
    /// Lines of the whole text.
    pub total_lines: usize,
    /// Bytes of the whole text.
    pub total_bytes: usize,
    /// The limit that was hit first; none when every line is there.
    pub hit: Option<Hit>,
    /// Whether a line alone was over the limit and is kept in part.
    pub partial: bool,
}

impl<'a> Cut<'a> {
    /// Whether something is missing.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.hit.is_some()
    }

    /// Lines of which nothing was kept.
    #[must_use]
    pub fn omitted_lines(&self) -> usize {
        self.total_lines - self.kept_lines
    }

    /// Bytes that were not kept.
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

/// Keeps whole lines from the beginning.
///
/// The newline after the last kept line is kept if there is room for it, and
/// its loss alone is no cut: nobody misses it in a reply. A first line that is
/// alone over the limit is kept in part.
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
        // An empty line is nothing but its newline, which then has to fit.
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
    // A line that fitted without its newline may have brought `end` one over.
    let end = if partial {
        max_bytes
    } else {
        end.min(max_bytes)
    };
    Cut::new(text, prefix(text, end), "", hit, partial)
}

/// Keeps whole lines from the end.
///
/// As with [`truncate_head`], the loss of nothing but the final newline is no
/// cut. A last line that is alone over the limit is kept in part: its end.
#[must_use]
pub fn truncate_tail(text: &str, max_bytes: usize, max_lines: usize) -> Cut<'_> {
    let body = text.strip_suffix('\n').unwrap_or(text);
    // An empty last line is nothing but its newline, which then has to fit.
    let spare = if body.is_empty() || body.ends_with('\n') {
        0
    } else {
        text.len() - body.len()
    };
    let bytes = body.as_bytes();
    // Where the kept lines begin, `None` while there are none yet.
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

/// Keeps the beginning and the end, half of each limit for each, the odd line
/// for the end. Bytes may be cut within a line, never within a character.
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
    // Both pieces may be of the same line, which then counts once.
    let gap = text
        .get(head.len()..text.len() - tail.len())
        .unwrap_or_default();
    if !head.is_empty() && !tail.is_empty() && !head.ends_with('\n') && !gap.contains('\n') {
        cut.kept_lines -= 1;
        cut.partial = true;
    }
    cut
}

/// The first `count` lines with their newlines.
fn first_lines(text: &str, count: usize) -> &str {
    lines::window(text, 1, count).unwrap_or_default()
}

/// The last `count` lines; a final newline belongs to the last.
fn last_lines(text: &str, count: usize) -> &str {
    let skip = lines::count(text).saturating_sub(count);
    lines::window(text, skip + 1, usize::MAX).unwrap_or_default()
}

/// Cuts the middle out of a text and says so in its place.
///
/// First bytes: more than `max_bytes` leaves half of it on each side of
/// `[output truncated: N bytes removed from middle]`. Then lines, the first
/// marker's own included: more than `max_lines` leaves half of them, the odd one
/// at the end, around `[...K lines omitted...]`. A marker of the first kind that
/// the second step would drop stays beside the second, because without it the
/// numbers would not add up; K then counts lines of the text alone.
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

/// The same for a text of which only both ends are at hand, with `missing` bytes
/// between them: what is there of a file or an output that memory does not hold.
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

/// Two ends around the marker of what is gone, and the pass over their lines.
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

/// The rows that the marker of removed bytes takes.
struct Marker<'a> {
    note: &'a str,
    from: usize,
    to: usize,
}

/// Leaves out the rows between the first half of `max_lines` and the last.
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
    // The newline of the last row is the first of the marker.
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
