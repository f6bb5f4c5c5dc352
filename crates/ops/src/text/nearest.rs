//! Hints for a failed edit: where the file almost contains the old text, and what differs.
//!
//! A model that is told `not found` guesses again. One that is shown the nearest lines and
//! told `4 spaces wanted, 1 tab found` gets it right the next time. The work is limited by
//! counters, so that the same edit always gets the same hint; the clock is the last resort.

mod differ;
mod fold;
mod habit;
mod pairs;
mod scale;
mod search;

use std::cell::OnceCell;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

pub(crate) use self::differ::whitespace;
pub(crate) use self::fold::plain;

use self::differ::Edges;
use self::search::{Pair, Rows, Wanted};
use super::decode::prefix;
use super::lines;

/// Maximum number of bytes of a file to search.
const MAX_FILE_BYTES: usize = 16 << 20;

/// Minimum similarity; regions below it would mislead more than they help.
const MIN_SIMILARITY: f32 = 0.4;

/// Maximum number of differences to list. A model that got more wrong reads the file again.
const MAX_DIFFERENCES: usize = 6;

/// Maximum number of lines of the file to show.
const MAX_ROWS: usize = 12;

/// Maximum number of lines to show beyond those that correspond.
const MORE: usize = 3;

/// Maximum number of characters of a line to show.
const MAX_ROW_CHARS: usize = 200;

/// Minimum length in bytes of a line that says something by itself.
const MIN_LINE: usize = 6;

/// Maximum number of lines to look for one by one.
const MAX_LINES: usize = 8;

/// The region of a file that is most similar to the text to find.
#[derive(Debug, Clone, PartialEq)]
pub struct Nearest {
    /// First line, counted from 1.
    pub first_line: usize,
    /// Last line, inclusive.
    pub last_line: usize,
    /// Similarity from 0 to 1; 1 is the same.
    pub similarity: f32,
    /// Differences, one clause each; at most six, then the number of others.
    pub differences: Vec<String>,
    /// Positions that differ, in file order.
    pub marks: Vec<Mark>,
    /// First and last line of another region that is about as similar.
    pub other: Option<(usize, usize)>,
}

/// A position in the file that differs from the text to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Line, counted from 1.
    pub line: usize,
    /// Character within the line, counted from 0.
    pub column: usize,
}

/// Finds the lines of `haystack` that are most similar to `needle`.
///
/// `None` if nothing is similar or the needle is blank.
#[must_use]
pub fn nearest(haystack: &str, needle: &str) -> Option<Nearest> {
    Haystack::new(haystack).nearest(needle)
}

/// A text to search, whose lines are read once.
pub(crate) struct Haystack<'a> {
    text: &'a str,
    rows: OnceCell<Rows<'a>>,
}

impl<'a> Haystack<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text: prefix(text, MAX_FILE_BYTES),
            rows: OnceCell::new(),
        }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    fn rows(&self) -> &Rows<'a> {
        self.rows.get_or_init(|| Rows::new(self.text))
    }

    /// Same as [`nearest`].
    pub(crate) fn nearest(&self, needle: &str) -> Option<Nearest> {
        if needle.trim().is_empty() {
            return None;
        }
        exact(self.text, needle).or_else(|| similar(self.text, self.rows(), needle))
    }

    /// Whether a place outside these lines is at least this similar to `needle`.
    pub(crate) fn has_another(
        &self,
        needle: &str,
        lines: RangeInclusive<usize>,
        similarity: f32,
    ) -> bool {
        let wanted = Wanted::new(needle);
        let own = lines.start().saturating_sub(1)..*lines.end();
        let best = search::best_outside(self.rows(), &wanted, own);
        best.is_some_and(|best| best >= similarity)
    }

    /// Names the only line of the file that is a line of the text, if the text as a whole is
    /// like nothing in the file.
    pub(crate) fn one_line(&self, needle: &str) -> Option<String> {
        let rows = self.rows();
        let wanted = Wanted::new(needle);
        let mut lines: Vec<(usize, u64)> = wanted
            .lines
            .iter()
            .map(|line| line.trim().len())
            .zip(wanted.keys.iter().copied())
            .filter(|(length, _)| *length >= MIN_LINE)
            .collect();
        lines.sort_unstable_by(|one, other| other.cmp(one));
        let only = |key: u64| {
            let mut found = (0..rows.lines.len()).filter(|row| rows.key(*row) == Some(key));
            found.next().filter(|_| found.next().is_none())
        };
        let mut lines = lines.into_iter().take(MAX_LINES);
        let found = lines.find_map(|(_, key)| only(key))?;
        let line = differ::shorten(rows.line(found), 0, MAX_ROW_CHARS);
        Some(format!(
            "only one line of it is in the file:\n{}\t{line}\nread the lines around it and copy the text exactly",
            found + 1
        ))
    }
}

fn similar(haystack: &str, rows: &Rows<'_>, needle: &str) -> Option<Nearest> {
    let mut best: Option<Nearest> = None;
    // Undoes typical mistakes of models first: if one of them is the only problem, nothing
    // else needs to be reported.
    for habit in habit::undo(haystack, needle) {
        let found = exact(haystack, &habit.text).or_else(|| compare(rows, &habit.text));
        let Some(mut found) = found else { continue };
        found.differences.insert(0, habit.note.to_owned());
        if found.similarity > 0.95 {
            return Some(found);
        }
        if best
            .as_ref()
            .is_none_or(|best| best.similarity < found.similarity)
        {
            best = Some(found);
        }
    }
    match (compare(rows, needle), best) {
        // Undoing a mistake must clearly help before it is reported.
        (Some(plain), Some(undone)) if undone.similarity < plain.similarity + 0.05 => Some(plain),
        (plain, None) => plain,
        (_, undone) => undone,
    }
}

/// Finds an exact match.
fn exact(haystack: &str, needle: &str) -> Option<Nearest> {
    let at = memchr::memmem::find(haystack.as_bytes(), needle.as_bytes())?;
    Some(Nearest {
        first_line: lines::line_of(haystack, at),
        last_line: lines::line_of(haystack, at + needle.len().saturating_sub(1)),
        similarity: 1.0,
        differences: Vec::new(),
        marks: Vec::new(),
        other: None,
    })
}

fn compare(rows: &Rows<'_>, needle: &str) -> Option<Nearest> {
    let wanted = Wanted::new(needle);
    let window = search::window(rows, &wanted)?;
    if window.similarity < MIN_SIMILARITY {
        return None;
    }
    let found = window.pairs.iter().filter_map(|pair| match pair {
        Pair::Both { found, .. } => Some(*found),
        _ => None,
    });
    let (first, last) = found.fold((usize::MAX, 0), |(first, last), found| {
        (first.min(found), last.max(found))
    });
    if first > last {
        return None;
    }
    // Where the text leaves the file, the lines that are there instead are shown, too.
    let missing = |pair: &&Pair| matches!(pair, Pair::Missing { .. });
    let before = window.pairs.iter().take_while(missing).count().min(MORE);
    let after = window
        .pairs
        .iter()
        .rev()
        .take_while(missing)
        .count()
        .min(MORE);
    let (first, last) = (
        first.saturating_sub(before),
        (last + after).min(rows.lines.len().saturating_sub(1)),
    );
    let mut report = Report::default();
    for pair in &window.pairs {
        report.pair(rows, &wanted, *pair);
    }
    let endings = wanted.crlf && !(first..=last).any(|row| rows.crlf(row));
    let mut differences = Vec::new();
    if endings {
        differences.push("the wanted text has CRLF line endings, the file has LF".to_owned());
    }
    if report.only_indentation() {
        differences.push("the text matches except for leading whitespace".to_owned());
    }
    let lines = grouped(report.lines);
    let more = lines.len().saturating_sub(MAX_DIFFERENCES);
    differences.extend(lines.into_iter().take(MAX_DIFFERENCES));
    if more > 0 {
        differences.push(format!("and {more} more differences"));
    }
    Some(Nearest {
        first_line: first + 1,
        last_line: last + 1,
        similarity: window.similarity,
        differences,
        marks: report.marks,
        other: search::other(&window, first..last + 1, wanted.len())
            .map(|(first, last)| (first + 1, last.min(rows.lines.len()))),
    })
}

/// Joins what is the same about consecutive lines.
fn grouped(clauses: Vec<Clause>) -> Vec<String> {
    let mut groups: Vec<(usize, Clause)> = Vec::new();
    for clause in clauses {
        match groups.last_mut() {
            Some((_, last)) if last.text == clause.text && last.line + 1 == clause.line => {
                last.line = clause.line;
            }
            _ => groups.push((clause.line, clause)),
        }
    }
    let groups = groups.into_iter();
    groups
        .map(|(first, Clause { line, text })| match first == line {
            true => format!("line {line}: {text}"),
            false => format!("lines {first}-{line}: {text}"),
        })
        .collect()
}

/// A difference in one line of the file.
struct Clause {
    line: usize,
    text: String,
}

/// Differences between a region and the text to find.
#[derive(Default)]
struct Report {
    lines: Vec<Clause>,
    marks: Vec<Mark>,
    indentations: usize,
}

impl Report {
    /// Whether several lines differ, and each of them only in indentation.
    fn only_indentation(&self) -> bool {
        self.indentations > 1 && self.indentations == self.lines.len()
    }

    fn pair(&mut self, rows: &Rows<'_>, wanted: &Wanted<'_>, pair: Pair) {
        match pair {
            Pair::Both {
                wanted: index,
                found,
            } => {
                let edges = wanted.edges(index);
                let (line, whole) = (found + 1, rows.line(found));
                let (text, shift) = match edges {
                    Edges::Both => pairs::excerpt(wanted.line(index), whole),
                    _ => (whole, 0),
                };
                let differences = differ::describe(wanted.line(index), text, edges);
                if let Some(column) = differences.column {
                    self.marks.push(Mark {
                        line,
                        column: column + shift,
                    });
                }
                self.indentations += usize::from(differences.indentation);
                let clauses = differences.clauses.into_iter();
                self.lines.extend(clauses.map(|text| Clause { line, text }));
            }
            Pair::Missing { wanted: index, at } => {
                let line = at + 1;
                self.marks.push(Mark { line, column: 0 });
                let text = match wanted.line(index) {
                    blank if blank.trim().is_empty() => "a blank line wanted before it".to_owned(),
                    text => format!("{} wanted before it", differ::quote(text, 0)),
                };
                self.lines.push(Clause { line, text });
            }
            Pair::Extra { found } => {
                let line = found + 1;
                self.marks.push(Mark { line, column: 0 });
                let text = match rows.line(found) {
                    blank if blank.trim().is_empty() => "a blank line found, not wanted",
                    _ => "not wanted",
                };
                let text = text.to_owned();
                self.lines.push(Clause { line, text });
            }
        }
    }
}

/// Formats the hint for a model: the region with line numbers, then the differences. At
/// most 20 lines.
#[must_use]
pub fn lesson(nearest: &Nearest, haystack: &str, needle: &str) -> String {
    let Nearest {
        first_line,
        last_line,
        ..
    } = *nearest;
    let place = if first_line == last_line {
        format!("line {first_line}")
    } else {
        format!("lines {first_line}-{last_line}")
    };
    // Writing to a String cannot fail.
    let mut text = format!(
        "nearest: {place} ({:.0}% alike",
        (nearest.similarity * 100.0).floor()
    );
    let wanted = lines::count(needle);
    if wanted != last_line.saturating_sub(first_line) + 1 {
        let _ = write!(
            text,
            ", {wanted} line{} wanted",
            if wanted == 1 { "" } else { "s" }
        );
    }
    text.push_str(")\n");
    let shown = shown_rows(nearest);
    let region = lines::window(
        haystack,
        first_line,
        last_line.saturating_sub(first_line) + 1,
    )
    .unwrap_or_default();
    let mut gap = false;
    let mut shown = shown.into_iter().peekable();
    for (index, row) in lines::split(region).enumerate() {
        let line = first_line + index;
        if shown.peek() != Some(&line) {
            if !std::mem::replace(&mut gap, true) {
                text.push_str("...\n");
            }
            continue;
        }
        gap = false;
        shown.next();
        let column = nearest
            .marks
            .iter()
            .find(|mark| mark.line == line)
            .map_or(0, |mark| mark.column);
        let row = differ::shorten(row.trim_end_matches('\r'), column, MAX_ROW_CHARS);
        let _ = writeln!(text, "{line}\t{row}");
    }
    if let Some((first, last)) = nearest.other {
        let _ = writeln!(text, "lines {first}-{last} are about as much alike");
    }
    for difference in &nearest.differences {
        text.push_str(difference);
        text.push('\n');
    }
    text.pop();
    text
}

/// Returns the lines to show: all of a small region; of a large one, those that differ and
/// their neighbours. A gap counts as a line, too.
fn shown_rows(nearest: &Nearest) -> Vec<usize> {
    let all = nearest.first_line..=nearest.last_line;
    if all.clone().count() <= MAX_ROWS {
        return all.collect();
    }
    let ends = [nearest.first_line, nearest.last_line];
    let mut shown: Vec<usize> = ends.to_vec();
    for mark in &nearest.marks {
        let near = mark.line.saturating_sub(1)..=mark.line + 1;
        let mut next = shown.clone();
        next.extend(near.filter(|line| all.contains(line)));
        next.sort_unstable();
        next.dedup();
        let gaps = next
            .windows(2)
            .filter(|pair| matches!(pair, [a, b] if b - a > 1))
            .count();
        if next.len() + gaps > MAX_ROWS {
            break;
        }
        shown = next;
    }
    if nearest.marks.is_empty() {
        shown.extend(all.take(MAX_ROWS - 4));
        shown.sort_unstable();
        shown.dedup();
    }
    shown
}

impl Wanted<'_> {
    /// Returns whether the text to find may start or end within a line here.
    fn edges(&self, index: usize) -> Edges {
        let end = index + 1 == self.len() && !self.finished;
        match (index == 0, end) {
            (true, true) => Edges::Both,
            (true, false) => Edges::Start,
            (false, true) => Edges::End,
            (false, false) => Edges::None,
        }
    }
}

#[cfg(test)]
mod tests;
